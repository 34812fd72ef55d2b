"""What balancing keeps of an upstream's endpoints: where each is, and what it may get.

Endpoints are values of the table and large. Of ten thousand of them few differ in anything but their address, so the
rest is shared: a seat is a slot and a standing, and a revision of the upstream takes over the seats of those that it
left as they were.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Protocol, TypeVar

from headgate.common.table import Balancing, Endpoint
from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot
from headgate.gateway.balancing.levels import Place, nearness
from headgate.gateway.model.connection import ConnectionSpec

Rank = tuple[int, int]
"""Failover level and nearness; the lowest is preferred."""
PLAIN_RANK: Rank = 0, 0


class EndpointState:
    """All that matters of an endpoint beside its address. Told apart by identity, which is the faster for it."""

    __slots__ = ("cluster", "is_hop", "is_reached", "rank", "ready", "serving", "terminating", "weight")

    def __init__(self, endpoint: Endpoint, rank: Rank, *, is_reached: bool = True) -> None:
        self.cluster = endpoint.cluster if endpoint.is_local or endpoint.hop else ""
        """Empty unless it matters for who reaches it."""
        self.is_hop = bool(endpoint.hop)
        self.is_reached = is_reached
        """By this gateway."""
        self.ready = endpoint.ready and is_reached
        self.serving = endpoint.serving and is_reached
        self.terminating = endpoint.terminating
        self.weight = endpoint.weight
        self.rank = rank

    @property
    def may_finish_sessions(self) -> bool:
        """Whether requests of sessions that it has may go on to it, though it gets no others."""
        return self.ready or (self.serving and self.terminating)


Seat = tuple[EndpointSlot, EndpointState]
"""One endpoint of one upstream."""
_FACTS = attrgetter("ready", "serving", "terminating", "weight", "priority", "is_local", "hop")
_FACTS_AND_PLACE = attrgetter(
    "ready", "serving", "terminating", "weight", "priority", "is_local", "hop", "zone", "cluster"
)


HOPS: Mapping[str, ConnectionSpec] = {"http": ConnectionSpec(is_hop=True)}


def reaches(place: Place, endpoint: Endpoint) -> bool:
    """Whether a gateway may ask an endpoint: pods that are local to a cluster there, its gateways elsewhere."""
    is_own = bool(endpoint.cluster) and endpoint.cluster == place.cluster
    return not is_own if endpoint.hop else is_own or not endpoint.is_local


class Seating:
    """Gives the endpoints of one upstream their seats.

    Args:
        balancing: what the upstream wants.
        directory: where slots are found.
        place: where this gateway is.
        spec: how its endpoints are connected to.
        named: the same for those that have a DNS name, by address and port.
        hops: the same for gateways of other clusters, by what they speak.
    """

    def __init__(
        self,
        balancing: Balancing,
        directory: EndpointDirectory,
        place: Place,
        spec: ConnectionSpec,
        named: Mapping[tuple[str, int], ConnectionSpec] | None = None,
        hops: Mapping[str, ConnectionSpec] = HOPS,
    ) -> None:
        self._locality = balancing.locality
        self._facts_of = _FACTS if balancing.locality == "none" else _FACTS_AND_PLACE
        self._directory = directory
        self._place = place
        self._spec = spec
        self._named = named or {}
        self._hops = hops
        self._standings: dict[tuple[object, ...], EndpointState] = {}

    def seat(self, endpoints: Iterable[Endpoint]) -> list[Seat]:
        """Return a seat for each endpoint."""
        standings, facts_of = self._standings, self._facts_of
        seats: list[Seat] = []
        for endpoint in endpoints:
            facts = facts_of(endpoint)
            if endpoint.is_local or endpoint.hop:
                facts = (*facts, endpoint.cluster)
            standing = standings.get(facts)
            if standing is None:
                is_reached = reaches(self._place, endpoint)
                standing = standings[facts] = EndpointState(endpoint, self._rank(endpoint), is_reached=is_reached)
            seats.append((self._slot(endpoint), standing))
        return seats

    def _slot(self, endpoint: Endpoint) -> EndpointSlot:
        address, port = endpoint.address, endpoint.port
        if endpoint.hop:
            return self._directory.slot(address, port, self._hops[endpoint.hop])
        spec = self._named.get((address, port), self._spec) if self._named else self._spec
        return self._directory.slot(address, port, spec)

    def _rank(self, endpoint: Endpoint) -> Rank:
        if self._locality == "none":
            return endpoint.priority, 0
        return endpoint.priority, nearness(self._place, Place(endpoint.zone, endpoint.cluster), self._locality)


class Readiness(Protocol):
    """What says whether an endpoint may get requests: an endpoint, or its standing."""

    @property
    def ready(self) -> bool:
        """Gets requests."""

    @property
    def serving(self) -> bool:
        """May still answer although not ready."""

    @property
    def terminating(self) -> bool:
        """Is about to end."""


R = TypeVar("R", bound=Readiness)


def usable_endpoints(endpoints: Sequence[R]) -> list[R]:
    """Return who may get requests: the ready ones; if there is none, those that still serve while they terminate.

    As kube-proxy does for terminating endpoints (KEP-1669).
    """
    ready = [endpoint for endpoint in endpoints if endpoint.ready]
    return ready or [endpoint for endpoint in endpoints if endpoint.serving and endpoint.terminating]


def why_unavailable(key: str, endpoints: Sequence[Readiness], reached: Sequence[Readiness]) -> str:
    """Say why an upstream has nobody to send to, given its endpoints and those of them that this gateway may ask."""
    if not endpoints:
        return f"{key} has no endpoints"
    if not reached:
        return f"none of the {len(endpoints)} endpoints of {key} can be reached from here"
    if usable_endpoints(reached):
        return f"all ready endpoints of {key} have weight 0"
    return f"none of the {len(reached)} endpoints of {key} is ready"
