"""The endpoints of one upstream, balanced.

Routes refer to an `UpstreamHolder`, never to endpoints: an endpoint change stores one attribute of one holder, whatever
the number of routes that use it.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from headgate.common.table import Endpoint, Upstream
from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot
from headgate.gateway.balancing.round_robin import SmoothRoundRobin

if TYPE_CHECKING:
    from headgate.gateway.proxy.pool import EndpointPool


def usable_endpoints(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """Return who may get requests: the ready ones; if there is none, those that still serve while they terminate.

    As kube-proxy does for terminating endpoints (KEP-1669).
    """
    ready = [endpoint for endpoint in endpoints if endpoint.ready]
    return ready or [endpoint for endpoint in endpoints if endpoint.serving and endpoint.terminating]


class UpstreamBalancer:
    """One revision of an upstream."""

    __slots__ = ("_ring", "unavailable")

    def __init__(self, ring: SmoothRoundRobin[EndpointSlot], unavailable: str) -> None:
        self._ring = ring
        self.unavailable = unavailable
        """Why there is nothing to choose; empty if there is."""

    def choose(self, tried: "Collection[EndpointPool]") -> "EndpointPool | None":
        """Return the next endpoint's pool, a tried one only if there is no other; None if there is none."""
        slot = self._ring.choose((lambda slot: slot.pool in tried) if tried else None)
        if slot is None:
            return None
        return slot.pool or slot.open_pool()

    def adopt(self, previous: "UpstreamBalancer") -> None:
        """Take over the balancing state for unchanged endpoints."""
        self._ring.adopt(previous._ring)


def compile_upstream(upstream: Upstream, directory: EndpointDirectory, offset: int) -> UpstreamBalancer:
    """Make the balancer of an upstream, beginning `offset` turns into its round."""
    ring = SmoothRoundRobin(
        (
            (directory.slot(endpoint.address, endpoint.port, upstream.protocol), endpoint.weight)
            for endpoint in usable_endpoints(upstream.endpoints)
        ),
        offset,
    )
    return UpstreamBalancer(ring, "" if len(ring) else why_unavailable(upstream))


def why_unavailable(upstream: Upstream) -> str:
    """Say why an upstream has nobody to send to."""
    if upstream.unavailable:
        return upstream.unavailable
    if not upstream.endpoints:
        return f"{upstream.key} has no endpoints"
    if usable_endpoints(upstream.endpoints):
        return f"all ready endpoints of {upstream.key} have weight 0"
    return f"none of the {len(upstream.endpoints)} endpoints of {upstream.key} is ready"


def missing_balancer(key: str) -> UpstreamBalancer:
    """Stand in for an upstream that routes refer to and the table lacks."""
    return UpstreamBalancer(SmoothRoundRobin(()), f"{key} is not in the table")


class UpstreamHolder:
    """Where routes find the current revision of an upstream."""

    __slots__ = ("__weakref__", "balancer", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self.balancer = missing_balancer(key)
