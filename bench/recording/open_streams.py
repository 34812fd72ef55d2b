"""Streams that stay open through a gateway while something else happens:
`python -m bench.recording.open_streams PORT FILE SPEC`.

SPEC is JSON, see `Streams`. Each WebSocket and each gRPC stream sends a message ten times a second and wants it back
before the next one; each upload sends a piece as often, ends after 3 s, wants to hear of every byte, and another one
begins. On SIGTERM writes the counts and the failures to FILE, as JSON.
"""

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import uvloop

from bench.errors import BenchError
from bench.recording.recorder import READY, Recorder
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
    frame,
    header_block,
    split_frames,
    window_update,
)
from bench.setup.workload import GRPC_PATH, grpc_message

PAUSE_S = 0.1
UPLOAD_PIECES = 30
_PIECE = bytes(16 * 1024)
_ANSWER_S = 10.0
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@dataclass(frozen=True)
class Streams:
    """How many of each kind, and to which hosts."""

    count: int
    websocket_host: str
    upload_host: str
    grpc_host: str
    """Empty: no gRPC."""


@dataclass(frozen=True)
class StreamCounts:
    """What became of them."""

    opened: dict[str, int]
    """By kind."""
    messages: dict[str, int]
    """That came back, or uploads that were taken whole."""
    failures: list[str] = field(default_factory=list)


class OpenStreams(Recorder):
    """Keeps the streams open while the context lasts; `counts` afterwards."""

    def __init__(self, folder: Path, port: int, streams: Streams, *, core: int) -> None:
        super().__init__("open_streams", folder, [str(port)], [json.dumps(asdict(streams))], core=core, patience_s=30.0)

    @property
    def counts(self) -> StreamCounts:
        """What became of the streams."""
        return parse_counts("\n".join(self.lines))


def parse_counts(text: str) -> StreamCounts:
    """Read what this program wrote.

    Raises:
        BenchError: it is not that.
    """
    try:
        return StreamCounts(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise BenchError(f"the open streams said no figures: {text[-300:]}") from error


class _Running:
    """All streams of the process."""

    def __init__(self, port: int, streams: Streams) -> None:
        self._port = port
        self.streams = streams
        self.stopping = asyncio.Event()
        self.settled = asyncio.Event()
        """Each stream is open, or failed."""
        self._unsettled = streams.count * (3 if streams.grpc_host else 2)
        self.opened: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()
        self.failures: list[str] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def keep(self, kind: str, stream: Callable[["_Running", str], Awaitable[None]], host: str) -> None:
        """Run a stream to its end; note how it failed, if so."""
        try:
            await stream(self, host)
        except (OSError, EOFError, TimeoutError, BenchError) as error:
            self.failures.append(f"{kind}: {error or type(error).__name__}")
            self._settle()

    def note_open(self, kind: str) -> None:
        """Count a stream that is open."""
        self.opened[kind] += 1
        self._settle()

    def _settle(self) -> None:
        self._unsettled -= 1
        if self._unsettled <= 0:
            self.settled.set()

    async def pause(self) -> None:
        """Wait until the next message is due, or the end."""
        try:
            await asyncio.wait_for(self.stopping.wait(), PAUSE_S)
        except TimeoutError:
            return


async def _websocket(running: _Running, host: str) -> None:
    reader, writer = await running.connect()
    head = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    writer.write(f"{head}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {_KEY}\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _ANSWER_S)
    if not answer.startswith(b"HTTP/1.1 101 "):
        raise BenchError(f"not opened: {answer[:60]!r}")
    running.note_open("websocket")
    number = 0
    while not running.stopping.is_set():
        number += 1
        message = b"\x82\x88" + bytes(4) + number.to_bytes(8)
        writer.write(message)
        if await asyncio.wait_for(reader.readexactly(len(message)), _ANSWER_S) != message:
            raise BenchError("another message came back")
        running.messages["websocket"] += 1
        await running.pause()
    writer.close()


async def _uploads(running: _Running, host: str) -> None:
    reader, writer = await running.connect()
    running.note_open("upload")
    while not running.stopping.is_set():
        writer.write(f"POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        sent = 0
        for _ in range(UPLOAD_PIECES):
            writer.write(b"%x\r\n%b\r\n" % (len(_PIECE), _PIECE))
            sent += len(_PIECE)
            await writer.drain()
            await running.pause()
        writer.write(b"0\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _ANSWER_S)
        body = str(sent).encode()
        if not head.startswith(b"HTTP/1.1 200 "):
            raise BenchError(f"answered {head[:60]!r}")
        if await asyncio.wait_for(reader.readexactly(len(body)), _ANSWER_S) != body:
            raise BenchError("not all of it came through")
        running.messages["upload"] += 1
    writer.close()


async def _grpc(running: _Running, host: str) -> None:
    reader, writer = await running.connect()
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", host.encode())]
    fields += [(b":path", GRPC_PATH.encode()), (b"content-type", b"application/grpc"), (b"te", b"trailers")]
    writer.write(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, header_block(*fields)))
    conversation = _Conversation(reader, writer)
    message = grpc_message()
    is_opened = False
    while not running.stopping.is_set():
        writer.write(frame(DATA, 0, 1, message))
        await asyncio.wait_for(conversation.until(len(message)), _ANSWER_S)
        if not is_opened:
            running.note_open("grpc")
            is_opened = True
        running.messages["grpc"] += 1
        await running.pause()
    writer.write(frame(DATA, END_STREAM, 1))
    await asyncio.wait_for(conversation.until(None), _ANSWER_S)
    writer.close()


class _Conversation:
    """The answer of one HTTP/2 stream; heads are not read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()

    async def until(self, length: int | None) -> None:
        """Read so many bytes of data, or to the end of the stream."""
        taken = 0
        while length is None or taken < length:
            data = await self._reader.read(65536)
            if not data:
                raise EOFError("closed")
            self._buffer += data
            for kind, flags, _, payload in split_frames(self._buffer):
                if kind == RST_STREAM:
                    raise BenchError(f"reset with code {int.from_bytes(payload)}")
                if kind in (SETTINGS, PING) and not flags & ACK:
                    self._writer.write(frame(kind, ACK, 0, payload if kind == PING else b""))
                if kind == DATA and payload:
                    taken += len(payload)
                    self._writer.write(window_update(0, len(payload)) + window_update(1, len(payload)))
                if kind in (DATA, HEADERS) and flags & END_STREAM:
                    if length is None:
                        return
                    raise BenchError("the answer ended before the request")


async def _run(port: int, streams: Streams) -> str:
    running = _Running(port, streams)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.stopping.set)
    kinds = [("websocket", _websocket, streams.websocket_host), ("upload", _uploads, streams.upload_host)]
    if streams.grpc_host:
        kinds.append(("grpc", _grpc, streams.grpc_host))
    tasks = [
        asyncio.create_task(running.keep(kind, stream, host))
        for kind, stream, host in kinds
        for _ in range(streams.count)
    ]
    await running.settled.wait()
    print(READY, flush=True)
    await asyncio.gather(*tasks)
    return json.dumps(asdict(StreamCounts(dict(running.opened), dict(running.messages), running.failures[:20])))


if __name__ == "__main__":
    words = sys.argv[1:]
    written = uvloop.run(_run(int(words[0]), Streams(**json.loads(words[2]))))
    Path(words[1]).write_text(written)
