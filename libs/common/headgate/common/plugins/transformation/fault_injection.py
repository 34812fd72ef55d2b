"""Configuration of `fault-injection`."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.expressions import AlternativeExpressions
from headgate.common.plugins.fields import HeaderName, HeaderTemplate


class Abort(PluginConfig):
    """Answer instead of the upstream."""

    http_status: int = Field(ge=200, le=599)
    body: str = ""
    """A template."""
    headers: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    percentage: float = Field(default=100, ge=0, le=100)
    vars: AlternativeExpressions = ()
    """Only requests for which one of these holds; each is a comparison, or a list of those that all hold."""


class Delay(PluginConfig):
    """Wait before anything else happens to the request."""

    duration: float = Field(gt=0, le=3600)
    """Seconds."""
    percentage: float = Field(default=100, ge=0, le=100)
    vars: AlternativeExpressions = ()


class FaultInjectionConfig(PluginConfig, plugin="fault-injection"):
    """Fields of `fault-injection`: one of the two or both; a delay comes before an abort."""

    abort: Abort | None = None
    delay: Delay | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.abort is None and self.delay is None:
            raise ValueError("needs abort or delay")
        return self
