"""Configuration of `python-hook`."""

from typing import Annotated, Self

from pydantic import Field, JsonValue, model_validator

from headgate.common.plugins.config import PluginConfig

FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=128)]


class PythonHookConfig(PluginConfig, plugin="python-hook"):
    """Fields of `python-hook`."""

    request: FunctionName | None = None
    """Function of the gateway's `hooks_file` that looks at the request before its upstream is chosen."""
    response: FunctionName | None = None
    """Function that looks at the head of the answer."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """Given to both by name."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.request is None and self.response is None:
            raise ValueError("has nothing to do: give request, response or both")
        return self
