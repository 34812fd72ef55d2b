"""Settings of the console."""

from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

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
    gateway_url: str = Field(
        default="http://127.0.0.1:9080",
        description="Admin site of the gateways, which is asked why requests go where they go; empty for none.",
    )

    @field_validator("gateway_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://, such as http://127.0.0.1:9080, or be empty")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _check_openness(self) -> Self:
        is_guarded = self.console_people_file is not None or self.console_open
        if self.console_host not in LOOPBACK and not is_guarded:
            raise ValueError(
                f"console_host: {self.console_host} can be reached by others: give console_people_file, or "
                "console_open to let everybody look"
            )
        return self
