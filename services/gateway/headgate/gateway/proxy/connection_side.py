"""An endpoint's side that has a connection for itself, as in HTTP/1.1 and FastCGI; streams of HTTP/2 share one."""

import asyncio
from typing import TYPE_CHECKING, cast

from headgate.gateway.proxy.outbox import OutboxTransport
from headgate.gateway.proxy.sides import UpstreamSide

if TYPE_CHECKING:
    from headgate.gateway.health.circuit import Circuit
    from headgate.gateway.proxy.endpoint_pool import EndpointPool


class ConnectionSide(UpstreamSide):
    """Keeps the transport, and passes on who is slow. Subclasses are asyncio's protocols."""

    __slots__ = ("_connected", "_reading_paused", "circuit", "transport")

    def __init__(self, pool: "EndpointPool") -> None:
        super().__init__(pool)
        self.transport: OutboxTransport
        self._connected = False
        self._reading_paused = False
        self.circuit: Circuit | None = None
        """Counts this connection; None: nobody does."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        pool = self.pool
        self.transport = OutboxTransport(cast(asyncio.Transport, transport), pool.outbox, pool.config.buffer_high)
        self._connected = True

    def count_by(self, circuit: "Circuit | None") -> None:
        """Count this connection as one of the upstream's."""
        self.circuit = circuit

    def pause_reading(self) -> None:
        """Take no more of the answer for now, as the client is slow."""
        if not self._reading_paused and not self.transport.is_closing():
            self._reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on taking the answer."""
        if self._reading_paused:
            self._reading_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    # asyncio.Protocol

    def eof_received(self) -> bool:
        """Have the connection closed; only asyncio's own loop asks."""
        return False

    def pause_writing(self) -> None:
        """Stop taking the request's body from the client."""
        self.write_paused = True
        if self.exchange is not None:
            self.exchange.client.update_reading()

    def resume_writing(self) -> None:
        """Go on taking the request's body."""
        self.write_paused = False
        if self.exchange is not None:
            self.exchange.upstream_resumed()
