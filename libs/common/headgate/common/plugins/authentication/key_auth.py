"""Configuration of `key-auth`, and of a consumer's credentials for it."""

from typing import ClassVar

from pydantic import Field

from headgate.common.plugins.authentication.authenticator import (
    AuthenticationConfig,
    CredentialConfig,
    CredentialSecret,
)
from headgate.common.plugins.fields import HeaderName, HeaderValue


class KeyAuthConfig(AuthenticationConfig, plugin="key-auth"):
    """Fields of `key-auth`."""

    header: HeaderName = "apikey"
    """Where the key is; looked at before `query`."""
    query: str = Field(default="apikey", min_length=1)
    """Parameter in which it is otherwise."""
    realm: HeaderValue = Field(default="key", max_length=256)


class KeyAuthCredential(CredentialConfig):
    """A consumer's `key-auth`."""

    identified_by: ClassVar[str] = "key"

    key: CredentialSecret
