"""Endpoints that become slots with the first request: of a large table most are never asked for by one worker.

An upstream that is balanced by round robin over ready endpoints of equal weight, and that nobody watches, needs its
slots only when a request comes. Until then its addresses are one text, of some 20 bytes each, where a slot takes 300.
"""

from collections.abc import Callable

from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.model.connection import ConnectionSpec


class SlotSource:
    """Makes the slots of such upstreams; one for each table.

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

    def ring(self, addresses: str) -> SmoothRoundRobin[EndpointSlot]:
        """Return a ring of the slots of `address:port address:port`."""
        parted = (address.rpartition(":") for address in addresses.split(" "))
        slots = [self._directory.slot(host, int(port), self._spec) for host, _, port in parted]
        return SmoothRoundRobin.of_equals(slots, self._next_offset())


class OnUse:
    """The endpoints of one upstream before its first request."""

    __slots__ = ("_addresses", "_source", "count")

    def __init__(self, source: SlotSource, addresses: str, count: int) -> None:
        self._source = source
        self._addresses = addresses
        self.count = count

    def ring(self) -> SmoothRoundRobin[EndpointSlot]:
        """Make the slots."""
        return self._source.ring(self._addresses)
