"""How a client's connection ends, whatever was under way."""

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.http1.states import CLOSED, HEAD
from headgate.gateway.proxy.outbox import OutboxTransport
from headgate.gateway.proxy.sides import ClientSide


class ClosingSide(ClientSide):
    """The transport of a client's side, and the ways to part with it."""

    __slots__ = ("_context", "_until_close", "state", "transport")

    transport: OutboxTransport

    def __init__(self, context: ProxyContext) -> None:
        super().__init__()
        self._context = context
        self.state: int = HEAD
        self._until_close = False
        """The answer under way ends with the connection."""

    def _close_transport(self) -> None:
        """Close once everything is sent, which the client has some time to take."""
        self.state = CLOSED
        self.transport.delivery = None
        self.deadline = self._context.clock.now + self._context.config.body_timeout_s
        self.transport.close()

    def cut_off(self) -> None:
        """Close in the middle of an answer; reset the connection where its end would pass for the answer's."""
        if self._until_close:
            self.state = CLOSED
            self.transport.reset()
        else:
            self._close_transport()

    def taken(self) -> int:
        """Count what the client has acknowledged, with heads and whatever else was around the bodies."""
        return self.transport.delivered()

    def unsent(self) -> int:
        """Count what waits for the client to read."""
        return self.transport.get_write_buffer_size()

    def announce_drain(self) -> None:
        """Say nothing: HTTP/1.1 has no word for it but that of the next answer."""

    def abort(self) -> None:
        """Close at once; the kernel would go on with what the client does not take, for as long as it pleases."""
        self.transport.reset()
