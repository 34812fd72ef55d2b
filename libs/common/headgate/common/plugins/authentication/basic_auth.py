"""Configuration of `basic-auth`."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from headgate.common.plugins.authentication.authenticator import (
    AuthenticationConfig,
    CredentialConfig,
    CredentialSecret,
)
from headgate.common.plugins.authentication.htpasswd import check_hash_of, read_htpasswd, usable_hashes
from headgate.common.plugins.config import SEALED, PluginConfig, SecretText
from headgate.common.plugins.fields import HeaderName, HeaderValue


class BasicUser(PluginConfig):
    """Somebody who may come."""

    username: str = Field(min_length=1, pattern="^[^:]+$")
    password: SecretText | None = None
    hash: SecretText | None = None
    """As in a line of an `htpasswd` file; instead of `password`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.password is None) == (self.hash is None):
            raise ValueError("needs either password or hash")
        return self


class BasicAuthConfig(AuthenticationConfig, plugin="basic-auth"):
    """Fields of `basic-auth`. Without `users` and `htpasswd` it asks for a consumer's name and password."""

    users: tuple[BasicUser, ...] = ()
    """Those who may come, instead of consumers."""
    htpasswd: SecretText | None = None
    """A whole file of `htpasswd`: bcrypt, apr1, SHA, `{PLAIN}` and the forms of `crypt(3)`. The first line of a name
    counts."""
    skip_invalid: bool = False
    """A user whose hash cannot be used does not come in, as with nginx; otherwise the plugin is refused with all users.
    """
    realm: HeaderValue = Field(default="basic", max_length=256)
    user_header: HeaderName | None = None
    """Tell the upstream the name in this header."""

    @property
    def has_users(self) -> bool:
        """Those who may come are listed here: consumers are not asked for."""
        return bool(self.users) or self.htpasswd is not None

    def hashes(self) -> list[tuple[str, str]]:
        """Return the names and hashes that can be read here. Raises ValueError, without the hash in its text."""
        users = self._lines()
        if self.skip_invalid:
            return list(usable_hashes(users))
        for name, kept in users:
            check_hash_of(name, kept)
        return users

    def count_skipped(self) -> int:
        """Count the users whose hashes cannot be used."""
        return len(self._lines()) - len(self.hashes())

    def _lines(self) -> list[tuple[str, str]]:
        users = [(user.username, user.hash.reveal()) for user in self.users if user.hash and user.hash is not SEALED]
        if self.htpasswd is not None and self.htpasswd is not SEALED:
            users += read_htpasswd(self.htpasswd.reveal(), skip_invalid=self.skip_invalid)
        return users

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.has_users and self.anonymous_consumer is not None:
            raise ValueError("anonymous_consumer does not go together with users or htpasswd")
        self.hashes()
        return self


class BasicAuthCredential(CredentialConfig):
    """A consumer's `basic-auth`."""

    identified_by: ClassVar[str] = "username"

    username: str = Field(min_length=1, pattern="^[^:]+$")
    password: CredentialSecret
