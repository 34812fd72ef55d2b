"""Writes of one turn of the event loop, handed to the kernel together at its end.

A turn serves every connection that has something to read. Sent one by one, each message wakes the process at the other
end for itself; sent together, the first wakes it and the others find it awake, and each system call is cheaper. What a
connection writes in one turn also leaves in one piece.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios
from typing import Any, Final

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.exchange.pace import Pace

_NO_BYTES: Final = bytes(4)
_BYTES_ACKED: Final = struct.Struct("=Q")
_BYTES_ACKED_AT: Final = 120
"""Where Linux has the number in `tcp_info`."""
_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""Linger for no time."""


class Outbox:
    """What the connections of one event loop have written in the current turn."""

    __slots__ = ("_waiting", "turn")

    def __init__(self) -> None:
        self._waiting: list[OutboxTransport] = []
        self.turn = 0
        """Number of the current turn of the event loop, of those in which something was written."""

    def add(self, transport: "OutboxTransport") -> None:
        """Flush a transport at the end of this turn."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(transport)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.turn += 1
        for transport in waiting:
            try:
                transport.flush()
            except Exception as error:
                # It costs this connection. The others must not wait for bytes that nobody sends any more.
                transport.abort()
                told = {"message": "what was written to a connection cannot be sent", "exception": error}
                asyncio.get_running_loop().call_exception_handler(told)


class OutboxTransport:
    """A transport whose writes wait for the end of the turn. Order is kept: closing sends what waits first."""

    __slots__ = (
        "_high",
        "_outbox",
        "_pieces",
        "_size",
        "_transport",
        "can_write_eof",
        "delivery",
        "get_extra_info",
        "is_closing",
        "pause_reading",
        "resume_reading",
    )

    def __init__(self, transport: asyncio.Transport, outbox: Outbox, high: int) -> None:
        """Wrap a transport; `high` is the number of unsent bytes above which it pauses its protocol."""
        transport.set_write_buffer_limits(high=high)
        self._transport = transport
        self._outbox = outbox
        self._high = high
        self._pieces: list[bytes] = []
        self._size = 0
        self.delivery: Pace | None = None
        """At which the peer takes what was written last; None: nobody has waited for that yet."""
        self.can_write_eof = transport.can_write_eof
        self.get_extra_info: Any = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def write(self, data: bytes) -> None:
        """Send at the end of the turn, or at once when much waits: one turn may read megabytes of a fast peer."""
        if not self._pieces:
            self._outbox.add(self)
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._high:
            self.flush()

    def get_write_buffer_size(self) -> int:
        """Count the bytes that are not sent yet."""
        return self._size + self._transport.get_write_buffer_size()

    def flush(self) -> None:
        """Send now."""
        pieces = self._pieces
        if pieces:
            self._pieces = []
            self._size = 0
            if not self.is_closing():
                if len(pieces) == 1:
                    self._transport.write(pieces[0])
                else:
                    self._transport.writelines(pieces)

    def write_eof(self) -> None:
        """End the sending half."""
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        """Close once everything is sent."""
        self.flush()
        self._transport.close()

    def undelivered(self) -> bool:
        """Tell whether the peer has not taken everything, by what the kernel knows."""
        return self._asks_kernel(termios.TIOCOUTQ)

    def delivered(self) -> int:
        """Count the bytes that the peer has acknowledged, by what the kernel knows; 0 where it does not."""
        connected = self.get_extra_info("socket")
        if connected is None or connected.fileno() < 0:
            return 0
        known = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED.size + _BYTES_ACKED_AT)
        return int(_BYTES_ACKED.unpack_from(known, _BYTES_ACKED_AT)[0])

    def delivery_ends(self, config: ProxyConfig, now: float) -> float:
        """Say until when to wait for a client that has yet to take what was written: 0 if it has taken everything.

        The time is over for one that took too little in the period before `now`.
        """
        if not (self.get_write_buffer_size() or self.undelivered()):
            self.delivery = None
            return 0.0
        taken = self.delivered()
        if self.delivery is None:
            self.delivery = Pace(taken, now)
        return self.delivery.ends(taken, config.min_taken, config.body_timeout_s, now)

    def has_unread(self) -> bool:
        """Tell whether the peer has sent something that was not read yet, by what the kernel knows."""
        return self._asks_kernel(termios.FIONREAD)

    def _asks_kernel(self, count: int) -> bool:
        """Tell whether a count of bytes that the kernel keeps for the connection is not 0."""
        connected = self.get_extra_info("socket")
        if connected is None or connected.fileno() < 0:
            return False
        return fcntl.ioctl(connected.fileno(), count, _NO_BYTES) != _NO_BYTES

    def reset(self) -> None:
        """Close at once by a reset: the kernel forgets what it has not delivered, and nobody takes it for an end."""
        connected = self.get_extra_info("socket")
        if connected is not None:
            # It may be closed already.
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.abort()

    def abort(self) -> None:
        """Close at once."""
        self._pieces = []
        self._size = 0
        self._transport.abort()
