"""What every plugin can be told besides, under `_meta`: whether it runs, when, for which requests, what it answers."""

from typing import Any, Final

from pydantic import Field, JsonValue, field_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.expressions import Expressions

META: Final = "_meta"
"""Its place in a configuration."""


class PluginMeta(PluginConfig):
    """Fields of `_meta`."""

    disable: bool = False
    """The plugin is not run. Its configuration is checked all the same."""
    priority: int | None = None
    """Instead of the plugin's own order."""
    filter: Expressions = ()
    """Only requests for which these hold; decided once, before the plugin sees the request."""
    error_response: str | dict[str, JsonValue] | None = Field(default=None)
    """The body of answers of the plugin from 400 on; an object goes out as JSON."""
    pre_function: None = None
    """Lua, which is not run: refused."""

    @field_validator("pre_function", mode="before")
    @classmethod
    def _refuse_lua(cls, value: Any) -> Any:
        if value is not None:
            raise ValueError("Lua is not run: write a plugin of your own (entry point headgate.plugins)")
        return value
