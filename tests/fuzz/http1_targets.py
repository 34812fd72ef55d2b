"""What must hold for any bytes that a client or an upstream sends over HTTP/1; raises AssertionError if it does not.

Two other parsers say what the bytes are: h11 of what comes in, llhttp by itself of what goes out. What we take, h11
must take too, with the same ends of messages; what we send must be what was meant and nothing else.

Inputs are cut into the pieces in which they arrive at each byte `CUT`, which no message needs.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import h11
import httptools
import uvloop

from fakes.gateway.proxied import OK, AnyRouter, Target
from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.heads.authority import split_target
from headgate.gateway.proxy.heads.paths import normalize
from headgate.gateway.proxy.http1.server import ClientConnection
from headgate.gateway.proxy.http1.upstream import UpstreamConnection
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.reports import LogRecord
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.proxy.stats import ProxyStats

CUT = b"\xfe"
_TURNS = 4
"""Of the event loop after each piece: a request that is pipelined begins in a turn of its own."""
_MAX_REQUESTS = 40
_OPEN = socket.socketpair()
"""Stands for the socket of every connection: open, and nothing to read."""


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.is_open = True
        self.protocol: Any = None

    def get_extra_info(self, name: str, default: object = None) -> object:
        return {"peername": ("127.0.0.1", 40000), "socket": _OPEN[0]}.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def write(self, data: bytes) -> None:
        assert self.is_open
        self.written += data

    def writelines(self, pieces: Sequence[bytes]) -> None:
        self.write(b"".join(pieces))

    def write_eof(self) -> None: ...

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close


@dataclass
class Edge:
    """One client's connection and the upstream connections that its requests may use."""

    pools: PoolRegistry
    config: ProxyConfig
    records: list[LogRecord] = field(default_factory=list)
    upstreams: list[Wire] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pool = self.pools.get("127.0.0.1", 80)
        holder = RouterHolder(AnyRouter(Target([self.pool])))
        clock = Clock(self.config.tick_s)
        context = ProxyContext(holder, self.config, ProxyStats(), self, clock, self.pools.outbox)
        self.client = Wire()
        self.client.protocol = ClientConnection(context, b"http", b"80")
        self.client.protocol.connection_made(self.client)

    def append(self, record: LogRecord) -> None:
        """Take a line of the access log."""
        self.records.append(record)

    def have_upstream(self) -> None:
        """Let a connection to the upstream be at rest."""
        if not self.pool.idle_count:
            wire = Wire()
            wire.protocol = UpstreamConnection(self.pool)
            wire.protocol.connection_made(wire)
            self.upstreams.append(wire)
            self.pool.release(wire.protocol)

    async def settle(self) -> None:
        """Let everything happen that is due."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def end(self) -> None:
        """Close what is open."""
        for wire in (self.client, *self.upstreams):
            wire.close()
        await self.settle()


def _run(conversation: Callable[[], Any]) -> None:
    """Run a conversation; whatever reaches the event loop is a failure."""
    raised: list[object] = []
    _RUNNER.get_loop().set_exception_handler(lambda _, context: raised.append(context))
    _RUNNER.run(conversation())
    assert not raised, raised


_RUNNER = asyncio.Runner(loop_factory=uvloop.new_event_loop)


# What comes from clients


@dataclass
class Message:
    """A request or an answer as some parser reads it."""

    start: tuple[bytes, ...]
    body: bytes = b""
    is_whole: bool = False


def check_client(data: bytes) -> None:
    """Feed a client's bytes; upstreams answer every whole request with `OK`."""
    _run(lambda: _client_conversation(data))


async def _client_conversation(data: bytes) -> None:
    config = ProxyConfig(max_body=100_000)
    edge = Edge(PoolRegistry(config), config)
    answered = 0
    for piece in data.split(CUT):
        if not edge.client.is_open:
            break
        edge.have_upstream()
        edge.client.protocol.data_received(piece)
        for _ in range(_MAX_REQUESTS):
            await edge.settle()
            edge.have_upstream()
            whole = sum(message.is_whole for wire in edge.upstreams for message in _requests_by_llhttp(wire.written))
            if whole <= answered:
                break
            answered = whole
            edge.upstreams[-1].protocol.data_received(OK)
    sent = [message for wire in edge.upstreams for message in _requests_by_llhttp(wire.written)]
    await edge.end()
    for wire in edge.upstreams:
        assert _requests_by_llhttp(wire.written) == list(_requests_by_h11(bytes(wire.written)))
    expected = [
        _as_forwarded(message) for message in _requests_by_h11(data.replace(CUT, b""), may_have_blank_lines=True)
    ]
    remaining = iter(expected)
    for message in sent:
        # Between them there may be requests that we answer by ourselves.
        assert any(_is_same(message, other) for other in remaining), (message, expected)
    if not edge.client.written.startswith(_HTTP2):
        _check_answers(bytes(edge.client.written), edge.records)


def _is_same(sent: Message, received: Message) -> bool:
    if sent.start != received.start:
        return False
    return sent.body == received.body if sent.is_whole else received.body.startswith(sent.body)


def _as_forwarded(message: Message) -> Message:
    method, target = message.start
    if not target.startswith(b"/"):
        split = split_target(target)
        target = target if split is None else split[1]
    path, mark, query = target.partition(b"?")
    read = normalize(path, "rewrite") if path.startswith(b"/") else None
    if read is not None:
        target = read[1] + mark + query
    return Message((method, target), message.body, message.is_whole)


