"""What all streams of one worker share."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headgate.gateway.model.networks import Network, is_within
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.streams.log import StreamRecord
from headgate.gateway.streams.route import CompiledStream
from headgate.gateway.streams.stats import StreamStats

if TYPE_CHECKING:
    from headgate.gateway.tls.policy import HostTls


class Endable(Protocol):
    """A connection or session that the drain can end."""

    def abort(self) -> None:
        """End at once."""

    def count_bytes(self) -> None:
        """Bring the route's counters up to date."""


@dataclass(slots=True)
class StreamContext:
    """Handed to every stream; only the set of what is open changes."""

    stats: StreamStats
    server_tls: ssl.SSLContext
    """For routes that end TLS: presents the certificate for the server name."""
    tls_of: "Callable[[HostTls | None, Callable[[], Sequence[str]]], ssl.SSLContext]"
    """Makes the same for routes that say how TLS is spoken, or whose listener has certificates of its own."""
    log: Callable[[StreamRecord], None] | None = None
    preface_timeout_s: float = 15.0
    """For a client to send what is read before it is served: PROXY header, ClientHello, TLS handshake."""
    proxy_networks: tuple[Network, ...] = ()
    """Peers that send PROXY headers where they are expected; all without any."""
    dialler: Dialler = UNBOUNDED
    """Opens connections to endpoints."""
    max_udp_sessions: int = 4096
    """Of a route that has no bound of its own: each takes a socket."""
    open: set[Endable] = field(default_factory=set)
    pending: set[asyncio.Task[None]] = field(default_factory=set)
    """Connections that are not streams yet, nor known to be others'."""
    certificates_at: Callable[[str], Sequence[str]] = lambda _: ()
    """Finds the keys of the certificates of a listener of the table by its key; none: all of the table."""
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever the last one ends."""

    def tls_for(self, route: CompiledStream) -> ssl.SSLContext:
        """Return what ends the TLS of a route's connections."""
        listener = route.entry.listener
        if route.tls is None and not listener:
            return self.server_tls
        if route.server_tls is None:
            route.server_tls = self.tls_of(route.tls, lambda: self.certificates_at(listener) if listener else ())
        return route.server_tls

    async def ended(self) -> None:
        """Wait until nothing is open, nor about to be."""
        while self.open or self.pending:
            if self.pending:
                await asyncio.wait(self.pending)
            else:
                await self.emptied.wait()

    def trusts(self, address: str) -> bool:
        """Tell whether a peer may say who its client is."""
        return not self.proxy_networks or is_within(address, self.proxy_networks)

    def enter(self, stream: Endable) -> None:
        """Put a stream on the list of those that are open."""
        self.open.add(stream)
        self.emptied.clear()

    def leave(self, stream: Endable) -> None:
        """Take it off, as it ended."""
        self.open.discard(stream)
        if not self.open:
            self.emptied.set()
