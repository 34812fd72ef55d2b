"""HTTP/2 towards upstreams: requests as streams on connections that they share."""

import asyncio
import base64
import errno
import hashlib
import time
from typing import TYPE_CHECKING, Final, cast

import h2.events

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.forward import authority
from headgate.gateway.proxy.head import AnswerHead
from headgate.gateway.proxy.http2.heads import (
    HeaderList,
    fields_of,
    is_grpc_type,
    lines_of,
    read_answer,
    request_headers,
)
from headgate.gateway.proxy.http2.link import CANCEL, LAST_STREAM, NO_ERROR, REFUSED_STREAM, Link, Queue
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.sides import UpstreamSide

if TYPE_CHECKING:
    from headgate.gateway.health.circuit import Circuit
    from headgate.gateway.proxy.exchange import Exchange
    from headgate.gateway.proxy.pool import EndpointPool

_MAX_INFORMATIONAL: Final = 16
_NO_QUEUE: Final = Queue()
_WEBSOCKET_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY: Final = b"sec-websocket-key"


class Http2Upstream(UpstreamSide):
    """One request on a connection to an endpoint."""

    __slots__ = (
        "_bodiless",
        "_informational",
        "_left",
        "_link",
        "_paused",
        "_queue",
        "_tunnel",
        "_websocket_key",
        "id",
    )

    def __init__(self, pool: "EndpointPool", link: "UpstreamLink") -> None:
        super().__init__(pool)
        self._link = link
        self._queue = _NO_QUEUE
        self.id = 0
        self.reused = link.has_answered
        self._paused = False
        self._bodiless = False
        self._informational = 0
        self._left = -1
        """Bytes of the answer's body that have to come; -1: not known."""
        self._tunnel = False
        self._websocket_key: bytes | None = None
        """Of the client that wants to open a tunnel."""

    def begin(self, exchange: "Exchange", payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Open a stream with head and first bytes."""
        link = self._link
        self.exchange = exchange
        self.pool.in_flight += 1
        self.id = link.begin(self)
        self._queue = link.queues[self.id]
        if exchange.upgrade and not link.takes_tunnels:
            asyncio.get_running_loop().call_soon(self._fail, "the endpoint takes no WebSockets over HTTP/2")
            return
        ends = done and not payload and not trailers and not exchange.upgrade
        if not link.send_headers(self.id, self._headers(exchange), end=ends):
            asyncio.get_running_loop().call_soon(self.was_ignored)
        elif not ends and not exchange.upgrade and (payload or done):
            self.send_data(payload, done=done, trailers=trailers)

    def _headers(self, exchange: "Exchange") -> HeaderList:
        fields = exchange.fields
        more: HeaderList = []
        passed = fields_of(exchange.lines)
        if exchange.upgrade:
            more.append((b":protocol", exchange.upgrade))
            self._websocket_key = next((value for name, value in passed if name == _KEY), b"")
            passed = [each for each in passed if each[0] != _KEY]
        more += passed
        if any(name == b"content-type" and is_grpc_type(value) for name, value in passed):
            more.append((b"te", b"trailers"))
        if fields.content_length >= 0 and not fields.chunked:
            more.append((b"content-length", b"%d" % fields.content_length))
        more.append((b"x-request-id", exchange.request_id))
        pool = self.pool
        scheme = b"http" if pool.spec.tls is None else b"https"
        method = b"CONNECT" if exchange.upgrade else exchange.method
        return request_headers(method, scheme, authority(exchange, pool), exchange.target, more)

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body, or of what goes through the tunnel."""
        self._link.send(self.id, payload, end=done, trailers=fields_of(trailers) if trailers else None)
        self.pause_if_full()

    def pause_if_full(self) -> None:
        """Stop or go on taking the body from the client, by what waits here."""
        full = self._queue.size > self.pool.config.buffer_high
        if full is not self.write_paused:
            self.write_paused = full
            exchange = self.exchange
            if exchange is not None:
                if full:
                    exchange.client.update_reading()
                else:
                    exchange.upstream_resumed()

    def end_tunnel(self) -> None:
        """End the sending half."""
        self._link.send(self.id, b"", end=True)

    def discard(self) -> None:
        """Part with the exchange and reset the stream; what a tunnel was given last still goes out."""
        if self._part() is None:
            return
        if self._tunnel:
            self._queue.drops_rest = True
            self._link.send(self.id, b"", end=True)
            self._link.finished(self.id, self._queue)
        else:
            self._link.reset(self.id, CANCEL)
            self._link.rest()

    def count_by(self, circuit: "Circuit | None") -> None:
        """Count the connection, once for all who share it, as one of the upstream's."""
        if circuit is not None:
            self._link.count_by(circuit)

    def pause_reading(self) -> None:
        """Give no more of the window back for now, as the client is slow."""
        self._paused = True

    def resume_reading(self) -> None:
        """Go on taking the answer."""
        self._paused = False
        self._link.return_window(self.id, self._queue)

    def _part(self) -> "Exchange | None":
        """Part with the exchange; whose it was."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            self.pool.in_flight -= 1
            self._link.streams.pop(self.id, None)
        return exchange

    # From the upstream

    def take_head(self, headers: HeaderList, *, done: bool) -> None:
        """Take the head of the answer."""
        exchange = self.exchange
        if exchange is None:
            return
        self.seen = True
        try:
            answer = read_answer(headers, self.pool.config.max_header_count)
        except BadMessage as bad:
            self._fail(f"invalid answer: {bad.reason}")
            return
        self._link.has_answered = True
        if self._websocket_key is not None and 200 <= answer.status < 300:
            self._tunnel = True
            exchange.switch(_switched(answer, self._websocket_key), b"")
            return
        self._bodiless = exchange.method == b"HEAD" or answer.status == 204 or answer.status == 304
        self._left = -1 if self._bodiless else answer.content_length
        if done and self._left > 0:
            self._fail("invalid answer: it ends before its Content-Length")
            return
        if done:
            self._end(exchange)
        exchange.answer(answer, b"", bodiless=self._bodiless, done=done, trailers=b"")

    def take_informational(self, headers: HeaderList) -> None:
        """Pass a 1xx on, except 100, which the client was told by us."""
        exchange = self.exchange
        if exchange is None:
            return
        self.seen = True
        self._informational += 1
        try:
            answer = read_answer(headers, self.pool.config.max_header_count)
        except BadMessage as bad:
            self._fail(f"invalid answer: {bad.reason}")
            return
        if answer.status == 101 or answer.content_length >= 0 or self._informational > _MAX_INFORMATIONAL:
            self._fail(f"unexpected {answer.status}")
        elif answer.status != 100:
            exchange.informational(answer)

    def take_data(self, data: bytes, size: int, *, done: bool) -> None:
        """Pass a part of the answer's body on; `size` is what it took of the window."""
        exchange = self.exchange
        if exchange is None:
            return
        if self._tunnel and done:
            if data:
                exchange.answer_data(data, done=False, trailers=b"")
            self._lose(exchange)
            return
        if self._left >= 0:
            self._left -= len(data)
        if self._bodiless and data:
            self._fail("invalid answer: a body that must not be there")
            return
        if done:
            self._end(exchange)
        self._queue.unreturned += size
        exchange.answer_data(data, done=done, trailers=b"")
        if not done and not self._paused and self.exchange is not None:
            self._link.return_window(self.id, self._queue)

    def take_trailers(self, headers: HeaderList) -> None:
        """End the answer with trailers."""
        exchange = self.exchange
        if exchange is None:
            return
        try:
            lines = lines_of(headers)
        except BadMessage as bad:
            self._fail(f"invalid answer: {bad.reason}")
            return
        if self._left > 0:
            self._fail("invalid answer: it ends before its Content-Length")
            return
        self._end(exchange)
        exchange.answer_data(b"", done=True, trailers=lines)

    def take_reset(self, code: int) -> None:
        """The upstream ended the stream, or broke its rules."""
        exchange = self._part()
        if exchange is None:
            return
        # The connection is alive, so that age is no excuse.
        self.reused = False
        if code == REFUSED_STREAM and not self.seen:
            exchange.upstream_refused(self)
        else:
            exchange.upstream_lost(self)

    def was_ignored(self) -> None:
        """A GOAWAY says that the endpoint never looked at the request."""
        exchange = self._part()
        if exchange is not None:
            exchange.upstream_refused(self)

    def lose(self) -> None:
        """The connection died."""
        exchange = self._part()
        if exchange is not None:
            exchange.upstream_lost(self)

    def _lose(self, exchange: "Exchange") -> None:
        self._part()
        self._queue.drops_rest = True
        self._link.finished(self.id, self._queue)
        exchange.upstream_lost(self)

    def _end(self, exchange: "Exchange") -> None:
        """Part with the exchange before the end of its answer is passed on, as that may start the next request."""
        self._part()
        exchange.upstream = None
        if self._queue.is_over:
            self._link.finished(self.id, self._queue)
        else:
            # The rest of a body that nobody wants.
            self._link.reset(self.id, NO_ERROR)
            self._link.rest()

    def _fail(self, reason: str) -> None:
        exchange = self._part()
        if exchange is not None:
            self._link.reset(self.id, CANCEL)
            self._link.rest()
            exchange.upstream_failed(reason)


def _switched(answer: AnswerHead, key: bytes) -> AnswerHead:
    """Build the 101 that an HTTP/1.1 client waits for (RFC 6455 section 4.2.2) out of an answer of RFC 8441."""
    switched = AnswerHead(101, 1)
    lines = answer.lines[answer.lines.index(b"\n") + 1 :]
    proof = base64.b64encode(hashlib.sha1(key + _WEBSOCKET_GUID, usedforsecurity=False).digest())
    switched.lines = b"HTTP/1.1 101 Switching Protocols\r\n%bSec-WebSocket-Accept: %b\r\n" % (lines, proof)
    switched.upgrade = b"websocket"
    return switched


class UpstreamLink(Link):
    """A connection to an endpoint."""

    __slots__ = (
        "_is_ready",
        "_is_started",
        "_next_id",
        "_room",
        "circuit",
        "has_answered",
        "idle_since",
        "leaving",
        "max_requests",
        "ready",
        "requests",
        "streams",
        "takes_tunnels",
    )

    def __init__(self, config: ProxyConfig, outbox: Outbox, max_requests: int) -> None:
        super().__init__(config, outbox, client_side=True)
        self.max_requests = max_requests
        self.requests = 0
        self.streams: dict[int, Http2Upstream] = {}
        self.circuit: Circuit | None = None
        """Counts this connection; None: nobody does."""
        self.has_answered = False
        self.leaving = False
        """No more streams are opened; closed behind the last."""
        self.idle_since = 0.0
        self.takes_tunnels = False
        """The endpoint knows RFC 8441."""
        self._room = 0
        """Streams at once; 0 until the endpoint's SETTINGS are there."""
        self._is_ready = False
        self._is_started = False
        self._next_id = 1
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done with the endpoint's SETTINGS, or with an OSError that says why there are none."""

    @property
    def has_room(self) -> bool:
        """Whether one more stream can be opened."""
        return (
            len(self.queues) < self._room
            and not self.leaving
            and not self.closed
            and self.requests < self.max_requests
            and self._next_id < LAST_STREAM
            and not self.transport.is_closing()
        )

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self._is_started = True
        self.start(transport)

    def data_received(self, data: bytes) -> None:
        """Take frames, unless the endpoint answers in another language: as a frame that would be a very long one."""
        if not self._is_ready and data.startswith(b"HTTP/"):
            self.broken("it answers in HTTP/1.1")
        else:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all requests that are under way."""
        self.closed = True
        self._not_ready("the endpoint does not speak HTTP/2")
        streams, self.streams = self.streams, {}
        self.queues = {}
        for stream in list(streams.values()):
            stream.lose()
        circuit, self.circuit = self.circuit, None
        if circuit is not None:
            circuit.release_connection()

    def writing_changed(self) -> None:
        """Stop or go on taking bodies."""
        for stream in list(self.streams.values()):
            stream.pause_if_full()

    # Events

    def handle(self, event: h2.events.Event) -> None:
        """React to one event."""
        if isinstance(event, h2.events.ConnectionTerminated):
            self._take_leave(event.last_stream_id or 0)
            return
        if isinstance(event, h2.events.RemoteSettingsChanged):
            self._take_settings()
            return
        if isinstance(event, h2.events.WindowUpdated):
            if event.stream_id:
                self.pump_one(event.stream_id)
            else:
                self.pump_all()
            return
        if isinstance(event, h2.events.DataReceived):
            size = event.flow_controlled_length or 0
            self.received(size)
            stream = self.streams.get(event.stream_id or 0)
            if stream is not None:
                stream.take_data(bytes(event.data or b""), size, done=event.stream_ended is not None)
            return
        self._take_head(event)

    def _take_head(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived):
            stream = self.streams.get(event.stream_id or 0)
            if stream is not None:
                stream.take_head(cast(HeaderList, event.headers), done=event.stream_ended is not None)
        elif isinstance(event, h2.events.TrailersReceived):
            stream = self.streams.get(event.stream_id or 0)
            if stream is not None:
                stream.take_trailers(cast(HeaderList, event.headers))
        elif isinstance(event, h2.events.InformationalResponseReceived):
            stream = self.streams.get(event.stream_id or 0)
            if stream is not None:
                stream.take_informational(cast(HeaderList, event.headers))
        elif isinstance(event, h2.events.StreamReset):
            self._take_reset(event)

    def _take_reset(self, event: h2.events.StreamReset) -> None:
        queue = self.queues.pop(event.stream_id or 0, None)
        if queue is not None:
            queue.is_over = True
        stream = self.streams.get(event.stream_id or 0)
        if stream is not None:
            stream.take_reset(int(event.error_code or 0))
        self.rest()

    def _take_settings(self) -> None:
        settings = self.h2.remote_settings
        self._room = min(self.config.max_streams, settings.max_concurrent_streams)
        self.takes_tunnels = settings.enable_connect_protocol == 1
        if not self._is_ready:
            self._is_ready = True
            if not self.ready.done():
                self.ready.set_result(None)
        self.pump_all()

    def _take_leave(self, last_stream_id: int) -> None:
        """Open no more streams, and tell those that the endpoint will not look at (RFC 9113 section 6.8)."""
        self.leaving = True
        for stream_id, stream in list(self.streams.items()):
            if stream_id > last_stream_id:
                self.queues.pop(stream_id, None)
                stream.was_ignored()
        self.rest()

    def broken(self, reason: str) -> None:
        """Close a connection whose other end broke the protocol."""
        self.close()
        self._not_ready(f"the endpoint does not speak HTTP/2: {reason}")

    def _not_ready(self, reason: str) -> None:
        if not self._is_ready:
            self._is_ready = True
            if not self.ready.done():
                self.ready.set_exception(ConnectionResetError(errno.EPROTO, reason))
                # Whoever waited may be gone.
                self.ready.exception()

    def pumped(self, stream_id: int, queue: Queue) -> None:
        """Let a body go on that waited for the window."""
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.pause_if_full()
        elif queue.is_over:
            self.finished(stream_id, queue)

    # Streams

    def begin(self, stream: Http2Upstream) -> int:
        """Give a stream its number."""
        stream_id = self._next_id
        self._next_id = stream_id + 2
        self.requests += 1
        self.streams[stream_id] = stream
        self.open(stream_id)
        return stream_id

    def finished(self, stream_id: int, queue: Queue) -> None:
        """Forget a stream whose request is out and whose answer is here."""
        if queue.is_over and self.queues.pop(stream_id, None) is not None:
            if queue.drops_rest:
                self.reset(stream_id, CANCEL)
            self.rest()

    def rest(self) -> None:
        """Note that a stream has ended: there is room, or nothing left to do."""
        if not self.queues and not self.streams and not self.closed:
            self.idle_since = time.monotonic()
            if self.leaving or self.requests >= self.max_requests:
                self.leave()
        if self.circuit is not None:
            self.circuit.wake()

    def leave(self) -> None:
        """Open no more streams, and close behind the last."""
        self.leaving = True
        if not self.queues and not self.streams and not self.closed:
            self.say_goaway(0, NO_ERROR)
            self.close()

    def abort(self) -> None:
        """Close at once, if there is anything to close."""
        self.closed = True
        if self._is_started:
            self.transport.abort()

    def count_by(self, circuit: "Circuit") -> None:
        """Be counted as one connection, however many requests waited for it."""
        if self.circuit is not None or self.closed:
            circuit.release_connection()
            return
        self.circuit = circuit
        for _ in range(min(circuit.pending, self._room - 1)):
            circuit.wake()
