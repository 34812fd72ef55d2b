"""What a matched request may use: the route's name and timeouts, and the way to an endpoint."""

from collections.abc import Collection
from copy import copy
from typing import TYPE_CHECKING, Self

from headgate.common.table import Route
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.balancing.way import Way, choose_endpoint
from headgate.gateway.table.backends import NO_BACKENDS, RouteBackends
from headgate.gateway.table.policies import compile_policies, guard_policies

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.hooks import RequestHooks
    from headgate.gateway.proxy.request_source import RequestSource
    from headgate.gateway.proxy.traffic import RouteTraffic
    from headgate.gateway.tls.policy import ClientGuard


class CompiledRoute:
    """A route that requests are matched to; the proxy's `RouteTarget`.

    Args:
        host: of the virtual host.
        route: the table's entry.
        backends: of its backends and canaries.
        client_guard: what the host asks of clients' certificates.
        hooks: its plugins.
    """

    __slots__ = (
        "__weakref__",
        "_among",
        "_only",
        "connect_timeout_s",
        "name",
        "needs_body",
        "policies",
        "read_timeout_s",
        "send_timeout_s",
        "traffic",
        "upstream_label",
    )

    def __init__(
        self,
        host: str,
        route: Route,
        backends: RouteBackends = NO_BACKENDS,
        client_guard: "ClientGuard | None" = None,
        hooks: "RequestHooks | None" = None,
    ) -> None:
        self.name = f"{host}|{route.name}"
        self.traffic: RouteTraffic | None = None
        """Where its requests are counted: by the name, so that counts go on over swaps."""
        self.policies = compile_policies(route, client_guard, hooks)
        self.connect_timeout_s = route.timeouts.connect_s
        self.send_timeout_s = route.timeouts.send_s
        self.read_timeout_s = route.timeouts.read_s
        self.upstream_label = backends.label
        self.needs_body = backends.needs_body
        """Whether a canary can only be told by the request's body."""
        self._only = backends.only
        self._among = backends.among

    @classmethod
    def to_upstream(cls, host: str, name: str, upstream: UpstreamHolder) -> Self:
        """Return a route of which nothing is said but that all of its requests go to an upstream."""
        route = cls.__new__(cls)
        route.name = f"{host}|{name}"
        route.traffic = route.policies = None
        route.connect_timeout_s = route.send_timeout_s = route.read_timeout_s = None
        route.upstream_label = upstream.key
        route.needs_body = False
        route._only, route._among = upstream, None  # noqa: SLF001 - of this class
        return route

    def guarded(self, guard: "ClientGuard") -> "CompiledRoute":
        """Return this route for requests of another host, whose clients have to show what that host asks for."""
        route = copy(self)
        route.policies = guard_policies(self.policies, guard)
        return route

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose a backend, then an endpoint of it; tried endpoints only if there is no other."""
        only = self._only
        if only is not None:
            if only.state is not None or tried:
                source.note_upstream(only.state_for(tried))
            return only.balancer.choose(tried, source)
        return None if self._among is None else choose_endpoint(self._among, tried, source)

    def answer_lines(self, source: "RequestSource", pool: "EndpointPool") -> bytes:
        """Return header lines, each with its CRLF, for the answer of an endpoint: a cookie when a new one is due."""
        way = source.facts().chosen if self._among is not None else None
        return way.answer_lines(source, pool) if isinstance(way, Way) else b""

    @property
    def unavailable(self) -> str:
        """Why `choose` found nothing."""
        if self._only is not None:
            return self._only.unavailable
        if self._among is None:
            return f"all backends of {self.name} have weight 0"
        return "; ".join(filter(None, (backend.unavailable for backend in self._among.backends)))
