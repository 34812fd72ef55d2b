"""A client of HTTP/3 on aioquic, another implementation than the gateway's own."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import cast

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)
from aioquic.tls import SessionTicket

from headgate.gateway.proxy.http3.numbers import GOAWAY, read_integer
from headgate.gateway.proxy.http3.qpack import decode

PATIENCE_S = 10.0
Fields = Iterable[tuple[bytes, bytes]]


@dataclass
class Answer:
    """What came on a stream."""

    heads: list[list[tuple[bytes, bytes]]] = field(default_factory=list)
    """In order: those of 1xx, of the answer, and trailers."""
    body: bytes = b""
    ended: bool = False
    reset: int | None = None
    """Code, if the gateway has reset the stream."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def status(self) -> int:
        """Of the answer, behind those with 1xx."""
        return int(dict(self.final)[b":status"])

    @property
    def final(self) -> list[tuple[bytes, bytes]]:
        return next(head for head in self.heads if not dict(head)[b":status"].startswith(b"1"))

    @property
    def trailers(self) -> dict[bytes, bytes]:
        return dict(next((head for head in self.heads if b":status" not in dict(head)), []))

    def __getitem__(self, name: bytes) -> bytes:
        return b", ".join(value for each, value in self.final if each == name)

    async def until_over(self) -> "Answer":
        """Wait for the end of the stream."""
        return await self.until(lambda: self.ended or self.reset is not None)

    async def until(self, is_so: object) -> "Answer":
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():  # type: ignore[operator]
                self.changed.clear()
                await self.changed.wait()
        return self


class _Anonymous(QuicConnection):
    """A connection whose client has ids of no length, and so offers no further ones; aioquic would."""

    def _replenish_connection_ids(self) -> None:
        pass


class Http3Client(QuicConnectionProtocol):
    """A connection."""

    def __init__(self, quic: QuicConnection, *, quiet: bool = False) -> None:
        super().__init__(quic)
        self.quic = quic
        self.is_quiet = quiet
        if not quiet:
            self.http = H3Connection(quic)
        self.answers: dict[int, Answer] = {}
        self.handshake: HandshakeCompleted | None = None
        self.terminated: ConnectionTerminated | None = None
        self.frames: list[QuicEvent] = []
        self.stopped: dict[int, int] = {}
        """Streams of which the gateway wants no more, with its codes."""
        self.reads = True
        """Whether what comes is read at all."""
        self._transports: list[asyncio.BaseTransport] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._transports.append(transport)

    def datagram_received(self, data: bytes | str, addr: object) -> None:
        if self.reads:
            super().datagram_received(data, addr)

    def quic_event_received(self, event: QuicEvent) -> None:
        self.frames.append(event)
        if isinstance(event, HandshakeCompleted):
            self.handshake = event
        elif isinstance(event, ConnectionTerminated):
            self.terminated = event
            for answer in self.answers.values():
                answer.reset = answer.reset or -1
                answer.changed.set()
        elif isinstance(event, StreamReset):
            answer = self.answers.setdefault(event.stream_id, Answer())
            answer.reset = event.error_code
            answer.changed.set()
        elif isinstance(event, StopSendingReceived):
            self.stopped[event.stream_id] = event.error_code
        elif self.is_quiet and isinstance(event, StreamDataReceived) and not event.stream_id % 4:
            self._take_quietly(event)
        if not self.is_quiet:
            for each in self.http.handle_event(event):
                self._take(each)

    def _take_quietly(self, event: StreamDataReceived) -> None:
        """Read the status of an answer, and nothing else."""
        answer = self.answers[event.stream_id]
        if not answer.heads:
            answer.heads.append(decode(event.data[2 : 2 + event.data[1]], 1 << 16))
        answer.ended = event.end_stream
        answer.changed.set()

    def _take(self, event: H3Event) -> None:
        if not isinstance(event, HeadersReceived | DataReceived):
            return
        answer = self.answers.setdefault(event.stream_id, Answer())
        if isinstance(event, HeadersReceived):
            answer.heads.append(list(event.headers))
        else:
            answer.body += event.data
        answer.ended = event.stream_ended
        answer.changed.set()

    def begin(self, headers: Fields, *, end: bool = False) -> int:
        """Send a head; give the stream's number."""
        stream_id = self.quic.get_next_available_stream_id()
        self.answers[stream_id] = Answer()
        self.http.send_headers(stream_id, list(headers), end)
        self.transmit()
        return stream_id

    def send(self, stream_id: int, data: bytes, *, end: bool = False) -> None:
        """Send more of a body."""
        self.http.send_data(stream_id, data, end)
        self.transmit()

    def raw(self, data: bytes, *, end: bool = False, stream_id: int | None = None, one_way: bool = False) -> int:
        """Send bytes as they are, on a new stream unless one is named."""
        if stream_id is None:
            stream_id = self.quic.get_next_available_stream_id(is_unidirectional=one_way)
            self.answers[stream_id] = Answer()
        self.quic.send_stream_data(stream_id, data, end)
        self.transmit()
        return stream_id

    def open_stream(self) -> int:
        """Open a stream and send nothing on it, so that it can be reset or stopped before its request."""
        stream_id = self.quic.get_next_available_stream_id()
        self.answers[stream_id] = Answer()
        self.quic._get_or_create_stream_for_send(stream_id)  # noqa: SLF001 - aioquic resets and stops only streams that it knows
        return stream_id

    async def ask(self, path: str = "/", host: str = "a.example", body: bytes | None = None, **more: object) -> Answer:
        """Send a request, and wait for its answer."""
        stream_id = self.begin(head_of(path, host, "GET" if body is None else "POST", **more), end=body is None)
        if body is not None:
            self.send(stream_id, body, end=True)
        return await self.answers[stream_id].until_over()

    def choose_first_id(self, first_id: bytes) -> None:
        """Name a connection id in the first packet."""
        self.quic._peer_cid.cid = first_id  # noqa: SLF001 - aioquic draws it
        self.quic._original_destination_connection_id = first_id  # noqa: SLF001

    def acknowledged(self, stream_id: int) -> int:
        """Bytes of a stream that the gateway has acknowledged."""
        return int(self.quic._streams[stream_id].sender._buffer_start)  # noqa: SLF001 - shown nowhere else

    def goaways(self) -> list[int]:
        """The numbers in GOAWAY frames that came."""
        control = b"".join(
            event.data for event in self.frames if isinstance(event, StreamDataReceived) and event.stream_id == 3
        )
        found, at = [], 1
        while at < len(control):
            kind, at = read_integer(control, at)
            length, at = read_integer(control, at)
            if kind == GOAWAY:
                found.append(read_integer(control, at)[0])
            at += length
        return found

    @property
    def retries(self) -> int:
        """Retry packets that came."""
        return int(self.quic._retry_count)  # noqa: SLF001 - shown nowhere else

    async def until_closed(self) -> ConnectionTerminated:
        """Wait for the end of the connection."""
        async with asyncio.timeout(PATIENCE_S):
            await self.wait_closed()
        return cast(ConnectionTerminated, self.terminated)

    async def move(self) -> None:
        """Go on from another port, as behind a NAT that has forgotten."""
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))

    def close_sockets(self) -> None:
        for transport in self._transports:
            transport.close()


