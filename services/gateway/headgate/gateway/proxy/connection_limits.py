"""How many connections clients may have open at once, counted per worker."""

from headgate.gateway.proxy.peer import Peer


class ConnectionLimits:
    """Counts connections from after their TLS handshake, which has a time limit of its own, to their end."""

    __slots__ = ("_by_address", "_open", "_overall", "_per_client")

    def __init__(self, overall: int | None, per_client: int | None) -> None:
        self._overall = overall
        self._per_client = per_client
        self._open = 0
        self._by_address: dict[bytes, int] = {}

    def enter(self, peer: Peer) -> str:
        """Count a connection; not if there are too many: which limit that is, `all` or `client`, else nothing."""
        if self._overall is not None and self._open >= self._overall:
            return "all"
        # Behind a trusted proxy are many clients.
        if self._per_client is not None and not peer.is_trusted:
            count = self._by_address.get(peer.address, 0)
            if count >= self._per_client:
                return "client"
            self._by_address[peer.address] = count + 1
        self._open += 1
        return ""

    def leave(self, peer: Peer) -> None:
        """Count the end of a connection that was counted."""
        self._open -= 1
        if self._per_client is not None and not peer.is_trusted:
            count = self._by_address.pop(peer.address) - 1
            if count:
                self._by_address[peer.address] = count
