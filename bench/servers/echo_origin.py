"""Accepts upgrades to WebSocket and sends back whatever comes: `python -m bench.servers.echo_origin PORT`.

Frames are not looked at: they come back as they were sent, masked as no server would, which a tunnel must not mind.
"""

import asyncio
import base64
import hashlib
import re
import signal
import sys
from typing import cast

import uvloop

_KEY = re.compile(rb"\r\nSec-WebSocket-Key: *(\S+)\r\n", re.IGNORECASE)
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accept_value(key: bytes) -> bytes:
    """Sec-WebSocket-Accept for a key (RFC 6455, section 4.2.2)."""
    return base64.b64encode(hashlib.sha1(_GUID.join((key, b"")), usedforsecurity=False).digest())


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._head = b""
        self._is_open = False

    def data_received(self, data: bytes) -> None:
        if self._is_open:
            self._transport.write(data)
            return
        self._head += data
        if b"\r\n\r\n" in self._head:
            self._answer()

    def _answer(self) -> None:
        key = _KEY.search(self._head)
        if key is None:
            self._transport.write(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self._transport.close()
            return
        head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        self._transport.write(head + b"Sec-WebSocket-Accept: " + accept_value(key[1]) + b"\r\n\r\n")
        self._is_open, self._head = True, b""


async def _serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", port, backlog=4096)
    stopping = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    await stopping.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
