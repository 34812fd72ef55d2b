"""What serves HTTP/3 beside a port of TCP, as far as that has to know; `quic.endpoint` does."""

from typing import Protocol


class DatagramListener(Protocol):
    """A UDP port on which clients open connections."""

    def start(self) -> None:
        """Read datagrams."""

    @property
    def is_used(self) -> bool:
        """Whether there is a connection."""

    def sweep(self, now: float) -> None:
        """Look at the deadlines of handshakes."""

    def stop_accepting(self) -> None:
        """Take no new connections."""

    def close(self) -> None:
        """Close the socket."""
