"""Configuration of `digest-auth`."""

import re
from typing import Final, Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import SEALED, PluginConfig, SecretText
from headgate.common.plugins.fields import HeaderName, HeaderValue

_DIGEST: Final = re.compile("[0-9a-fA-F]{32}")


class DigestUser(PluginConfig):
    """Somebody who may come."""

    username: str = Field(min_length=1, pattern="^[^:]+$")
    digest: SecretText
    """What stands behind the name in a line of `htdigest`: `realm:hash`."""


class DigestAuthConfig(PluginConfig, plugin="digest-auth"):
    """Fields of `digest-auth`."""

    users: tuple[DigestUser, ...] = ()
    """Those who may come."""
    htdigest: SecretText | None = None
    """A whole file of `htdigest`: lines of `name:realm:hash`. The first line of a name counts."""
    realm: HeaderValue = Field(default="basic", max_length=256)
    """Only lines of this realm count."""
    user_header: HeaderName | None = None
    """Tell the upstream the name in this header."""
    hide_credentials: bool = False
    """Do not hand on what the user was recognised by."""
    nonce_lifetime: int = Field(default=60, ge=1, le=3600)
    """Seconds for which a client may go on with a nonce; then it gets another, without a question to its user."""
    skip_invalid: bool = False
    """A line that cannot be used lets no user in; otherwise the plugin is refused with all users."""

    def digests(self) -> dict[str, str]:
        """Return the hashes of the realm that can be read here, by name. Raises ValueError, without the hashes."""
        found: dict[str, str] = {}
        for name, realm, digest in self._lines():
            if _DIGEST.fullmatch(digest):
                if realm == self.realm:
                    found.setdefault(name, digest.lower())
            elif not self.skip_invalid:
                raise ValueError("a line of htdigest is not `name:realm:hash`")
        return found

    def _lines(self) -> list[tuple[str, str, str]]:
        users = [f"{user.username}:{user.digest.reveal()}" for user in self.users if user.digest is not SEALED]
        if self.htdigest is not None and self.htdigest is not SEALED:
            users += self.htdigest.reveal().splitlines()
        lines = []
        for line in filter(None, map(str.strip, users)):
            if not line.startswith("#"):
                name, _, rest = line.partition(":")
                realm, _, digest = rest.rpartition(":")
                lines.append((name, realm, digest))
        return lines

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.users and self.htdigest is None:
            raise ValueError("needs users or htdigest")
        self.digests()
        return self
