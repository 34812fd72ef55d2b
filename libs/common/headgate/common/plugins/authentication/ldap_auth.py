"""Configuration of `ldap-auth`, and of a consumer's credentials for it."""

import re
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from headgate.common.plugins.authentication.authenticator import AuthenticationConfig, CredentialConfig
from headgate.common.plugins.fields import HeaderValue

_SERVER = re.compile(r"(?:ldaps?://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)(?::[0-9]{1,5})?")


def _checked_server(text: str) -> str:
    if not _SERVER.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no LDAP server: write ldap.example:389 or ldaps://ldap.example")
    return text


class LdapAuthConfig(AuthenticationConfig, plugin="ldap-auth"):
    """Fields of `ldap-auth`."""

    ldap_uri: Annotated[str, AfterValidator(_checked_server)]
    """`ldap.example:389`, or with `ldaps://` before it."""
    base_dn: str = Field(min_length=1)
    """Where users are: `ou=users,dc=example,dc=org`."""
    uid: str = Field(default="cn", pattern="^[A-Za-z0-9.-]+$")
    """Attribute that is the user's name."""
    use_tls: bool = False
    """Speak TLS from the first byte, as with `ldaps://`."""
    tls_verify: bool = False
    """Check the server's certificate."""
    timeout: int = Field(default=3000, ge=1, le=60_000)
    """Milliseconds."""
    realm: HeaderValue = Field(default="ldap", max_length=256)


class LdapAuthCredential(CredentialConfig):
    """A consumer's `ldap-auth`."""

    identified_by: ClassVar[str] = "user_dn"

    user_dn: str = Field(min_length=1)
    """`cn=jack,ou=users,dc=example,dc=org`."""
