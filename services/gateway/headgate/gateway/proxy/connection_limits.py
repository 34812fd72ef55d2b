"""How many connections clients may have open at once: in all by worker, of one address in all workers."""

from headgate.gateway.counting.tally import Tally
from headgate.gateway.proxy.peer import Peer


class ConnectionLimits:
    """Counts connections from after their TLS handshake, which has a time limit of its own, to their end.

    Args:
        overall: how many one worker may have; each has descriptors and memory of its own.
        per_client: how many an address may have.
        by_address: where these are counted.
    """

    __slots__ = ("_by_address", "_open", "_overall", "_per_client")

    def __init__(self, overall: int | None, per_client: int | None, by_address: Tally | None = None) -> None:
        self._overall = overall
        self._per_client = per_client
        self._open = 0
        self._by_address = Tally() if by_address is None else by_address

    def enter(self, peer: Peer) -> str:
        """Count a connection; not if there are too many: which limit that is, `all` or `client`, else nothing."""
        if self._overall is not None and self._open >= self._overall:
            return "all"
        # Behind a trusted proxy are many clients.
        if self._per_client is not None and not peer.is_trusted:
            address = peer.address.decode("latin-1")
            if self._by_address.enter(address) > self._per_client:
                self._by_address.leave(address)
                return "client"
        self._open += 1
        return ""

    def leave(self, peer: Peer) -> None:
        """Count the end of a connection that was counted."""
        self._open -= 1
        if self._per_client is not None and not peer.is_trusted:
            self._by_address.leave(peer.address.decode("latin-1"))
