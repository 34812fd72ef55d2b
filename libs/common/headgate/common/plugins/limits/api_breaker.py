"""Configuration of `api-breaker`."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, HeaderTemplate


class BreakHeader(PluginConfig):
    """One header of the answer while the circuit is open."""

    key: HeaderName
    value: HeaderTemplate


class Unhealthy(PluginConfig):
    """What opens the circuit."""

    http_statuses: tuple[Annotated[int, Field(ge=500, le=599)], ...] = Field(default=(500,), min_length=1)
    """Of the upstream's answers; 502 and 504 are also those of the gateway for an upstream that did not answer."""
    failures: int = Field(default=3, ge=1)
    """In all, since it was last healthy."""


class Healthy(PluginConfig):
    """What closes it for good."""

    http_statuses: tuple[Annotated[int, Field(ge=200, le=499)], ...] = Field(default=(200,), min_length=1)
    successes: int = Field(default=3, ge=1)
    """Since the last failure."""


class ApiBreakerConfig(PluginConfig, plugin="api-breaker"):
    """Fields of `api-breaker`."""

    break_response_code: int = Field(ge=200, le=599)
    break_response_body: str | None = None
    """A template."""
    break_response_headers: tuple[BreakHeader, ...] = ()
    """With `break_response_body`."""
    max_breaker_sec: int = Field(default=300, ge=3)
    """The longest time for which the circuit is open."""
    unhealthy: Unhealthy = Unhealthy()
    healthy: Healthy = Healthy()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.break_response_headers and self.break_response_body is None:
            raise ValueError("break_response_headers needs break_response_body")
        return self
