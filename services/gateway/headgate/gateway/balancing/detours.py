"""Sessions with pods that only the gateways of their own cluster reach.

The gateway that reaches a pod names it in the cookie, with its cluster, as two clusters may give their pods the same
addresses. All others find that name in the same table, and send the session to a gateway of that cluster.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.gateway.balancing.endpoints import EndpointSlot
from headgate.gateway.balancing.seats import EndpointState, Seat


class Detours(NamedTuple):
    """How pods are named, and reached, that are local to a cluster."""

    names: Mapping[EndpointSlot, bytes]
    """Pods of the own cluster."""
    gateways: Mapping[bytes, Sequence[EndpointSlot]]
    """Pods of other clusters, by name, each with the gateways of its cluster."""


def find_detours(seats: Sequence[Seat], standings: Iterable[EndpointState]) -> Detours | None:
    """Return how the local pods of an upstream are reached; None if it has none."""
    if not any(standing.cluster for standing in standings):
        return None
    gateways: defaultdict[str, list[EndpointSlot]] = defaultdict(list)
    for slot, standing in seats:
        if standing.is_hop and standing.is_reached:
            gateways[standing.cluster].append(slot)
    local = [(slot, standing) for slot, standing in seats if standing.cluster and not standing.is_hop]
    return Detours(
        {slot: _name(slot, standing) for slot, standing in local if standing.is_reached},
        {
            _name(slot, standing): gateways[standing.cluster]
            for slot, standing in local
            if not standing.is_reached and standing.cluster in gateways
        },
    )


def _name(slot: EndpointSlot, standing: EndpointState) -> bytes:
    return b"%b@%b" % (slot.name, standing.cluster.encode())
