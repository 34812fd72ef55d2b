"""HTTP/2 towards clients: one connection, an exchange for each of its streams."""

import asyncio
import time
from typing import Final

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import BadMessage, FramingError
from headgate.gateway.proxy.exchange.exchange import Exchange
from headgate.gateway.proxy.exchange.pace import Pace
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.proxy.http2.budget import CONTROL, RESETS, WINDOW_UPDATES_PER_FRAME, Bucket
from headgate.gateway.proxy.http2.decompression import HeaderList
from headgate.gateway.proxy.http2.flow import Flow
from headgate.gateway.proxy.http2.frames import (
    CANCEL,
    ENHANCE_YOUR_CALM,
    LAST_STREAM,
    NO_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
)
from headgate.gateway.proxy.http2.heads import RequestHead, read_request
from headgate.gateway.proxy.http2.link import Link
from headgate.gateway.proxy.http2.stream import Stream
from headgate.gateway.proxy.peer import Peer

_REFUSED_METHODS: Final = frozenset({b"TRACE"})
_ALLOWED: Final = b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"


class Http2Connection(Link):
    """An HTTP/2 connection of a client, once it is known to be one."""

    __slots__ = (
        "_announced",
        "_client_leaves",
        "_context",
        "_control",
        "_draining",
        "_quiet_until",
        "_resets",
        "_spare",
        "_streams",
        "_updates",
        "deadline",
        "peer",
    )

    def __init__(self, context: ProxyContext, peer: Peer) -> None:
        super().__init__(context.config, context.outbox, is_client=False)
        self._context = context
        self.peer = peer
        self._streams: dict[int, Stream] = {}
        self._spare: list[Stream] = []
        """Streams that are over, for the next ones: making an exchange costs as much as routing a request."""
        self._resets = Bucket(RESETS[0], RESETS[1])
        self._control = Bucket(CONTROL[0], CONTROL[1])
        self._updates = 0
        """WINDOW_UPDATE frames that came."""
        self._announced = False
        """The client was told that the connection will be closed."""
        self._draining = False
        """New streams are refused."""
        self._client_leaves = False
        self._quiet_until = context.clock.now + context.config.header_timeout_s
        self.deadline = self._quiet_until
        """In the past while there are streams: every tick of the clock looks at theirs."""

    @property
    def date_line(self) -> bytes:
        """Date header line of this second."""
        return self._context.clock.date_line

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self._context.connections.add(self)
        self.start(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget all streams."""
        self.closed = True
        self._context.forget(self)
        self._abandon_all()

    def writing_changed(self) -> None:
        """Stop or go on taking answers."""
        for stream in list(self._streams.values()):
            stream.pause_if_full()

    # Frames

    def take_request(self, stream_id: int, headers: HeaderList, *, done: bool) -> None:
        """Begin an exchange."""
        if self._draining or len(self.flows) >= self.config.max_streams:
            self.take_control()
            self.reset(stream_id, REFUSED_STREAM)
            return
        if self._context.draining and not self._announced:
            self.announce_drain()
        flow = self.open(stream_id)
        flow.peer_done = done
        stream = self._new_stream(stream_id, flow)
        stream.ended = done
        self._streams[stream_id] = stream
        self.deadline = 0.0
        exchange = stream.exchange
        try:
            head = read_request(headers, ended=done, max_count=self.config.max_header_count, rules=self._context.rules)
        except BadMessage as bad:
            exchange.begin(b"-", b"-", RequestFields())
            if isinstance(bad, FramingError):
                self.refuse_malformed(stream, bad)
            else:
                exchange.request_done = done
                exchange.refuse(bad.status, bad.reason)
            return
        exchange.begin(head.method, head.target, head.fields)
        exchange.request_done = done
        if not self._refuse_at_once(exchange, head):
            stream.start(head, self.config.max_body)

    def _new_stream(self, stream_id: int, flow: Flow) -> Stream:
        if not self._spare:
            return Stream(self, stream_id, flow, self._context)
        stream = self._spare.pop()
        stream.begin(stream_id, flow)
        return stream

    def refuse_malformed(self, stream: Stream, bad: BadMessage) -> None:
        """Reset the stream of a request that is none (RFC 9113 section 8.1.1)."""
        exchange = stream.exchange
        exchange.status, exchange.reason = bad.status, bad.reason
        exchange.finish()
        self.drop(stream, PROTOCOL_ERROR)
        self._spend_reset()

    def _refuse_at_once(self, exchange: Exchange, head: RequestHead) -> bool:
        config = self.config
        if len(head.target) > config.max_target:
            exchange.refuse(414, f"target longer than {config.max_target} bytes")
        elif config.max_body is not None and head.fields.content_length > config.max_body:
            exchange.refuse(413, f"body longer than {config.max_body} bytes")
        elif head.method in _REFUSED_METHODS:
            exchange.refuse(405, "method not allowed", _ALLOWED)
        elif head.target == b"*":
            exchange.refuse(200 if head.method == b"OPTIONS" else 400, "the server as a whole", _ALLOWED)
        else:
            return False
        return True

    def take_data(self, stream_id: int, flow: Flow, payload: bytes, size: int, *, done: bool) -> None:
        """Pass a part of a request's body on."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.ended = done
        if not (stream.exchange.tunnel and done):
            stream.take_body(payload, done=done, trailers=b"", size=size)
            return
        if payload:
            stream.exchange.request_data(payload, done=False, trailers=b"")
        stream.exchange.end_tunnel()

    def take_trailers(self, stream_id: int, headers: HeaderList) -> None:
        """End a request."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.ended = True
            stream.take_trailers(headers)

    def take_window(self, stream_id: int) -> None:
        """Send what waited for the client."""
        if stream_id:
            self.pump_one(stream_id)
        else:
            self.pump_all()
        self._updates += 1
        if self._updates > (self.frames + 1) * WINDOW_UPDATES_PER_FRAME:
            self.take_control()

    def take_settings(self) -> None:
        """Send what the client's windows held back until now."""
        self.pump_all()

    def take_goaway(self, last_stream_id: int, code: int) -> None:
        """Close behind the streams that are under way."""
        self._client_leaves = True
        self._close_if_done()

    def pumped(self, stream_id: int, flow: Flow) -> None:
        """Let an answer go on that waited for the window, or let go of one that is out."""
        if flow.is_over:
            self._let_go(stream_id, flow)
        else:
            stream = self._streams.get(stream_id)
            if stream is not None:
                stream.pause_if_full()

    def take_reset(self, stream_id: int, code: int) -> None:
        """Forget a stream."""
        self._spend_reset()
        stream = self._streams.pop(stream_id, None)
        if stream is not None:
            stream.exchange.abandon()
        self._close_if_done()

    # Abuse

    def take_control(self, count: int = 1) -> None:
        """Count what the client made us do beside requests."""
        unread = self.transport.get_write_buffer_size()
        if not self._control.take(count) or unread > 16 * self.config.buffer_high:
            self._calm_down()

    def _spend_reset(self) -> None:
        if not self._resets.take():
            self._calm_down()

    def _calm_down(self) -> None:
        """End a connection that makes more work than requests."""
        if not self.closed:
            self._context.stats.client_error("http2 abuse")
            self._end(ENHANCE_YOUR_CALM)

    def broken(self, reason: str) -> None:
        """End a connection whose client broke the protocol."""
        self._context.stats.client_error("http2 protocol")
        self.close()
        self._linger()

    def _end(self, code: int) -> None:
        self.say_goaway(self.last_inbound, code)
        self.close()
        self._linger()

    def _linger(self) -> None:
        """Let go of all requests; the client has a moment to read what was written."""
        self.deadline = self._context.clock.now + self.config.lingering_s
        self._abandon_all()

    def _abandon_all(self) -> None:
        streams, self._streams = self._streams, {}
        self._spare = []
        self.flows = {}
        for stream in streams.values():
            stream.exchange.abandon()

    # Streams' ends

    def answered(self, stream: Stream) -> None:
        """Let go of a stream whose answer is given; its window may yet hold back some of it."""
        if self._streams.pop(stream.id, None) is not None and stream.is_reusable:
            self._spare.append(stream)
        self._quiet_until = self._context.clock.now + self.config.idle_timeout_s
        self.transport.delivery = None
        flow = self.flows.get(stream.id)
        if flow is not None:
            flow.drops_rest = not stream.ended
            if flow.is_over:
                self._let_go(stream.id, flow)
        self._close_if_done()

    def _let_go(self, stream_id: int, flow: Flow) -> None:
        if stream_id in self._streams:
            return
        self.flows.pop(stream_id, None)
        if flow.drops_rest:
            # The rest of a body that nobody wants (RFC 9113 section 8.1).
            self.reset(stream_id, NO_ERROR)
        self._close_if_done()

    def drop(self, stream: Stream, code: int) -> None:
        """Reset a stream, whose exchange is over or will be."""
        self._streams.pop(stream.id, None)
        self.reset(stream.id, code)
        if stream.exchange.active:
            stream.exchange.abandon()
        self._close_if_done()

    # Ends

    def timed_out(self) -> None:
        """Look at the deadlines of all streams, and at how long there was none."""
        if self.closed:
            self.transport.abort()
            return
        if self._context.draining:
            self.announce_drain()
        now = time.monotonic()
        for stream in [each for each in self._streams.values() if each.deadline < now]:
            stream.exchange.timed_out()
        self._drop_stuck()
        if self.is_closed():
            return
        if not self._streams:
            self._spare = []
        if self._streams or self.flows:
            self.deadline = 0.0
        elif self._quiet_until < now:
            self._end_rest()
        else:
            self.deadline = self._quiet_until

    def _end_rest(self) -> None:
        """End a connection that has rested for too long, unless its client still takes what it was sent."""
        now = self._context.clock.now
        ends = self.transport.delivery_ends(self.config, now)
        if ends > now:
            self.deadline = self._quiet_until = ends
        else:
            self._end(NO_ERROR)

    def _drop_stuck(self) -> None:
        """Reset streams whose answers are given and taken too slowly."""
        config, now = self.config, self._context.clock.now
        for stream_id, flow in list(self.flows.items()):
            if stream_id not in self._streams and flow.pieces:
                if flow.pace is None:
                    flow.pace = Pace(-flow.size, now)
                if flow.pace.ends(-flow.size, config.min_taken, config.body_timeout_s, now) <= now:
                    self.reset(stream_id, CANCEL)
        self._close_if_done()

    def announce_drain(self) -> None:
        """Ask the client to open no more streams; those that are on their way are served (RFC 9113 section 6.8)."""
        if not self._announced and not self.closed:
            self._announced = True
            self.say_goaway(LAST_STREAM, NO_ERROR)

    def drain(self) -> None:
        """Take no more streams; close once those under way are through."""
        if not self._draining and not self.closed:
            self._announced = self._draining = True
            self.say_goaway(self.last_inbound, NO_ERROR)
        self._close_if_done()

    def abort(self) -> None:
        """Close at once."""
        self.closed = True
        self.transport.abort()

    def _close_if_done(self) -> None:
        leaves = self._draining or self._client_leaves
        if leaves and not self._streams and not self.flows and not self.closed:
            self.close()
            self.deadline = self._context.clock.now + self.config.lingering_s
