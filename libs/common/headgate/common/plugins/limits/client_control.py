"""Configuration of `client-control`."""

from pydantic import Field

from headgate.common.plugins.config import PluginConfig


class ClientControlConfig(PluginConfig, plugin="client-control"):
    """Fields of `client-control`."""

    max_body_size: int = Field(default=0, ge=0)
    """Bytes; 0 is no limit."""
