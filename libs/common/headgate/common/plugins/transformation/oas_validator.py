"""Configuration of `oas-validator`."""

from typing import Self

from pydantic import Field, field_validator, model_validator

from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.fields import HeaderName, check_url
from headgate.common.plugins.transformation.openapi import OpenApi


class OasValidatorConfig(PluginConfig, plugin="oas-validator"):
    """Fields of `oas-validator`."""

    spec: str | None = Field(default=None, min_length=1)
    """An OpenAPI document in JSON, of 3.0 or 3.1: 500 operations at most, and 20,000 keywords in all schemas that they
    use, references followed each time."""
    spec_url: str | None = None
    """Where it is fetched instead, by the gateway and when the first request needs it: 1 MiB at most."""
    spec_url_request_headers: dict[HeaderName, SecretText] = Field(default_factory=dict, max_length=64)
    """Headers of that request."""
    spec_url_ttl: int = Field(default=3600, ge=1)
    """Seconds after which it is fetched again. It is a plugin's metadata in Apache APISIX."""
    ssl_verify: bool = False
    """Check the certificate of a `spec_url` over HTTPS."""
    timeout: int = Field(default=10_000, ge=1000, le=60_000)
    """Milliseconds for fetching it."""
    verbose_errors: bool = False
    """Tell clients what is wrong with a request."""
    skip_request_body_validation: bool = False
    skip_request_header_validation: bool = False
    skip_query_param_validation: bool = False
    skip_path_params_validation: bool = False
    reject_if_not_match: bool = True
    """Otherwise the gateway's log says what is wrong, and the request passes."""
    rejection_status_code: int = Field(default=400, ge=400, le=599)
    max_req_body_size: int = Field(default=64 << 20, ge=1)
    """Bytes; longer bodies are refused with 413. At most 8 MiB, and 50,000,000 divided by the number of the body
    schema's keywords."""

    @field_validator("spec")
    @classmethod
    def _check_spec(cls, value: str | None) -> str | None:
        if value is not None:
            OpenApi(value)
        return value

    @field_validator("spec_url")
    @classmethod
    def _check_spec_url(cls, value: str | None) -> str | None:
        if value is not None:
            check_url(value)
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.spec is None) == (self.spec_url is None):
            raise ValueError("needs either spec or spec_url")
        return self
