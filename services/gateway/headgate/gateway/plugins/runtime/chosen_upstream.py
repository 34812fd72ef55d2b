"""A route whose upstream a plugin has chosen."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from headgate.gateway.plugins.interface.targets import Endpoints

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.policies import RoutePolicies
    from headgate.gateway.proxy.request_source import RequestSource
    from headgate.gateway.proxy.seam import RouteTarget
    from headgate.gateway.proxy.traffic import RouteTraffic


class ChosenUpstream:
    """The route as it is, with another upstream; the proxy's `RouteTarget`."""

    def __init__(self, route: "RouteTarget", endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self.name = route.name
        self.upstream_label = endpoints.key
        self.connect_timeout_s: float | None = route.connect_timeout_s
        self.send_timeout_s: float | None = route.send_timeout_s
        self.read_timeout_s: float | None = route.read_timeout_s
        self.policies: RoutePolicies | None = route.policies
        self.traffic: RouteTraffic | None = None
        """Found anew for each request: it is that of the pair of route and upstream."""

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose an endpoint of the upstream."""
        return self._endpoints.choose(tried, source)

    def answer_lines(self, source: "RequestSource", pool: "EndpointPool") -> bytes:
        """Add nothing: the route's cookie is for its own backends."""
        return b""

    @property
    def unavailable(self) -> str:
        """Why there is no endpoint."""
        return self._endpoints.unavailable
