"""HTTP/2 towards clients: one connection, an exchange for each of its streams."""

import asyncio
import math
import time
from typing import Final

import h2.errors
import h2.events
import hyperframe.frame

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.exchange import Exchange
from headgate.gateway.proxy.forward import Peer
from headgate.gateway.proxy.head import AnswerHead, RequestFields
from headgate.gateway.proxy.http2.budget import CONTROL, RESETS, Bucket
from headgate.gateway.proxy.http2.heads import (
    HeaderList,
    answer_headers,
    fields_of,
    grpc_answer,
    lines_of,
    read_request,
)
from headgate.gateway.proxy.http2.link import Link, Queue
from headgate.gateway.proxy.sides import ClientSide

_NO_ERROR: Final = 0
_PROTOCOL_ERROR: Final = 1
_INTERNAL_ERROR: Final = 2
_REFUSED_STREAM: Final = 7
_CANCEL: Final = 8
_ENHANCE_YOUR_CALM: Final = 11
_REFUSED_METHODS: Final = frozenset({b"TRACE"})
_ALLOWED: Final = b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"


class Stream(ClientSide):
    """One request of a client."""

    __slots__ = ("_connection", "_queue", "exchange", "id", "is_grpc")

    def __init__(self, connection: "Http2Connection", stream_id: int, queue: Queue, context: ProxyContext) -> None:
        super().__init__()
        self._connection = connection
        self._queue = queue
        self.id = stream_id
        self.peer = connection.peer
        self.is_grpc = False
        self.deadline = math.inf
        self.exchange = Exchange(self, context)

    @property
    def version(self) -> bytes:
        """As the access log writes it."""
        return b"2.0"

    def send_answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Send head and first bytes."""
        connection = self._connection
        ends = done and not trailers and not payload
        connection.send_headers(self.id, answer_headers(answer, connection.date_line), end=ends)
        if not ends:
            connection.send(self.id, payload, end=done, trailers=fields_of(trailers) if trailers else None)
        self._sent(done)

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body."""
        self._connection.send(self.id, payload, end=done, trailers=fields_of(trailers) if trailers else None)
        self._sent(done)

    def _sent(self, done: bool) -> None:
        if done:
            self.exchange.finish()
            self._connection.answered(self)
        else:
            self.pause_if_full()

    def pause_if_full(self) -> None:
        """Stop or go on taking the answer from the upstream, by what waits here."""
        connection = self._connection
        full = self._queue.size > connection.config.buffer_high or connection.write_paused
        if full is not self.write_paused:
            self.write_paused = full
            if self.exchange.active:
                self.exchange.client_paused(full)

    def send_informational(self, answer: AnswerHead) -> None:
        """Pass a 1xx on."""
        headers: HeaderList = [(b":status", b"%d" % answer.status)]
        headers += fields_of(answer.lines[answer.lines.index(b"\n") + 1 :])
        self._connection.send_headers(self.id, headers, end=False)

    def send_continue(self) -> None:
        """Ask for the body."""
        self._connection.send_headers(self.id, [(b":status", b"100")], end=False)

    def open_tunnel(self, answer: AnswerHead, payload: bytes) -> None:
        """Say that the CONNECT was taken (RFC 8441 section 5)."""
        headers: HeaderList = [(b":status", b"200")]
        for name, value in fields_of(answer.lines[answer.lines.index(b"\n") + 1 :]):
            if name != b"sec-websocket-accept":
                headers.append((name, value))
        self._connection.send_headers(self.id, headers, end=False)
        if payload:
            self._connection.send(self.id, payload, end=False)

    def end_tunnel(self) -> None:
        """End the stream behind the last byte."""
        self._connection.send(self.id, b"", end=True)
        self._connection.answered(self)

    def cut_off(self) -> None:
        """Reset the stream."""
        self._connection.drop(self, _INTERNAL_ERROR)

    def abort(self) -> None:
        """Reset the stream."""
        self._connection.drop(self, _CANCEL)

    def update_reading(self) -> None:
        """Open the window for what was passed on."""
        if self.exchange.takes_body:
            self._connection.return_window(self.id, self._queue)

    def own_answer(self, answer: AnswerHead, status: int, reason: str) -> AnswerHead | None:
        """Give an answer of ours the form that gRPC wants; None: it is good as it is."""
        return grpc_answer(status, reason) if self.is_grpc else None

    def take_body(self, payload: bytes, *, done: bool, trailers: bytes, size: int) -> None:
        """Pass a part of the request's body on; `size` is what it took of the window."""
        queue = self._queue
        queue.unreturned += size
        exchange = self.exchange
        if exchange.active:
            exchange.request_data(payload, done=done, trailers=trailers)
        if not done:
            self.update_reading()


