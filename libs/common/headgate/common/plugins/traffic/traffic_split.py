"""Configuration of `traffic-split`."""

from typing import Self

from pydantic import Field, field_validator, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.expressions import Expressions


class SplitMatch(PluginConfig):
    """Requests that a rule takes."""

    vars: Expressions = ()


class WeightedUpstream(PluginConfig):
    """One choice of a rule."""

    upstream_id: str | None = Field(default=None, min_length=1)
    """Key of an upstream of the table; the route's own backends without one."""
    weight: int = Field(default=1, ge=0)

    @field_validator("upstream_id", mode="before")
    @classmethod
    def _read_number(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class SplitRule(PluginConfig):
    """The first rule that takes a request chooses."""

    match: tuple[SplitMatch, ...] = ()
    """Alternatives; none takes every request."""
    weighted_upstreams: tuple[WeightedUpstream, ...] = Field(default=(WeightedUpstream(),), min_length=1, max_length=20)


class TrafficSplitConfig(PluginConfig, plugin="traffic-split"):
    """Fields of `traffic-split`."""

    rules: tuple[SplitRule, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, rule in enumerate(self.rules):
            if not any(one.weight for one in rule.weighted_upstreams):
                raise ValueError(f"rules.{number}: all weights are 0")
        return self
