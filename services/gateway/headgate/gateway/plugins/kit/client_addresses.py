"""The client's address, as the configuration of a plugin chooses it."""

from ipaddress import IPv6Address, ip_address, ip_network

from headgate.common.plugins.client_address import ClientAddressConfig
from headgate.gateway.model.addresses import NetworkSet
from headgate.gateway.plugins.interface import Request


class AddressReader:
    """Reads it from a request."""

    __slots__ = ("_depth", "_excluded", "_ipv6_subnet")

    def __init__(self, config: ClientAddressConfig) -> None:
        self._depth = config.depth
        self._excluded = NetworkSet(config.excluded)
        self._ipv6_subnet = config.ipv6_subnet

    def read(self, request: Request) -> str:
        """Return the address; empty if the request has none."""
        if self._depth:
            chain = _forwarded(request)
            return self._in_subnet(chain[-self._depth]) if len(chain) >= self._depth else ""
        if self._excluded:
            return next((one for one in reversed(_forwarded(request)) if one and one not in self._excluded), "")
        return self._in_subnet(request.client)

    def _in_subnet(self, address: str) -> str:
        if self._ipv6_subnet is None:
            return address
        try:
            found = ip_address(address)
        except ValueError:
            return address
        if not isinstance(found, IPv6Address):
            return address
        return str(ip_network((int(found), self._ipv6_subnet), strict=False).network_address)


def _forwarded(request: Request) -> list[str]:
    """Return the addresses that trusted proxies have sent; the last one of the header is the peer's, and ours."""
    chain = request.headers.get("X-Forwarded-For") or ""
    return [member.strip() for member in chain.split(",")[:-1]]
