"""Configuration of `real-ip`."""

from pydantic import Field

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import NetworkText


class RealIpConfig(PluginConfig, plugin="real-ip"):
    """Fields of `real-ip`."""

    source: str = Field(min_length=1)
    """Name of the variable with the client's address: `arg_realip`, `http_x_forwarded_for`."""
    trusted_addresses: tuple[NetworkText, ...] = ()
    """Only requests from these are asked; all if there are none."""
    recursive: bool = False
    """Of the addresses in `X-Forwarded-For` take the last that is not trusted, instead of the last."""
