"""What `basic-auth` is told, and passwords as `htpasswd` files keep them.

The files of `crypt(3)` (DES, `$5$`, `$6$`) are refused by name: the first is no protection any more, and Python has
none of the three.
"""

import base64
import binascii
from typing import ClassVar, Final, Self

from pydantic import Field, field_validator, model_validator

from headgate.common.plugins.authentication.authenticator import (
    AuthenticationConfig,
    CredentialConfig,
    CredentialSecret,
)
from headgate.common.plugins.config import SEALED, PluginConfig, SecretText
from headgate.common.plugins.fields import HeaderName, HeaderValue
from headgate.common.secret import Secret

BCRYPT = ("$2y$", "$2a$", "$2b$")
APR1 = "$apr1$"
SHA = ("{SHA}", "{SSHA}")
MAX_BCRYPT_COST: Final = 14
"""About a second of a core for each check; `htpasswd -B` makes 5, most programs 10 to 12."""


def check_hash(kept: str) -> None:
    """Look at what stands behind the name in a line. Raises ValueError, without the hash in its text."""
    if kept.startswith(BCRYPT):
        if len(kept.encode()) != 60:
            raise ValueError("this bcrypt hash is not whole")
        cost = kept[4:6]
        if not cost.isdecimal() or not 4 <= int(cost) <= MAX_BCRYPT_COST:
            raise ValueError(f"this bcrypt hash has the cost {cost}; from 4 to {MAX_BCRYPT_COST} are taken")
    elif kept.startswith(SHA):
        try:
            decoded = base64.b64decode(kept.partition("}")[2], validate=True)
        except binascii.Error:
            decoded = b""
        if len(decoded) < 20:
            raise ValueError("this SHA hash is not whole")
    elif not kept.startswith(APR1):
        raise ValueError("this kind of hash is not supported; make one with `htpasswd -B` (bcrypt)")


def read_htpasswd(content: str) -> list[tuple[str, str]]:
    """Return names and hashes of a file. Raises ValueError, without the hash in its text."""
    users = []
    for line in content.splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, colon, kept = text.partition(":")
        if not colon:
            raise ValueError("a line of htpasswd is not `name:hash`")
        _check_hash_of(name, kept)
        users.append((name, kept))
    return users


def _check_hash_of(name: str, kept: str) -> None:
    try:
        check_hash(kept)
    except ValueError as error:
        raise ValueError(f"user {name}: {error}") from None


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
        if self.hash is not None and self.hash is not SEALED:
            _check_hash_of(self.username, self.hash.reveal())
        return self


class BasicAuthConfig(AuthenticationConfig, plugin="basic-auth"):
    """Fields of `basic-auth`. Without `users` and `htpasswd` it asks for a consumer's name and password."""

    users: tuple[BasicUser, ...] = ()
    """Those who may come, instead of consumers."""
    htpasswd: SecretText | None = None
    """A whole file of `htpasswd`: bcrypt, apr1, SHA."""
    realm: HeaderValue = Field(default="basic", max_length=256)
    user_header: HeaderName | None = None
    """Tell the upstream the name in this header."""

    @property
    def has_users(self) -> bool:
        """Those who may come are listed here: consumers are not asked for."""
        return bool(self.users) or self.htpasswd is not None

    @field_validator("htpasswd")
    @classmethod
    def _check_file(cls, value: Secret[str] | None) -> Secret[str] | None:
        if value is not None and value is not SEALED:
            read_htpasswd(value.reveal())
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.has_users and self.anonymous_consumer is not None:
            raise ValueError("anonymous_consumer does not go together with users or htpasswd")
        return self


class BasicAuthCredential(CredentialConfig):
    """A consumer's `basic-auth`."""

    identified_by: ClassVar[str] = "username"

    username: str = Field(min_length=1, pattern="^[^:]+$")
    password: CredentialSecret
