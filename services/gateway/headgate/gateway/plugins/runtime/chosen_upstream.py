"""A route whose upstream is chosen: by a plugin, or with what is done on the way there."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.gateway.balancing.way import Way
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
        """Looked up for each request: it is that of the pair of route and upstream."""

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


class ChosenWay:
    """The route as it is, with the way to a backend; the proxy's `RouteTarget`.

    Args:
        route: the route.
        way: the way.
        policies: the route's.
    """

    def __init__(self, route: "RouteTarget", way: Way, policies: "RoutePolicies | None") -> None:
        self._way = way
        self.name = route.name
        self.upstream_label = way.key or route.upstream_label
        self.connect_timeout_s: float | None = route.connect_timeout_s
        self.send_timeout_s: float | None = route.send_timeout_s
        self.read_timeout_s: float | None = route.read_timeout_s
        self.request_s: float | None = None
        """Seconds from now on that the request may take; None: as long as the route allows."""
        self.policies = policies
        self.traffic: RouteTraffic | None = None
        """Looked up for each request: it is that of the pair of route and upstream."""
        for backend in way.sending:
            timeouts = backend.timeouts
            self.connect_timeout_s = timeouts.connect_s or self.connect_timeout_s
            self.send_timeout_s = timeouts.send_s or self.send_timeout_s
            self.read_timeout_s = timeouts.read_s or self.read_timeout_s
            self.request_s = timeouts.request_s or self.request_s
            before = self.policies
            if before is not None:
                self.policies = replace(
                    before,
                    idle_s=before.idle_s if timeouts.idle_s is None else timeouts.idle_s,
                    retries=backend.retries or before.retries,
                    keeps_body=backend.keeps_body or before.keeps_body,
                )

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose an endpoint where the way leads."""
        return self._way.choose(tried, source)

    def answer_lines(self, source: "RequestSource", pool: "EndpointPool") -> bytes:
        """Return the cookies of the route and of groups on the way."""
        return self._way.answer_lines(source, pool)

    @property
    def unavailable(self) -> str:
        """Why there is no endpoint."""
        return self._way.unavailable
