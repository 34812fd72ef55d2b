"""`ip-restriction`: which clients may come, by address."""

from typing import Self

from pydantic import Field, model_validator

from headgate.gateway.plugins.addresses import NetworkSet, NetworkText
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices, Request, Response


class IpRestrictionConfig(PluginConfig):
    """Fields of `ip-restriction`."""

    whitelist: tuple[NetworkText, ...] = ()
    """Only these may come."""
    blacklist: tuple[NetworkText, ...] = ()
    """These may not, whatever the whitelist says."""
    message: str = Field(default="Your IP address is not allowed", min_length=1, max_length=1024)
    response_code: int = Field(default=403, ge=400, le=599)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.whitelist and not self.blacklist:
            raise ValueError("needs a whitelist or a blacklist")
        return self


class IpRestriction(Plugin[IpRestrictionConfig]):
    """Refuses clients by address."""

    name = "ip-restriction"
    order = 3000
    Config = IpRestrictionConfig

    def __init__(self, config: IpRestrictionConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._allowed = NetworkSet(config.whitelist)
        self._denied = NetworkSet(config.blacklist)

    def on_request(self, request: Request) -> Response | None:
        """Refuse a client that may not come."""
        if request.client in self._denied or (self._allowed and request.client not in self._allowed):
            return Response.refusal(self.config.response_code, self.config.message)
        return None
