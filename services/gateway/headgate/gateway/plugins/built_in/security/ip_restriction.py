"""`ip-restriction`: which clients may come, by address."""

from headgate.common.plugins.security.ip_restriction import IpRestrictionConfig
from headgate.gateway.model.addresses import NetworkSet
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.client_addresses import AddressReader


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
        self._address = AddressReader(config.client) if config.client is not None else None

    def on_request(self, request: Request) -> Response | None:
        """Refuse a client that may not come."""
        client = request.client if self._address is None else self._address.read(request)
        if client in self._denied or (self._allowed and client not in self._allowed):
            message = self.config.message
            return Response.json(self.config.response_code, {"message": message}, reason=message)
        return None
