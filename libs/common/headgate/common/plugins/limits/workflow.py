"""Configuration of `workflow`."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.expressions import Expressions
from headgate.common.plugins.limits.limits import LimitConnConfig, LimitCountConfig


class ReturnConfig(PluginConfig):
    """Fields of the action `return`."""

    code: int = Field(ge=200, le=599)


class ReturnAction(PluginConfig):
    """Answer the request."""

    name: Literal["return"]
    config: ReturnConfig
    """The status that is answered."""


class LimitCountAction(PluginConfig):
    """Count the request."""

    name: Literal["limit-count"]
    config: LimitCountConfig
    """That of the plugin, without `group`."""

    @field_validator("config")
    @classmethod
    def _check(cls, config: LimitCountConfig) -> LimitCountConfig:
        if config.group is not None:
            raise ValueError("takes no group within a workflow")
        return config


class LimitConnAction(PluginConfig):
    """Count the request while it is under way."""

    name: Literal["limit-conn"]
    config: LimitConnConfig
    """That of the plugin."""


def _read_action(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) == 2:
        return {"name": value[0], "config": value[1]}
    return value


Action = Annotated[
    Annotated[ReturnAction | LimitCountAction | LimitConnAction, Field(discriminator="name")],
    BeforeValidator(_read_action),
]
"""`["return", {"code": 403}]`, or the name of a plugin and its configuration."""


class WorkflowRule(PluginConfig):
    """The first rule whose case holds is followed."""

    case: Expressions = ()
    """None: every request."""
    actions: tuple[Action, ...] = Field(min_length=1, max_length=1)
    """One: `["return", {"code": 403}]`, `["limit-count", {...}]` or `["limit-conn", {...}]`."""


class WorkflowConfig(PluginConfig, plugin="workflow"):
    """Fields of `workflow`."""

    rules: tuple[WorkflowRule, ...] = Field(min_length=1)
