"""Configuration of `echo`."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, HeaderTemplate


class EchoConfig(PluginConfig, plugin="echo"):
    """Fields of `echo`."""

    before_body: str | None = None
    """Goes out before the body."""
    body: str | None = None
    """Goes out instead of the upstream's body."""
    after_body: str | None = None
    """Goes out behind the body."""
    headers: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """Set in the answer."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("has nothing to do: give before_body, body, after_body or headers")
        return self
