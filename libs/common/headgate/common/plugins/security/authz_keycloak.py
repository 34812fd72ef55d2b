"""Configuration of `authz-keycloak`."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.fields import check_url

_Url = Annotated[str, Field(min_length=1, max_length=4096)]


class AuthzKeycloakConfig(PluginConfig, plugin="authz-keycloak"):
    """Fields of `authz-keycloak`."""

    discovery: _Url | None = None
    """URL of the realm's document, `https://…/realms/<realm>/.well-known/uma2-configuration`; the two endpoints that
    follow are in it."""
    token_endpoint: _Url | None = None
    """Who decides; instead of what the document says."""
    resource_registration_endpoint: _Url | None = None
    """Where resources are looked up with `lazy_load_paths`; instead of what the document says."""
    client_id: str = Field(min_length=1, max_length=100)
    """Of the client whose resources are guarded."""
    client_secret: SecretText | None = None
    """For `lazy_load_paths` and `password_grant_token_generation_incoming_uri`."""
    grant_type: Literal["urn:ietf:params:oauth:grant-type:uma-ticket"] = "urn:ietf:params:oauth:grant-type:uma-ticket"
    policy_enforcement_mode: Literal["ENFORCING", "PERMISSIVE"] = "ENFORCING"
    """`ENFORCING` refuses requests for which there are no permissions to ask for. With `PERMISSIVE` the server decides
    about these too."""
    permissions: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(default=(), max_length=100)
    """Names of resources, with scopes as `resource#scope`."""
    lazy_load_paths: bool = False
    """Look the resources up by the path of the request, instead of `permissions`."""
    http_method_as_scope: bool = False
    """Ask for the request's method as a scope, too."""
    access_denied_redirect_uri: str | None = Field(default=None, min_length=1, max_length=2048)
    """Where requests that are denied are sent with 307, instead of a 403."""
    password_grant_token_generation_incoming_uri: str | None = Field(default=None, min_length=1, max_length=4096)
    """Path, with its query, at which clients get a token for a `username` and a `password` that they POST as a form."""
    timeout: int = Field(default=3000, ge=1000, le=600_000)
    """Milliseconds."""
    ssl_verify: bool = True
    """Check the server's certificate."""
    cache_ttl_seconds: int = Field(default=86_400, ge=1)
    """How long the document, and a token for looking resources up, are kept at most."""
    access_token_expires_in: int = Field(default=300, ge=1)
    """Seconds that a token for looking resources up is good for, if the server does not say it."""
    access_token_expires_leeway: int = Field(default=0, ge=0)
    """Seconds before its end from which it is not used any more."""
    refresh_token_expires_in: int = Field(default=3600, ge=1)
    """Taken for compatibility, as the next: another token is asked for with the secret."""
    refresh_token_expires_leeway: int = Field(default=0, ge=0)
    max_req_body_size: int = Field(default=64 << 20, ge=1)
    """Bytes of the form with a password. At most 64 KiB count."""
    keepalive: bool = True
    """Taken for compatibility, as those that follow: connections are kept and shared."""
    keepalive_timeout: int = Field(default=60_000, ge=1000)
    keepalive_pool: int = Field(default=5, ge=1)

    @field_validator("discovery", "token_endpoint", "resource_registration_endpoint")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is not None:
            check_url(value)
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.discovery is None and self.token_endpoint is None:
            raise ValueError("needs discovery or token_endpoint")
        if self.lazy_load_paths and self.discovery is None and self.resource_registration_endpoint is None:
            raise ValueError("needs discovery or resource_registration_endpoint with lazy_load_paths")
        return self
