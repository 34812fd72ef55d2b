"""Configuration of `hsts`."""

from pydantic import Field

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName


class HstsConfig(PluginConfig, plugin="hsts"):
    """Fields of `hsts`."""

    max_age: int = Field(default=31_536_000, ge=0)
    """Seconds for which browsers ask the host over HTTPS only."""
    include_subdomains: bool = False
    """This holds for all names below the host."""
    preload: bool = False
    """Browsers may have the host in the list that they come with."""
    secure_headers: dict[HeaderName, str] = Field(default_factory=dict)
    """A request with one of these headers, and this value of it, counts as one over HTTPS."""
    force: bool = False
    """Say so over plain HTTP, too, where another proxy ends TLS."""
