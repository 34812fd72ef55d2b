"""Configuration of `ip-restriction`."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.plugins.client_address import ClientAddressConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import NetworkText


class IpRestrictionConfig(PluginConfig, plugin="ip-restriction"):
    """Fields of `ip-restriction`."""

    whitelist: tuple[NetworkText, ...] = ()
    """Only these may come."""
    blacklist: tuple[NetworkText, ...] = ()
    """These may not, whatever the whitelist says."""
    message: str = Field(default="Your IP address is not allowed", min_length=1, max_length=1024)
    response_code: int = Field(default=403, ge=200, le=599)
    client: ClientAddressConfig | None = None
    """Which address stands for the client; by default the one that trusted proxies name."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.whitelist and not self.blacklist:
            raise ValueError("needs a whitelist or a blacklist")
        return self
