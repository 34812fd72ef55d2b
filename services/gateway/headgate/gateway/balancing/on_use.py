"""Endpoints that become slots with the first request: of a large table most are never asked for by one worker.

An upstream that is balanced by round robin over ready endpoints of equal weight, and that nobody watches, needs its
slots only when a request comes. Until then its addresses are one text, of some 20 bytes each, where a slot takes 300,
and it takes a quarter of the time to compile.
"""

from collections.abc import Callable

from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.model.connection import ConnectionSpec


class Seats:
    """Where the slots of such upstreams come from; one for each table.

    Args:
        directory: where slots are found.
        spec: how endpoints are connected to.
        next_offset: how many turns a ring begins with.
    """

    __slots__ = ("_directory", "_next_offset", "_spec")

    def __init__(self, directory: EndpointDirectory, spec: ConnectionSpec, next_offset: Callable[[], int]) -> None:
        self._directory = directory
        self._spec = spec
        self._next_offset = next_offset

    def take(self, address: str) -> EndpointSlot:
        """Return the slot of `address:port`."""
        host, _, port = address.rpartition(":")
        return self._directory.slot(host, int(port), self._spec)

    def ring(self, addresses: str) -> SmoothRoundRobin[EndpointSlot]:
        """Return a ring of all slots of `address:port address:port`."""
        return SmoothRoundRobin.of_equals(list(map(self.take, addresses.split(" "))), self._next_offset())


class OnUse:
    """The endpoints of one upstream before its first request."""

    __slots__ = ("_addresses", "_seats", "count")

    def __init__(self, seats: Seats, addresses: str, count: int) -> None:
        self._seats = seats
        self._addresses = addresses
        self.count = count

    def ring(self) -> SmoothRoundRobin[EndpointSlot]:
        """Make the slots."""
        return self._seats.ring(self._addresses)
