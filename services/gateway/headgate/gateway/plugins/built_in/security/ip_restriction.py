"""`ip-restriction`: which clients may come, by address."""

from headgate.common.plugins.security.ip_restriction import IpRestrictionConfig
from headgate.gateway.model.addresses import NetworkSet
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response


class IpRestriction(Plugin[IpRestrictionConfig]):
    """Refuses clients by address."""

    name = "ip-restriction"
    order = 3000
    Config = IpRestrictionConfig
    preview = "with-client"
    is_shareable = True
    waits_for_consumer = True

    def __init__(self, config: IpRestrictionConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._allowed = NetworkSet(config.whitelist)
        self._denied = NetworkSet(config.blacklist)

    def on_request(self, request: Request) -> Response | None:
        """Refuse a client that may not come."""
        if request.client in self._denied or (self._allowed and request.client not in self._allowed):
            message = self.config.message
            return Response.json(self.config.response_code, {"message": message}, reason=message)
        return None
