"""What plugins have in common that recognise consumers, and what they know of one."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from headgate.common.plugins.config import SEALED, PluginConfig, SecretText
from headgate.common.secret import Secret


def _checked_secret(value: Secret[str]) -> Secret[str]:
    if value is not SEALED and not value.reveal():
        raise ValueError("must not be empty")
    return value


CredentialSecret = Annotated[SecretText, AfterValidator(_checked_secret)]
"""A secret without which nobody is recognised; never empty."""


class AuthenticationConfig(PluginConfig):
    """What all that recognise consumers can be told."""

    hide_credentials: bool = False
    """Do not hand on what the consumer was recognised by."""
    anonymous_consumer: str | None = Field(default=None, min_length=1)
    """Name of the consumer that those count as who cannot be recognised; without it they get a 401."""


class CredentialConfig(PluginConfig):
    """What an authentication plugin knows of a consumer."""

    identified_by: ClassVar[str]
    """The field that a request's credential is found by: `key`, `username`."""
