"""HTTP/3 towards clients: one QUIC connection, an exchange for each of its requests."""

import math
import time
from typing import Final

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.exchange.exchange import Exchange
from headgate.gateway.proxy.exchange.pace import Pace
from headgate.gateway.proxy.http2.budget import CONTROL, RESETS, Bucket
from headgate.gateway.proxy.http2.heads import RequestHead
from headgate.gateway.proxy.http3.client_streams import ClientStreams
from headgate.gateway.proxy.http3.link import Link
from headgate.gateway.proxy.http3.numbers import (
    CLOSED_CRITICAL_STREAM,
    CONTROL_STREAM,
    ENABLE_CONNECT_PROTOCOL,
    EXCESSIVE_LOAD,
    GOAWAY,
    INTERNAL_ERROR,
    LARGEST,
    MAX_FIELD_SECTION_SIZE,
    MESSAGE_ERROR,
    NO_ERROR,
    REQUEST_CANCELLED,
    REQUEST_INCOMPLETE,
    REQUEST_REJECTED,
    SETTINGS,
    STREAM_CREATION_ERROR,
    ConnectionFault,
    frame,
    integer,
)
from headgate.gateway.proxy.http3.stream import Stream
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.tls.identity import MISDIRECTED

_REFUSED_METHODS: Final = frozenset({b"TRACE"})
_ALLOWED: Final = b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"
_HELD_MOST: Final = 1024 * 1024
"""Bytes that are held of one connection: bodies that wait for upstreams, and heads of which more has to come. Nothing
more of it is read while there are so many; heads alone, which nothing would make fewer then, are refused instead."""
_FRAMES_PER_REQUEST: Final = 4
"""What each request allows for of that which means nothing to us on streams of one direction: browsers send priorities,
and cancel streams; what is beyond is counted."""
_LAST_REQUEST: Final = LARGEST - 3
"""The largest number of a request's stream."""


