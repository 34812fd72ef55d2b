"""Settings of the console."""

from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from headgate.common.stores.settings import StoreSettings
from headgate.common.table import DEFAULT_TABLE

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ConsoleSettings(StoreSettings):
    """What the console can be told."""

    table: str = Field(default=DEFAULT_TABLE, description="Name of the table that is shown.")
    console_host: str = Field(
        default="127.0.0.1",
        description="Address of the console; loopback by default, where nobody has to log in.",
    )
    console_port: int = Field(default=9090, ge=1, le=65535, description="Port of the console; 9090 by default.")
    console_people_file: Path | None = Field(
        default=None,
        description="TOML file of who may come in: a name, a role (viewer or operator) and the SHA-256 of a token for "
        "each. Without it everybody who reaches the console may look, and nobody may change anything.",
    )
    console_open: bool = Field(
        default=False,
        description="Let everybody who reaches it look, on other addresses than loopback too; off by default.",
    )
    console_url: str = Field(
        default="",
        description="How browsers reach the console, such as https://console.example.com; an OpenID provider sends "
        "them back there. Empty by default.",
    )
    console_oidc_issuer: str = Field(
        default="", description="OpenID provider that lets people in, by the URL that it calls itself; none by default."
    )
    console_oidc_client_id: str = Field(default="", description="What the provider calls the console.")
    console_oidc_client_secret: SecretStr = Field(
        default=SecretStr(""),
        description="Secret that goes with it; empty for a public client. Better given by environment than by flag.",
    )
    console_oidc_ca_file: Path | None = Field(
        default=None, description="Authorities for TLS to the provider, PEM, besides the system's; none by default."
    )
    console_oidc_scopes: tuple[str, ...] = Field(
        default=("openid", "profile", "email"), description="What is asked of the provider; enough for most by default."
    )
    console_oidc_name_claim: str = Field(
        default="email", description="Claim with the name for the history; where it is missing, `sub` is taken."
    )
    console_oidc_groups_claim: str = Field(
        default="groups", description="Claim with somebody's groups, or its path, such as realm_access.roles."
    )
    console_oidc_viewer_groups: tuple[str, ...] = Field(
        default=(), description="Groups that may look; * is everybody whom the provider lets in. None by default."
    )
    console_oidc_operator_groups: tuple[str, ...] = Field(
        default=(), description="Groups that may change tables and clusters, too. None by default."
    )
    gateway_url: str = Field(
        default="http://127.0.0.1:9080",
        description="Admin site of the gateways, which is asked why requests go where they go; empty for none.",
    )

    @field_validator("console_url")
    @classmethod
    def _strip(cls, value: str) -> str:
        return value.rstrip("/")

    @field_validator("gateway_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://, such as http://127.0.0.1:9080, or be empty")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _check_openness(self) -> Self:
        is_guarded = self.console_people_file is not None or self.console_open or self.console_oidc_issuer
        if self.console_host not in LOOPBACK and not is_guarded:
            raise ValueError(
                f"console_host: {self.console_host} can be reached by others: give console_people_file, "
                "console_oidc_issuer, or console_open to let everybody look"
            )
        return self

    @model_validator(mode="after")
    def _check_provider(self) -> Self:
        if not self.console_oidc_issuer:
            return self
        for name in ("console_oidc_issuer", "console_url"):
            if not is_safe(str(getattr(self, name))):
                raise ValueError(f"{name}: must be a URL with https://, or with http:// on this machine")
        if urlsplit(self.console_url).path or urlsplit(self.console_url).query:
            raise ValueError("console_url: must be a scheme and a host, such as https://console.example.com")
        if not self.console_oidc_client_id:
            raise ValueError("console_oidc_client_id: is needed with console_oidc_issuer")
        if "openid" not in self.console_oidc_scopes:
            raise ValueError("console_oidc_scopes: must have openid")
        if not (self.console_oidc_viewer_groups or self.console_oidc_operator_groups):
            raise ValueError(
                "console_oidc_viewer_groups, console_oidc_operator_groups: name groups, or nobody may come in; * is "
                "everybody"
            )
        return self


def is_safe(url: str) -> bool:
    """Tell whether a URL is https, or leads to this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK))
