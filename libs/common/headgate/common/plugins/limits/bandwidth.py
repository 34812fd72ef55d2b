"""Configuration of `bandwidth`."""

from pydantic import Field

from headgate.common.plugins.config import PluginConfig


class BandwidthConfig(PluginConfig, plugin="bandwidth"):
    """Fields of `bandwidth`."""

    rate: int = Field(gt=0)
    """Bytes in a second, for each request."""
    after: int = Field(default=0, ge=0)
    """Bytes that go out at full speed before."""