class Http3Connection:
    """An HTTP/3 connection of a client, once its handshake is complete."""

    __slots__ = (
        "_announced",
        "_client_streams",
        "_context",
        "_control",
        "_control_id",
        "_drain_at",
        "_draining",
        "_first_refused",
        "_heads",
        "_held",
        "_ignored",
        "_last_id",
        "_paused",
        "_quiet_until",
        "_requests",
        "_resets",
        "_streams",
        "_tails",
        "closed",
        "deadline",
        "is_full",
        "link",
        "peer",
    )

    def __init__(self, context: ProxyContext, peer: Peer, link: Link) -> None:
        self._context = context
        self.peer = peer
        self.link = link
        self.closed = False
        self.is_full = False
        """So much waits for upstreams that nothing more is to be read."""
        self._streams: dict[int, Stream] = {}
        self._tails: dict[int, Pace | None] = {}
        """Streams whose answers are given, until their clients have all of them, with the pace of taking."""
        self._ignored: set[int] = set()
        """Streams of which nothing is wanted, and more may come."""
        self._paused: set[Stream] = set()
        """Whose clients take the answer more slowly than it comes."""
        self._client_streams = ClientStreams()
        self._control_id = -1
        self._last_id = -4
        """The newest stream on which a request was begun."""
        self._requests = 0
        self._held = 0
        """Bytes of bodies."""
        self._heads = 0
        """Bytes of heads and trailers of which more has to come."""
        self._resets = Bucket(RESETS[0], RESETS[1])
        self._control = Bucket(CONTROL[0], CONTROL[1])
        self._announced = False
        self._drain_at = math.inf
        self._draining = False
        self._first_refused = LARGEST
        """Number of the stream from which on requests are refused."""
        self._quiet_until = context.clock.now + context.config.header_timeout_s
        self.deadline = self._quiet_until
        """In the past while there are requests: every tick of the clock looks at theirs."""

    def start(self) -> None:
        """Send our settings."""
        self._context.connections.add(self)
        settings = {MAX_FIELD_SECTION_SIZE: self._context.config.max_head, ENABLE_CONNECT_PROTOCOL: 1}
        payload = b"".join([integer(name) + integer(value) for name, value in settings.items()])
        self._control_id = self.link.open_control(integer(CONTROL_STREAM) + frame(SETTINGS, payload))

    def lost(self) -> None:
        """Forget all requests, as the connection is over."""
        if not self.closed:
            self.closed = True
            self._context.forget(self)
            self._abandon_all()

    # What comes

    def stream_data(self, stream_id: int, data: bytes, *, end: bool) -> None:
        """Take what came on a stream."""
        if self.closed:
            return
        try:
            if not stream_id & 3:
                self._take_request(stream_id, data, end=end)
            elif stream_id & 3 == 2:
                self._take_client_stream(stream_id, data, end=end)
        except ConnectionFault as fault:
            self._context.stats.client_error("http3 protocol")
            self._close(fault.code, str(fault))

    def _take_request(self, stream_id: int, data: bytes, *, end: bool) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            if stream_id in self._ignored:
                if end:
                    self._ignored.discard(stream_id)
                return
            stream = self._open(stream_id, end=end)
            if stream is None:
                return
        if stream.is_over:
            stream.ended = end
        else:
            stream.take(data, end=end)

    def _open(self, stream_id: int, *, end: bool) -> Stream | None:
        """Begin an exchange; None: it is refused, and may be sent again elsewhere."""
        if stream_id >= self._first_refused or len(self._streams) >= self._context.config.max_streams:
            self.take_control()
            self._end_stream(stream_id, REQUEST_REJECTED, ended=end)
            return None
        if self._context.draining and not self._announced:
            self.announce_drain()
        self._last_id = max(self._last_id, stream_id)
        self._requests += 1
        self.deadline = 0.0
        stream = self._streams[stream_id] = Stream(self, stream_id, self._context)
        return stream

    def _take_client_stream(self, stream_id: int, data: bytes, *, end: bool) -> None:
        if stream_id in self._ignored:
            if end:
                self._ignored.discard(stream_id)
            return
        streams = self._client_streams
        if not streams.take(stream_id, data, end=end):
            self.take_control()
            if not end:
                self.link.stop(stream_id, STREAM_CREATION_ERROR)
                self._ignored.add(stream_id)
        if streams.passed_over > self._requests * _FRAMES_PER_REQUEST:
            self.take_control(streams.passed_over - self._requests * _FRAMES_PER_REQUEST)
            streams.passed_over = self._requests * _FRAMES_PER_REQUEST
        if streams.leaves:
            self._close_if_done()

    def stream_reset(self, stream_id: int) -> None:
        """Forget a request that the client sends no more of."""
        if self.closed:
            return
        if stream_id & 3 == 2:
            try:
                if stream_id not in self._ignored:
                    self._client_streams.ended(stream_id)
            except ConnectionFault as fault:
                self._close(fault.code, str(fault))
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.ended = True
        self._ignored.discard(stream_id)
        self._cancel(stream, stream_id, ended=True)

    def stop_sending(self, stream_id: int) -> None:
        """Forget a request of whose answer the client wants no more; QUIC has reset our side of its stream."""
        if self.closed:
            return
        if stream_id == self._control_id:
            self._close(CLOSED_CRITICAL_STREAM, "our control stream was refused")
            return
        self._cancel(self._streams.get(stream_id), stream_id, ended=False)
        self._tails.pop(stream_id, None)

    def _cancel(self, stream: Stream | None, stream_id: int, *, ended: bool) -> None:
        if stream is not None:
            self._spend_reset()
            if not self.closed:
                self.drop(stream, REQUEST_CANCELLED)
            return
        self.take_control()
        if not stream_id & 3 and stream_id not in self._tails:
            # The client cancelled before the request arrived, as where a packet was lost: pass over what still arrives.
            self._end_stream(stream_id, REQUEST_CANCELLED, ended=ended)

    def stream_finished(self, stream_id: int) -> None:
        """Note that a client has everything of a stream, and nothing more will come of it."""
        self._tails.pop(stream_id, None)
        self._ignored.discard(stream_id)
        self._close_if_done()

    def sent(self) -> None:
        """Let answers go on that waited for the client, after packets were sent."""
        for stream in list(self._paused):
            stream.pause_if_full()

    # What streams say

    def note_paused(self, stream: Stream) -> None:
        """Remember to look whether a client takes more again."""
        if stream.write_paused:
            self._paused.add(stream)
        else:
            self._paused.discard(stream)

    def hold(self, size: int) -> None:
        """Count bytes of bodies that nobody takes yet, or, below 0, that somebody took."""
        self._held += size
        self._weigh()

    def hold_head(self, size: int) -> bool:
        """Count bytes of heads that are not whole, or, below 0, that are or were given up; False: they are too many."""
        self._heads += size
        self._weigh()
        return self._heads <= max(_HELD_MOST, 2 * self._context.config.max_head)

    def _weigh(self) -> None:
        is_full = self._held > 0 and self._held + self._heads >= _HELD_MOST
        if is_full is not self.is_full:
            self.is_full = is_full
            if not is_full:
                self.link.resume()

    def refuse_at_once(self, exchange: Exchange, head: RequestHead) -> bool:
        """Answer requests that no route is asked for."""
        config = self._context.config
        if len(head.target) > config.max_target:
            exchange.refuse(414, f"target longer than {config.max_target} bytes")
        elif config.max_body is not None and head.fields.content_length > config.max_body:
            exchange.refuse(413, f"body longer than {config.max_body} bytes")
        elif not self.link.serves(head.fields.host):
            exchange.refuse(421, MISDIRECTED)
        elif head.method in _REFUSED_METHODS:
            exchange.refuse(405, "method not allowed", _ALLOWED)
        elif head.target == b"*":
            exchange.refuse(200 if head.method == b"OPTIONS" else 400, "the server as a whole", _ALLOWED)
        else:
            return False
        return True

    def reject(self, stream: Stream) -> None:
        """Reset a request that nothing was done with yet, which its client may send again (section 4.1.1)."""
        self.drop(stream, REQUEST_REJECTED)
        self.take_control()

    def refuse_malformed(self, stream: Stream, bad: BadMessage) -> None:
        """Reset the stream of a request that is none (RFC 9114 section 4.1.2)."""
        exchange = stream.exchange
        if exchange.active:
            exchange.attempts.drop()
            exchange.status, exchange.reason = bad.status, bad.reason
            exchange.finish()
        self.drop(stream, MESSAGE_ERROR)
        self._spend_reset()

    def refuse_incomplete(self, stream: Stream) -> None:
        """Reset a stream that has ended without a request."""
        self.drop(stream, REQUEST_INCOMPLETE)
        self._spend_reset()

    def answered(self, stream: Stream) -> None:
        """Let go of a request whose answer is given; the rest of its body is not wanted (section 4.1)."""
        self._forget(stream)
        if self.closed:
            return
        self._tails[stream.id] = None
        if not stream.ended:
            self._ignored.add(stream.id)
            self.link.stop(stream.id, NO_ERROR)
        self._close_if_done()

    def drop(self, stream: Stream, code: int) -> None:
        """Reset a stream, whose exchange is over or will be."""
        self._forget(stream)
        self._end_stream(stream.id, code, ended=stream.ended)
        if stream.exchange.active:
            stream.exchange.abandon()
        self._close_if_done()

    def _forget(self, stream: Stream) -> None:
        self._streams.pop(stream.id, None)
        self._paused.discard(stream)
        stream.let_go()
        self._quiet_until = self._context.clock.now + self._context.config.idle_timeout_s

    def _end_stream(self, stream_id: int, code: int, *, ended: bool) -> None:
        self._tails.pop(stream_id, None)
        if self.closed:
            return
        self.link.reset(stream_id, code)
        if not ended:
            self._ignored.add(stream_id)
            self.link.stop(stream_id, code)

    # Abuse

    def take_control(self, count: int = 1) -> None:
        """Count what the client made us do beside requests."""
        if not self._control.take(count):
            self.calm_down()

    def _spend_reset(self) -> None:
        if not self._resets.take():
            self.calm_down()

    def calm_down(self) -> None:
        """End a connection that makes more work than requests."""
        if not self.closed:
            self._context.stats.client_error("http3 abuse")
            self._close(EXCESSIVE_LOAD, "more work than requests")

    # Ends

    def timed_out(self) -> None:
        """Look at the deadlines of all requests, and at how long there was none."""
        if self._context.draining:
            self.announce_drain()
        now = time.monotonic()
        if self._drain_at < now:
            self.drain()
        for stream in [each for each in self._streams.values() if each.deadline < now]:
            if stream.exchange.active:
                stream.exchange.timed_out()
            else:
                self.refuse_incomplete(stream)
        self._drop_stuck()
        if self.closed:
            return
        if self._streams or self._tails:
            self.deadline = 0.0
        elif self._quiet_until < now:
            self._close(NO_ERROR, "")
        else:
            self.deadline = min(self._quiet_until, self._drain_at)

    def _drop_stuck(self) -> None:
        """Reset streams whose answers are given and taken too slowly."""
        config, now = self._context.config, self._context.clock.now
        for stream_id, pace in list(self._tails.items()):
            taken = -self.link.unsent(stream_id)
            if not taken:
                continue
            if pace is None:
                pace = self._tails[stream_id] = Pace(taken, now)
            if pace.ends(taken, config.min_taken, config.body_timeout_s, now) <= now:
                self._end_stream(stream_id, REQUEST_CANCELLED, ended=True)
        self._close_if_done()

    def announce_drain(self) -> None:
        """Ask the client to open no more requests; those that are on their way are served (section 5.2)."""
        if not self._announced and not self.closed:
            self._announced = True
            self._say_goaway(_LAST_REQUEST)

    def replace(self) -> None:
        """Have the client open another connection, and close this one behind what is on its way."""
        self.announce_drain()
        self._drain_at = self._context.clock.now + self._context.config.drain_quiet_s
        self.deadline = min(self.deadline, self._drain_at)

    def drain(self) -> None:
        """Take no more requests; close once those under way are through."""
        if not self._draining and not self.closed:
            self._announced = self._draining = True
            self._first_refused = self._last_id + 4
            self._say_goaway(self._first_refused)
        self._close_if_done()

    def _say_goaway(self, first_refused: int) -> None:
        self.link.send(self._control_id, frame(GOAWAY, integer(first_refused)), end=False)

    def abort(self) -> None:
        """Close at once."""
        self._close(REQUEST_CANCELLED, "")

    def fail(self) -> None:
        """Close because of a fault of our own."""
        self._close(INTERNAL_ERROR, "")

    def _close_if_done(self) -> None:
        leaves = self._draining or self._client_streams.leaves
        if leaves and not self._streams and not self._tails:
            self._close(NO_ERROR, "")

    def _close(self, code: int, reason: str) -> None:
        if not self.closed:
            self.link.end(code, reason)
            self.lost()

    def _abandon_all(self) -> None:
        streams, self._streams = self._streams, {}
        self._tails = {}
        self._paused = set()
        for stream in streams.values():
            stream.let_go()
            if stream.exchange.active:
                stream.exchange.abandon()
