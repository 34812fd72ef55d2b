"""What HTTP/3 needs of the QUIC connection below it."""

from typing import Protocol


class Link(Protocol):
    """A QUIC connection of a client, after its handshake. Nothing raises: what a closed connection is told is lost."""

    def serves(self, host: bytes) -> bool:
        """Tell whether a host may be reached by this connection: lower case, empty if a request names none."""

    def open_control(self, data: bytes) -> int:
        """Open a stream of one direction, send its first bytes, and return its number."""

    def send(self, stream_id: int, data: bytes, *, end: bool) -> None:
        """Send at the end of this turn of the event loop, as the client's windows and the network let it."""

    def flush(self) -> None:
        """Send now what can be sent."""

    def unsent(self, stream_id: int) -> int:
        """Count the bytes of a stream that were not sent for the first time yet."""

    def reset(self, stream_id: int, code: int) -> None:
        """Send nothing more on a stream, what waits included."""

    def stop(self, stream_id: int, code: int) -> None:
        """Ask the client to send nothing more on a stream."""

    def resume(self) -> None:
        """Go on handing over what came, in this turn of the event loop or the next."""

    def end(self, code: int, reason: str) -> None:
        """Close the connection, and say why."""