class Http2Connection(Link):
    """An HTTP/2 connection of a client, once it is known to be one."""

    __slots__ = (
        "_context",
        "_control",
        "_draining",
        "_quiet_until",
        "_resets",
        "_streams",
        "deadline",
        "peer",
        "write_paused",
    )

    def __init__(self, context: ProxyContext, peer: Peer) -> None:
        super().__init__(context.config, context.outbox, client_side=False)
        self._context = context
        self.peer = peer
        self._streams: dict[int, Stream] = {}
        self._resets = Bucket(RESETS[0], RESETS[1])
        self._control = Bucket(CONTROL[0], CONTROL[1])
        self._draining = False
        self.write_paused = False
        self.deadline = 0.0
        """Always past: every tick of the clock looks at the streams' own."""
        self._quiet_until = context.clock.now + context.config.header_timeout_s

    @property
    def date_line(self) -> bytes:
        """Date header line of this second."""
        return self._context.clock.date_line

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self._context.connections.add(self)
        self.start(transport)

    def data_received(self, data: bytes) -> None:
        """Take frames."""
        self.receive(data)

    def eof_received(self) -> bool:
        """Close, as HTTP/2 knows no half-closed connections."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget all streams."""
        self.closed = True
        self._context.forget(self)
        for stream in list(self._streams.values()):
            stream.exchange.abandon()
        self._streams.clear()
        self.queues.clear()

    def pause_writing(self) -> None:
        """Stop taking answers."""
        self.write_paused = True
        for stream in list(self._streams.values()):
            stream.pause_if_full()

    def resume_writing(self) -> None:
        """Go on taking answers."""
        self.write_paused = False
        for stream in list(self._streams.values()):
            stream.pause_if_full()

    # Events

    def handle(self, event: h2.events.Event) -> None:
        """React to one event."""
        if isinstance(event, h2.events.RequestReceived):
            self._begin(event)
        elif isinstance(event, h2.events.DataReceived):
            self._take_data(event)
        elif isinstance(event, h2.events.TrailersReceived):
            self._take_trailers(event)
        elif isinstance(event, h2.events.WindowUpdated):
            self._pump(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self._forget_stream(event)
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            self._spend_control()
            self._pump(0)
        elif isinstance(event, (h2.events.PingReceived, h2.events.PriorityUpdated)):
            self._spend_control()
        elif isinstance(event, h2.events.ConnectionTerminated):
            self._draining = True
            self._close_if_done()

    def _begin(self, event: h2.events.RequestReceived) -> None:
        stream_id = event.stream_id
        ended = event.stream_ended is not None
        queue = self.open(stream_id)
        if self._draining:
            self.reset(stream_id, _REFUSED_STREAM)
            return
        stream = Stream(self, stream_id, queue, self._context)
        self._streams[stream_id] = stream
        exchange = stream.exchange
        try:
            head = read_request(event.headers, ended=ended, max_count=self.config.max_header_count)
        except BadMessage as bad:
            exchange.begin(b"-", b"-", RequestFields())
            exchange.request_done = ended
            exchange.refuse(bad.status, bad.reason)
            return
        stream.is_grpc = head.is_grpc
        fields = head.fields
        exchange.begin(head.method, head.target, fields)
        exchange.request_done = ended
        config = self.config
        if len(head.target) > config.max_target:
            exchange.refuse(414, f"target longer than {config.max_target} bytes")
        elif config.max_body is not None and fields.content_length > config.max_body:
            exchange.refuse(413, f"body longer than {config.max_body} bytes")
        elif head.method in _REFUSED_METHODS:
            exchange.refuse(405, "method not allowed", _ALLOWED)
        elif head.target == b"*":
            exchange.refuse(200 if head.method == b"OPTIONS" else 400, "the server as a whole", _ALLOWED)
        else:
            if head.timeout_s is not None:
                exchange.allow(head.timeout_s)
            if config.max_body is not None and not ended and not exchange.limit_body(config.max_body):
                return
            is_tunnel = bool(fields.upgrade)
            exchange.dispatch(head.target.partition(b"?")[0], b"", done=ended or is_tunnel)

    def _take_data(self, event: h2.events.DataReceived) -> None:
        size = event.flow_controlled_length or 0
        self.received(size)
        done = event.stream_ended is not None
        if not event.data and not done:
            self._spend_control()
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            if stream.exchange.tunnel and done:
                stream.exchange.request_data(bytes(event.data), done=False, trailers=b"")
                stream.exchange.end_tunnel()
            else:
                stream.take_body(bytes(event.data), done=done, trailers=b"", size=size)

    def _take_trailers(self, event: h2.events.TrailersReceived) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        try:
            lines = lines_of(event.headers)
        except BadMessage as bad:
            stream.exchange.refuse(bad.status, bad.reason)
            return
        stream.take_body(b"", done=True, trailers=lines, size=0)

    def _pump(self, stream_id: int | None) -> None:
        waiting = [stream_id] if stream_id else list(self.queues)
        for each in waiting:
            queue = self.queues.get(each)
            if queue is None or queue.is_over:
                continue
            self.pump(each, queue)
            if not queue.is_sending():
                del self.queues[each]
            stream = self._streams.get(each)
            if stream is not None:
                stream.pause_if_full()
        self._close_if_done()

    def _forget_stream(self, event: h2.events.StreamReset) -> None:
        if not self._resets.take():
            self._calm_down()
            return
        queue = self.queues.pop(event.stream_id, None)
        if queue is not None:
            queue.is_over = True
        stream = self._streams.pop(event.stream_id, None)
        if stream is not None:
            stream.exchange.abandon()
        self._close_if_done()

    def _spend_control(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if not self._control.take() or unread > 16 * self.config.buffer_high:
            self._calm_down()

    def _calm_down(self) -> None:
        """End a connection that makes more work than requests."""
        self._context.stats.upstream_error("http2 abuse")
        self._say_goaway(_ENHANCE_YOUR_CALM)
        self.close()

    def failed(self, reason: str) -> None:
        """Count a connection whose client broke the protocol."""
        self._context.stats.upstream_error("http2 protocol")

    # Streams' ends

    def answered(self, stream: Stream) -> None:
        """Let go of a stream whose answer is out, but for what its window holds back."""
        self._streams.pop(stream.id, None)
        queue = self.queues.get(stream.id)
        if queue is not None and queue.is_over:
            del self.queues[stream.id]
        exchange = stream.exchange
        if not exchange.request_done and not exchange.tunnel and (queue is None or queue.is_over):
            # The rest of a body that nobody wants (RFC 9113 section 8.1).
            self.reset(stream.id, _NO_ERROR)
        self._quiet_until = self._context.clock.now + self.config.idle_timeout_s
        if self._draining:
            self._close_if_done()

    def drop(self, stream: Stream, code: int) -> None:
        """Reset a stream, whose exchange is over or will be."""
        self._streams.pop(stream.id, None)
        self.reset(stream.id, code)
        if stream.exchange.active:
            stream.exchange.abandon()
        if not self._resets.take():
            self._calm_down()

    # Ends

    def timed_out(self) -> None:
        """Look at the deadlines of all streams, and at how long there was none."""
        if self._context.draining:
            self.drain()
        now = time.monotonic()
        for stream in [each for each in self._streams.values() if each.deadline < now]:
            stream.exchange.timed_out()
        if not self._streams and not self.queues and self._quiet_until < now and not self.is_closed():
            self._say_goaway(_NO_ERROR)
            self.close()

    def drain(self) -> None:
        """Take no more streams; close once those under way are through."""
        if not self._draining:
            self._draining = True
            self._say_goaway(_NO_ERROR)
        self._close_if_done()

    def abort(self) -> None:
        """Close at once."""
        self.closed = True
        self.transport.abort()

    def _close_if_done(self) -> None:
        if self._draining and not self._streams and not self.queues and not self.closed:
            self.close()

    def _say_goaway(self, code: int) -> None:
        """Say that no more streams are taken; h2's own way would end those under way too."""
        if self.closed:
            return
        self.flush()
        last = self.h2.highest_inbound_stream_id
        frame = hyperframe.frame.GoAwayFrame(0, last_stream_id=last, error_code=code)
        self.transport.write(frame.serialize())
