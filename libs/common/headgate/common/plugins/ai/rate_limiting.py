"""Configuration of `ai-rate-limiting`."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from headgate.common.plugins.ai.costs import CostExpression
from headgate.common.plugins.ai.proxy import MAX_INSTANCES
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.limits.limits import CountRule, LimitConfig, VariableCount, VariableSeconds


class InstanceLimit(PluginConfig):
    """The limit of one model."""

    name: str = Field(min_length=1, max_length=100)
    """Of the instance; that of `ai-proxy` is called `ai-proxy-` and its provider."""
    limit: VariableCount
    time_window: VariableSeconds


class AiRateLimitingConfig(LimitConfig, plugin="ai-rate-limiting"):
    """Fields of `ai-rate-limiting`."""

    limit: VariableCount | None = None
    """Tokens in one window, of all instances together that have no limit of their own: a number, or a template that
    gives one."""
    time_window: VariableSeconds | None = None
    """Seconds. A window begins with the first answer."""
    limit_strategy: Literal["total_tokens", "prompt_tokens", "completion_tokens", "expression"] = "total_tokens"
    """What of an answer counts."""
    cost_expr: str | None = Field(default=None, min_length=1)
    """With `expression`: arithmetic over the numbers that the provider gives, `input_tokens + output_tokens * 4`, with
    `+ - * / %`, parentheses, and `abs`, `ceil`, `floor`, `max` and `min`. A number that is not given is 0."""
    instances: tuple[InstanceLimit, ...] = Field(default=(), max_length=MAX_INSTANCES)
    """Limits of single instances."""
    rules: tuple[CountRule, ...] = Field(default=(), max_length=100)
    """Instead of `limit` and `instances`; `header_prefix` makes `X-AI-<prefix>-RateLimit-Limit` and so on."""
    show_limit_quota_header: bool = True
    """Answers say what was left, in `X-AI-RateLimit-Limit-<instance>`, `-Remaining-` and `-Reset-`."""

    @field_validator("cost_expr")
    @classmethod
    def _check_expression(cls, value: str | None) -> str | None:
        if value is not None:
            CostExpression(value)
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.limit is None) != (self.time_window is None):
            raise ValueError("needs both limit and time_window, or none of them")
        if bool(self.rules) == (self.limit is not None or bool(self.instances)):
            raise ValueError("needs either limit and time_window, or instances, or rules")
        if self.limit_strategy == "expression" and self.cost_expr is None:
            raise ValueError("needs cost_expr with limit_strategy expression")
        return self
