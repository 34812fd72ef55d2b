"""A gRPC service that echoes messages, unary or streaming, over HTTP/2 without TLS:
`python -m bench.servers.grpc_origin PORT`.

It answers what comes without reading header blocks; see `bench.servers.frames`.
"""

import asyncio
import signal
import sys
from typing import cast

import uvloop

from bench.servers.frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW,
    WINDOW_UPDATE,
    frame,
    header_block,
    split_frames,
    window_update,
)

_MAX_STREAMS, _INITIAL_WINDOW = 3, 4
_SETTINGS = frame(
    SETTINGS, 0, 0, _MAX_STREAMS.to_bytes(2) + (1000).to_bytes(4) + _INITIAL_WINDOW.to_bytes(2) + (1 << 20).to_bytes(4)
)
_STATUS_200 = b"\x88"
_HEAD = _STATUS_200 + header_block((b"content-type", b"application/grpc"))
_TRAILERS = header_block((b"grpc-status", b"0"))


class _Connection(asyncio.Protocol):
    """One client. Messages are small: a stream's own window is never used up."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._is_open = False
        self._began: set[int] = set()
        self._window = WINDOW
        self._received = 0
        self._held: list[tuple[bytes, int]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(_SETTINGS + window_update(0, (1 << 30) - WINDOW))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_open:
            if len(self._buffer) < len(PREFACE):
                return
            del self._buffer[: len(PREFACE)]
            self._is_open = True
        out: list[bytes] = []
        for kind, flags, stream, payload in split_frames(self._buffer):
            if kind == DATA:
                self._echo(stream, payload, bool(flags & END_STREAM), out)
            elif kind == HEADERS and flags & END_STREAM:
                out.append(frame(HEADERS, END_HEADERS | END_STREAM, stream, _HEAD + _TRAILERS))
            elif kind == RST_STREAM:
                self._began.discard(stream)
            elif kind in (SETTINGS, PING) and not flags & ACK:
                out.append(frame(kind, ACK, 0, payload if kind == PING else b""))
            elif kind == WINDOW_UPDATE and stream == 0:
                self._window += int.from_bytes(payload)
        self._flush(out)

    def _echo(self, stream: int, payload: bytes, is_last: bool, out: list[bytes]) -> None:
        self._received += len(payload)
        if self._received >= 1 << 20:
            out.append(window_update(0, self._received))
            self._received = 0
        answer = b""
        if stream not in self._began:
            answer = frame(HEADERS, END_HEADERS, stream, _HEAD)
            self._began.add(stream)
        if payload:
            answer += frame(DATA, 0, stream, payload)
        if is_last:
            answer += frame(HEADERS, END_HEADERS | END_STREAM, stream, _TRAILERS)
            self._began.discard(stream)
        elif payload:
            answer += window_update(stream, len(payload))
        self._held.append((answer, len(payload)))

    def _flush(self, out: list[bytes]) -> None:
        """Send control frames, and answers as far as the connection's window goes."""
        sent = 0
        for answer, length in self._held:
            if length > self._window:
                break
            self._window -= length
            out.append(answer)
            sent += 1
        del self._held[:sent]
        if out:
            self._transport.write(b"".join(out))


async def _serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", port, backlog=4096)
    stopping = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    await stopping.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
