"""Configuration of `circuit-breaker`."""

from collections.abc import Mapping
from typing import Final, Self

from pydantic import Field, model_validator

from headgate.common.plugins.comparisons import MAX_LENGTH, Function, read_condition
from headgate.common.plugins.config import PluginConfig

FUNCTIONS: Final[Mapping[str, Function]] = {
    "LatencyAtQuantileMS": Function(1, int),
    "NetworkErrorRatio": Function(0, float),
    "RequestThreshold": Function(0, int),
    "ResponseCodeRatio": Function(4, float),
}


class CircuitBreakerConfig(PluginConfig, plugin="circuit-breaker"):
    """Fields of `circuit-breaker`."""

    expression: str = Field(min_length=1, max_length=MAX_LENGTH)
    """When it opens: comparisons of `NetworkErrorRatio()`, `ResponseCodeRatio(from, to, of_from, of_to)`,
    `LatencyAtQuantileMS(50.0)` and `RequestThreshold()` with numbers, joined by `&&`, `||` and parentheses."""
    check_period: float = Field(default=0.1, ge=0)
    """Seconds between two looks."""
    fallback_duration: float = Field(default=10.0, gt=0)
    """Seconds for which it refuses all requests."""
    recovery_duration: float = Field(default=10.0, gt=0)
    """Seconds in which it lets more and more requests through, up to a half of them."""
    response_code: int = Field(default=503, ge=200, le=599)

    @model_validator(mode="after")
    def _check(self) -> Self:
        condition = read_condition(self.expression, FUNCTIONS)
        for call in (each.call for each in condition.comparisons()):
            if call.name == "LatencyAtQuantileMS" and not 0 <= call.arguments[0] <= 100:
                raise ValueError("LatencyAtQuantileMS() takes a quantile from 0 to 100")
        return self
