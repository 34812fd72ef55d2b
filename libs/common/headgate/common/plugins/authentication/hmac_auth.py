"""Configuration of `hmac-auth`, and of a consumer's credentials for it."""

from typing import ClassVar, Literal

from pydantic import Field

from headgate.common.plugins.authentication.authenticator import (
    AuthenticationConfig,
    CredentialConfig,
    CredentialSecret,
)
from headgate.common.plugins.fields import HeaderValue

HmacAlgorithm = Literal["hmac-sha1", "hmac-sha256", "hmac-sha512"]


class HmacAuthConfig(AuthenticationConfig, plugin="hmac-auth"):
    """Fields of `hmac-auth`."""

    allowed_algorithms: tuple[HmacAlgorithm, ...] = Field(
        default=("hmac-sha1", "hmac-sha256", "hmac-sha512"), min_length=1
    )
    clock_skew: int = Field(default=300, ge=0)
    """Seconds that the request's `Date` may be off; 0: it is not looked at."""
    signed_headers: tuple[str, ...] = ("date",)
    """Headers that have to be among those that are signed; `@request-target` for method and path. `date` always has to,
    unless `clock_skew` is 0."""
    validate_request_body: bool = False
    """The request needs a `Digest` that is that of its body: `SHA-256=` and the digest in base64. Have `digest` signed
    too, or anybody can put in another one."""
    max_req_body_size: int = Field(default=64 << 20, gt=0)
    """Bytes of a body whose digest is looked at; with more the answer is 413."""
    realm: HeaderValue = Field(default="hmac", max_length=256)


class HmacAuthCredential(CredentialConfig):
    """A consumer's `hmac-auth`."""

    identified_by: ClassVar[str] = "key_id"

    key_id: str = Field(min_length=1)
    """What its requests call it by; no secret."""
    secret_key: CredentialSecret
