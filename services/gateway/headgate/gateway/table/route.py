"""What a matched request may use: the route's name and timeouts, and the way to an endpoint."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from headgate.common.table import Route
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.table.policies import compile_policies

if TYPE_CHECKING:
    from headgate.gateway.proxy.pool import EndpointPool
    from headgate.gateway.proxy.seam import RequestSource


class CompiledRoute:
    """A route that requests are matched to; the proxy's `RouteTarget`."""

    __slots__ = (
        "__weakref__",
        "_only",
        "_split",
        "connect_timeout_s",
        "name",
        "path",
        "path_type",
        "policies",
        "read_timeout_s",
        "send_timeout_s",
        "upstream_label",
    )

    def __init__(self, host: str, route: Route, backends: Sequence[tuple[UpstreamHolder, int]]) -> None:
        self.name = f"{host}|{route.name}"
        self.path_type = route.path.type
        self.path = route.path.value.encode()
        self.policies = compile_policies(route)
        self.connect_timeout_s = route.timeouts.connect_s
        self.send_timeout_s = route.timeouts.send_s
        self.read_timeout_s = route.timeouts.read_s
        self.upstream_label = (
            backends[0][0].key if len(backends) == 1 else ",".join(holder.key for holder, _ in backends)
        )
        split = SmoothRoundRobin(backends)
        self._only: UpstreamHolder | None = split.items[0] if len(split) == 1 else None
        self._split = None if self._only else split

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose a backend by weight, then an endpoint of it; tried endpoints only if there is no other.

        A backend that has nobody available fails its share of the requests: sending that share to the other backends
        would make 5 % of a canary the load of all.
        """
        only = self._only
        if only is not None:
            return only.balancer.choose(tried)
        holder = self._split.choose() if self._split else None
        return None if holder is None else holder.balancer.choose(tried)

    @property
    def unavailable(self) -> str:
        """Why `choose` found nothing."""
        holders = [self._only] if self._only else list(self._split.items if self._split else ())
        if not holders:
            return f"all backends of {self.name} have weight 0"
        return "; ".join(holder.balancer.unavailable for holder in holders if holder.balancer.unavailable)
