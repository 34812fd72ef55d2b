"""What `hsts` is told."""

from pydantic import Field

from headgate.common.plugins.config import PluginConfig


class HstsConfig(PluginConfig, plugin="hsts"):
    """Fields of `hsts`."""

    max_age: int = Field(default=31_536_000, ge=0)
    """Seconds for which browsers ask the host over HTTPS only."""
    include_subdomains: bool = False
    """This holds for all names below the host."""
    preload: bool = False
    """Browsers may have the host in the list that they come with."""
    force: bool = False
    """Say so over plain HTTP, too, where another proxy ends TLS."""