def _requests_by_llhttp(raw: bytes | bytearray) -> list[Message]:
    """Read what was sent to an upstream; anything but requests, of which the last may be incomplete, is a failure."""
    messages: list[Message] = []

    class Reader:
        def on_message_begin(self) -> None:
            messages.append(Message(()))

        def on_url(self, url: bytes) -> None:
            messages[-1].start = (b"", url)

        def on_headers_complete(self) -> None:
            messages[-1].start = (parser.get_method(), messages[-1].start[1])

        def on_body(self, body: bytes) -> None:
            messages[-1].body += body

        def on_message_complete(self) -> None:
            messages[-1].is_whole = True

    parser = httptools.HttpRequestParser(Reader())
    # Of a request that offers an upgrade nothing follows that is another.
    with contextlib.suppress(httptools.HttpParserUpgrade):
        parser.feed_data(bytes(raw))
    return messages


def _requests_by_h11(raw: bytes, *, may_have_blank_lines: bool = False) -> Iterator[Message]:
    """Read requests up to the first that h11 refuses, or after which it expects no other.

    The known difference: before a request we read over one empty line, as RFC 9112 section 2.2 says; h11 does not.
    """
    while raw:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        connection.receive_data(raw.removeprefix(b"\r\n") if may_have_blank_lines else raw)
        connection.receive_data(b"")
        message = Message(())
        try:
            event = connection.next_event()
            while isinstance(event, h11.Request | h11.Data):
                if isinstance(event, h11.Request):
                    message.start = (event.method, event.target)
                else:
                    message.body += bytes(event.data)
                event = connection.next_event()
        except h11.RemoteProtocolError:
            event = None
        message.is_whole = isinstance(event, h11.EndOfMessage)
        if message.start:
            yield message
        if not message.is_whole or connection.their_state is h11.MUST_CLOSE:
            return
        raw = connection.trailing_data[0]


_HTTP2 = b"\0\0"
"""How its answers begin: with the length of a short frame."""


def _check_answers(raw: bytes, records: list[LogRecord]) -> None:
    """Read all that a client got with h11, an answer after the other; only one that was cut off may be incomplete."""
    for record in records:
        method, status = record[2], record[5]
        if status == 499:
            assert raw in (b"", b"HTTP/1.1 100 Continue\r\n\r\n"), raw
            return
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        asked = b"GET" if method in (b"-", b"CONNECT") else method
        connection.send(h11.Request(method=asked, target="/", headers=[("Host", "a")]))
        connection.send(h11.EndOfMessage())
        connection.receive_data(raw)
        event = connection.next_event()
        while not isinstance(event, h11.EndOfMessage):
            assert event is not h11.NEED_DATA, raw
            event = connection.next_event()
        raw = connection.trailing_data[0]
    assert not raw, raw


# What comes from upstreams

ASKED = {
    "GET": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD": b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    "WebSocket": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
}


def check_upstream(data: bytes) -> None:
    """Feed an upstream's bytes as the answer to a GET, to a HEAD and to the beginning of a WebSocket."""
    for request in ASKED.values():
        _run(lambda request=request: _upstream_conversation(request, data))


async def _upstream_conversation(request: bytes, data: bytes) -> None:
    config = ProxyConfig()
    edge = Edge(PoolRegistry(config), config)
    edge.have_upstream()
    edge.client.protocol.data_received(request)
    await edge.settle()
    wire = edge.upstreams[0]
    fed = bytearray()
    for piece in data.split(CUT):
        if not wire.is_open or edge.pool.idle_count:
            break
        wire.protocol.data_received(piece)
        fed += piece
        await edge.settle()
    is_reused = edge.pool.idle_count > 0
    is_over = bool(edge.records)
    if wire.is_open:
        wire.close()
    await edge.settle()
    status = edge.records[0][5] if edge.records else 0
    await edge.end()
    if status in (101, 499):
        return
    received = _answer_by_h11(request, bytes(edge.client.written))
    if edge.records[0][13]:
        # An answer of our own, or one that was cut off.
        assert received is None or received.start == (b"%d" % status,) or not received.is_whole
        return
    sent = _answer_by_h11(request, bytes(fed))
    assert received == sent, (received, sent)
    if is_reused:
        assert is_over
        assert _unread_by_h11(request, bytes(fed)) == b""


def _answer_by_h11(request: bytes, raw: bytes) -> Message | None:
    """Read the final answer; None: h11 refuses it, or it has not begun."""
    return _read_answer(request, raw)[0]


def _unread_by_h11(request: bytes, raw: bytes) -> bytes:
    return _read_answer(request, raw)[1]


def _read_answer(request: bytes, raw: bytes) -> tuple[Message | None, bytes]:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    connection.send(h11.Request(method=request.split(b" ")[0], target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(raw)
    connection.receive_data(b"")
    message: Message | None = None
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            return message, b""
        if isinstance(event, h11.Response):
            message = Message((b"%d" % event.status_code,))
        elif isinstance(event, h11.Data) and message is not None:
            message.body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and message is not None:
            message.is_whole = True
            return message, connection.trailing_data[0]
        elif event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
            return message, b""


CHECKS: dict[str, Callable[[bytes], None]] = {"http1_client": check_client, "http1_upstream": check_upstream}
