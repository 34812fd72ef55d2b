"""The load on one upstream that other workers of the gateway put on it."""

from typing import NamedTuple

from headgate.gateway.counting.peers import FOR_EVER, Peers


class Load(NamedTuple):
    """What is under way."""

    requests: int
    connections: int
    pending: int


NO_LOAD = Load(0, 0, 0)


class SharedLoad:
    """Shows this worker's load on an upstream, and sums up that of the others.

    Args:
        peers: how they are heard.
        upstream: its key.
    """

    __slots__ = ("_peers", "_place")

    def __init__(self, peers: Peers, upstream: str) -> None:
        self._peers = peers
        self._place = peers.place(f"upstream\0{upstream}")

    def of_others(self) -> Load:
        """Return the load of all other workers together."""
        shown = self._peers.read(self._place)
        if not shown:
            return NO_LOAD
        requests, connections, pending = (int(sum(numbers)) for numbers in list(zip(*shown, strict=True))[:3])
        return Load(requests, connections, pending)

    def show(self, requests: int, connections: int, pending: int) -> None:
        """Show this worker's."""
        if requests or connections or pending:
            self._peers.write(self._place, requests, connections, pending, FOR_EVER)
        else:
            self._peers.withdraw(self._place)

    def withdraw(self) -> None:
        """Show nothing any more."""
        self._peers.withdraw(self._place)
