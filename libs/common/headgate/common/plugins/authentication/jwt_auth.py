"""Configuration of `jwt-auth`, and of a consumer's credentials for it."""

import base64
import binascii
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from headgate.common.plugins.authentication.authenticator import (
    AuthenticationConfig,
    CredentialConfig,
    CredentialSecret,
)
from headgate.common.plugins.config import SEALED, SecretText
from headgate.common.plugins.fields import HeaderName, HeaderValue

Algorithm = Literal[
    "HS256",
    "HS384",
    "HS512",
    "RS256",
    "RS384",
    "RS512",
    "ES256",
    "ES384",
    "ES512",
    "PS256",
    "PS384",
    "PS512",
    "EdDSA",
]


class JwtAuthConfig(AuthenticationConfig, plugin="jwt-auth"):
    """Fields of `jwt-auth`."""

    header: HeaderName = "authorization"
    """Where the token is, with `Bearer` before it or without; looked at first."""
    query: str = Field(default="jwt", min_length=1)
    """Parameter in which it is otherwise."""
    cookie: str = Field(default="jwt", min_length=1)
    """Cookie in which it is otherwise."""
    key_claim_name: str = Field(default="key", min_length=1)
    """Claim that says whose token it is: the `key` of a consumer."""
    claims_to_verify: tuple[Literal["exp", "nbf"], ...] = ("exp", "nbf")
    """Times that are looked at where a token has them."""
    store_in_ctx: bool = False
    """Keep the claims for other plugins, as variable `jwt_auth_payload` (JSON)."""
    realm: HeaderValue = Field(default="jwt", max_length=256)


class JwtAuthCredential(CredentialConfig):
    """A consumer's `jwt-auth`."""

    identified_by: ClassVar[str] = "key"

    key: str = Field(min_length=1)
    """What the claim of its tokens says; no secret."""
    algorithm: Algorithm = "HS256"
    """Of its tokens; others are refused."""
    secret: CredentialSecret | None = None
    """For the algorithms that begin with HS."""
    base64_secret: bool = False
    """`secret` is written in base64."""
    public_key: str | None = Field(default=None, min_length=1)
    """In PEM, for all other algorithms."""
    private_key: SecretText | None = None
    """This and `exp` are taken for compatibility: tokens are signed elsewhere."""
    exp: int = Field(default=86400, ge=1)
    lifetime_grace_period: int = Field(default=0, ge=0)
    """Seconds by which clocks may differ."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.algorithm.startswith("HS"):
            if self.secret is None:
                raise ValueError(f"algorithm {self.algorithm} needs secret")
            if self.base64_secret and self.secret is not SEALED:
                self.secret_bytes()
        elif self.public_key is None:
            raise ValueError(f"algorithm {self.algorithm} needs public_key")
        return self

    def secret_bytes(self) -> bytes:
        """Return the secret itself. Raises ValueError if it is not in base64 as it should be."""
        text = "" if self.secret is None else self.secret.reveal()
        if not self.base64_secret:
            return text.encode()
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise ValueError("secret is not in base64, as base64_secret says") from None
