"""Configuration of `jwe-decrypt`, and of a consumer's credentials for it."""

import base64
import binascii
from typing import ClassVar, Self

from pydantic import Field, model_validator

from headgate.common.plugins.authentication.authenticator import CredentialConfig, CredentialSecret
from headgate.common.plugins.config import SEALED, PluginConfig
from headgate.common.plugins.fields import HeaderName

_KEY_BYTES = 32


class JweDecryptConfig(PluginConfig, plugin="jwe-decrypt"):
    """Fields of `jwe-decrypt`."""

    header: HeaderName = "Authorization"
    """Where the token is, with `Bearer` before it or without."""
    forward_header: HeaderName = "Authorization"
    """Where the upstream gets what was in it."""
    strict: bool = True
    """Refuse requests without a token with 403; else they pass as they are."""


class JweDecryptCredential(CredentialConfig):
    """A consumer's `jwe-decrypt`."""

    identified_by: ClassVar[str] = "key"

    key: str = Field(min_length=1)
    """What tokens call it by (`kid`); no secret."""
    secret: CredentialSecret
    """32 bytes."""
    is_base64_encoded: bool = False
    """`secret` is written in base64, with the alphabet for URLs too."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.secret is not SEALED and len(self.secret_bytes()) != _KEY_BYTES:
            raise ValueError(f"secret has to have {_KEY_BYTES} bytes")
        return self

    def secret_bytes(self) -> bytes:
        """Return the secret itself. Raises ValueError if it is not in base64 as it should be."""
        text = self.secret.reveal().encode()
        if not self.is_base64_encoded:
            return text
        try:
            return base64.b64decode(
                text.translate(bytes.maketrans(b"-_", b"+/")) + b"=" * (-len(text) % 4), validate=True
            )
        except binascii.Error:
            raise ValueError("secret is not in base64, as is_base64_encoded says") from None