def first_datagrams(server_name: str = "a.example") -> list[bytes]:
    """What a client sends before anything came back."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name=server_name)
    quic = QuicConnection(configuration=configuration)
    quic.connect(("127.0.0.1", 1), now=0.0)
    return [data for data, _ in quic.datagrams_to_send(now=0.0)]


def head_of(path: str = "/", host: str = "a.example", method: str = "GET", **more: object) -> list[tuple[bytes, bytes]]:
    """The fields of a request; names of further ones have `_` for `-`."""
    fields = [
        (b":method", method.encode()),
        (b":scheme", b"https"),
        (b":authority", host.encode()),
        (b":path", path.encode()),
    ]
    return fields + [(name.replace("_", "-").encode(), str(value).encode()) for name, value in more.items()]


def client_configuration(server_name: str = "a.example") -> QuicConfiguration:
    """That of a client who takes any certificate."""
    return QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name=server_name, verify_mode=ssl.CERT_NONE)


@contextlib.asynccontextmanager
async def http3_client(
    port: int,
    server_name: str = "a.example",
    *,
    waits: bool = True,
    quiet: bool = False,
    keeps: Callable[[SessionTicket], None] | None = None,
    first_id: bytes = b"",
    address: str = "127.0.0.1",
    **options: object,
) -> AsyncIterator[Http3Client]:
    """Connect to a port of this machine.

    Args:
        port: of UDP.
        server_name: that is asked for.
        waits: for the handshake.
        quiet: opens no streams of its own, and reads of answers the status.
        keeps: takes session tickets.
        address: to connect to, and from.
        first_id: connection id that the first packet names; a random one by default.
        options: of aioquic's `QuicConfiguration`.
    """
    configuration = client_configuration(server_name)
    for name, value in options.items():
        setattr(configuration, name, value)
    kind = QuicConnection if configuration.connection_id_length else _Anonymous
    client = Http3Client(kind(configuration=configuration, session_ticket_handler=keeps), quiet=quiet)
    if first_id:
        client.choose_first_id(first_id)
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: client, local_addr=(address, 0))
    try:
        client.connect((address, port, 0, 0) if ":" in address else (address, port))
        if waits:
            async with asyncio.timeout(PATIENCE_S):
                await client.wait_connected()
        yield client
    finally:
        client.close()
        client.close_sockets()
        await asyncio.sleep(0)
