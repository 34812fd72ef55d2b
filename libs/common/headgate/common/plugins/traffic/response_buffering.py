"""Configuration of `response-buffering`."""

from pydantic import Field

from headgate.common.plugins.config import PluginConfig


class ResponseBufferingConfig(PluginConfig, plugin="response-buffering"):
    """Fields of `response-buffering`."""

    max_body: int = Field(default=0, ge=0)
    """Bytes; a longer answer is replaced by a 500. 0 is no bound but the gateway's own, beyond which there is a 502."""
