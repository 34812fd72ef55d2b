"""One request of a client of HTTP/3: a stream of its connection, with the frames that come on it."""

import math
from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import BadMessage, FramingError
from headgate.gateway.proxy.exchange.exchange import Exchange
from headgate.gateway.proxy.heads.head import AnswerHead, RequestFields
from headgate.gateway.proxy.http2.decompression import CompressionFault, HeaderList, HeaderListTooLong
from headgate.gateway.proxy.http2.heads import RequestHead, grpc_answer, lines_of, read_request
from headgate.gateway.proxy.http3.client_streams import UNIT
from headgate.gateway.proxy.http3.heads import (
    CONTINUE,
    answer_frame,
    informational_frame,
    trailers_frame,
    tunnel_frame,
)
from headgate.gateway.proxy.http3.numbers import (
    CANCEL_PUSH,
    DATA,
    DECOMPRESSION_FAILED,
    FRAME_ERROR,
    FRAME_UNEXPECTED,
    GOAWAY,
    HEADERS,
    HTTP2_FRAMES,
    INTERNAL_ERROR,
    MAX_PUSH_ID,
    PUSH_PROMISE,
    REQUEST_CANCELLED,
    SETTINGS,
    ConnectionFault,
    frame,
    read_integer,
)
from headgate.gateway.proxy.http3.qpack import decode
from headgate.gateway.proxy.sides import ClientSide

if TYPE_CHECKING:
    from headgate.gateway.proxy.http3.server import Http3Connection

_UNEXPECTED: Final = frozenset({SETTINGS, GOAWAY, MAX_PUSH_ID, CANCEL_PUSH, PUSH_PROMISE}) | HTTP2_FRAMES
_WITHOUT_BODY: Final = frozenset({b"GET", b"HEAD"})


class Stream(ClientSide):
    """One request of a client."""

    __slots__ = (
        "_connection",
        "_context",
        "_frame_left",
        "_has_head",
        "_has_trailers",
        "_held",
        "_held_end",
        "_held_trailers",
        "_is_connect",
        "_is_data",
        "_is_releasing",
        "_left",
        "_needed",
        "_rest",
        "_rest_size",
        "_waits",
        "ended",
        "exchange",
        "held",
        "id",
        "is_over",
    )

    def __init__(self, connection: "Http3Connection", stream_id: int, context: ProxyContext) -> None:
        super().__init__()
        self._connection = connection
        self._context = context
        self.id = stream_id
        self.peer = connection.peer
        self._rest: list[bytes] = []
        """The beginning of a frame whose header, or head, is not there to its end, as it came."""
        self._rest_size = 0
        """Bytes in it."""
        self._needed = 0
        """Bytes that it must have before it is worth a look: a head may come byte by byte."""
        self._frame_left = 0
        """Bytes that have to come of a frame that is passed on, or skipped, as it comes."""
        self._is_data = False
        """It is DATA."""
        self._has_head = False
        self._has_trailers = False
        self._waits: HeaderList | None = None
        """The head of a request that perhaps has no body; what follows will tell."""
        self._is_connect = False
        self._left = -1
        """Bytes of the body that have to come; -1: not known."""
        self._held: list[bytes] = []
        """What came of the body and could not be passed on yet."""
        self.held = 0
        """Bytes in it."""
        self._held_end = False
        self._held_trailers = b""
        self._is_releasing = False
        self.ended = False
        """The client has sent all that it wanted to."""
        self.is_over = False
        """Nothing more is read, though the answer may not be given yet."""
        self.deadline = context.clock.now + context.config.header_timeout_s
        self.exchange = Exchange(self, context)

    @property
    def version(self) -> bytes:
        """As the access log writes it."""
        return b"3.0"

    # From the client

    def take(self, data: bytes, *, end: bool) -> None:
        """Read what came. Raises ConnectionFault."""
        self.ended = end
        waits = self._waits
        if waits is not None:
            self._waits = None
            self._begin(waits, done=end and not data)
        if self._needed:
            if self._rest_size + len(data) < self._needed and not end:
                self._keep(data, self._needed)
                return
            data = self._take_rest() + data
        payload = self._read(data, end=end)
        if self.is_over:
            return
        if end:
            if self._needed or self._frame_left:
                raise ConnectionFault(FRAME_ERROR, "a stream that ends within a frame")
            if not self._has_head:
                self._connection.refuse_incomplete(self)
                return
        if payload or (end and not self.exchange.request_done and not self._has_trailers):
            self._take_body(payload, done=end and not self._has_trailers, trailers=b"")

    def _read(self, data: bytes, *, end: bool) -> bytes:
        """Read frames; return what they have of the body behind what was passed on already."""
        pieces: list[bytes] = []
        at, size, needed = 0, len(data), 0
        while at < size and not self.is_over:
            if self._frame_left:
                taken = min(self._frame_left, size - at)
                if self._is_data:
                    pieces.append(data[at : at + taken])
                self._frame_left -= taken
                at += taken
                continue
            kind, after = read_integer(data, at)
            length, begins = read_integer(data, after) if after >= 0 else (-1, -1)
            if begins < 0:
                needed = size - at + 1
                break
            if kind == HEADERS:
                after = begins + length
                if length > self._context.config.max_head:
                    self._refuse_long_head()
                    return b""
                if after > size:
                    needed = after - at
                    break
                if pieces:
                    self._take_body(b"".join(pieces), done=False, trailers=b"")
                    pieces = []
                self._take_block(data[begins:after], behind=size - after, end=end)
                at = after
                continue
            self._begin_frame(kind, length)
            at = begins
        if needed:
            self._keep(data[at:], needed)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _keep(self, data: bytes, needed: int) -> None:
        """Wait for more of a frame, unless that would be too much of all that wait."""
        self._rest.append(data)
        self._rest_size += len(data)
        self._needed = needed
        if self._connection.hold_head(len(data)):
            return
        if self._has_head:
            self._refuse_long_head()
        else:
            self._connection.reject(self)

    def _take_rest(self) -> bytes:
        rest = b"".join(self._rest)
        self._forget_rest()
        return rest

    def _forget_rest(self) -> None:
        if self._rest_size:
            self._connection.hold_head(-self._rest_size)
        self._rest = []
        self._rest_size = self._needed = 0

    def _begin_frame(self, kind: int, length: int) -> None:
        self._is_data = kind == DATA
        if self._is_data:
            if not self._has_head or self._has_trailers:
                raise ConnectionFault(FRAME_UNEXPECTED, "DATA outside of a body")
            if not length:
                self._connection.take_control()
        elif kind in _UNEXPECTED:
            raise ConnectionFault(FRAME_UNEXPECTED, "a frame that may not be on a request's stream")
        else:
            self._connection.take_control(1 + length // UNIT)
        self._frame_left = length

    def _take_block(self, block: bytes, *, behind: int, end: bool) -> None:
        if self._has_trailers:
            raise ConnectionFault(FRAME_UNEXPECTED, "a head behind the trailers")
        if self._is_connect:
            raise ConnectionFault(FRAME_UNEXPECTED, "a head within a tunnel")
        try:
            headers = decode(block, self._context.config.max_head)
        except CompressionFault as fault:
            raise ConnectionFault(DECOMPRESSION_FAILED, str(fault)) from None
        except HeaderListTooLong:
            self._refuse_long_head()
            return
        if self._has_head:
            self._has_trailers = True
            self._take_trailers(headers)
            return
        self._has_head = True
        if not (end or behind) and _may_have_ended(headers):
            # Many clients end a stream apart from its head.
            self._waits = headers
            return
        self._begin(headers, done=end and not behind)

    def _begin(self, headers: HeaderList, *, done: bool) -> None:
        self.deadline = math.inf
        context, exchange = self._context, self.exchange
        try:
            head = read_request(headers, ended=done, max_count=context.config.max_header_count, rules=context.rules)
        except BadMessage as bad:
            exchange.begin(b"-", b"-", RequestFields())
            if isinstance(bad, FramingError):
                self._connection.refuse_malformed(self, bad)
            else:
                exchange.request_done = done
                exchange.refuse(bad.status, bad.reason)
            return
        exchange.begin(head.method, head.target, head.fields)
        exchange.request_done = done
        if not self._connection.refuse_at_once(exchange, head):
            self._start(head, done=done)

    def _start(self, head: RequestHead, *, done: bool) -> None:
        """Hand the request to its exchange."""
        self.is_grpc = head.is_grpc
        self._is_connect = head.is_connect
        self._left = head.fields.content_length
        exchange, target, max_body = self.exchange, head.target, self._context.config.max_body
        if head.timeout_s is not None:
            exchange.allow(head.timeout_s)
        if max_body is not None and not done and not exchange.intake.limit(max_body):
            return
        query = target.find(b"?")
        path = target if query < 0 else target[:query]
        exchange.dispatch(path, b"", done=done or head.is_connect)

    def _refuse_long_head(self) -> None:
        """Answer 431, also to trailers: these come before the answer, or break off one that has begun."""
        exchange = self.exchange
        part = "trailers" if self._has_head else "head"
        if not self._has_head:
            self._has_head = True
            exchange.begin(b"-", b"-", RequestFields())
        self._refuse(431, f"{part} longer than {self._context.config.max_head} bytes")

    def _refuse(self, status: int, reason: str) -> None:
        """Answer by ourselves. Nothing more is read, also while plugins look at the answer."""
        self.let_go()
        if self.exchange.active:
            self.exchange.refuse(status, reason)

    def _take_trailers(self, headers: HeaderList) -> None:
        """End the request with trailers."""
        exchange = self.exchange
        try:
            lines = lines_of(headers)
        except BadMessage as bad:
            self._refuse(bad.status, bad.reason)
            return
        self._take_body(b"", done=True, trailers=b"" if exchange.tunnel else lines)

    def _take_body(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Pass a part of the request's body on, or hold it while nobody takes it."""
        if self._left >= 0:
            self._left -= len(payload)
            if self._left < 0 or (done and self._left):
                self._connection.refuse_malformed(self, FramingError("Content-Length disagrees with the body"))
                return
        exchange = self.exchange
        if not exchange.active:
            return
        if not self._held and not self._held_end and exchange.takes_body:
            self._pass_on(payload, done=done, trailers=trailers)
            return
        if payload:
            self._held.append(payload)
            self.held += len(payload)
            self._connection.hold(len(payload))
        if done:
            self._held_end, self._held_trailers = True, trailers

    def _pass_on(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        exchange = self.exchange
        if not (exchange.tunnel and done):
            exchange.request_data(payload, done=done, trailers=trailers)
            return
        if payload:
            exchange.request_data(payload, done=False, trailers=b"")
        exchange.end_tunnel()

    def update_reading(self) -> None:
        """Pass on what is held, as far as it is taken."""
        if self._is_releasing:
            return
        self._is_releasing = True
        exchange, held = self.exchange, self._held
        while (held or self._held_end) and exchange.active and exchange.takes_body:
            payload = held.pop(0) if held else b""
            self.held -= len(payload)
            self._connection.hold(-len(payload))
            done = self._held_end and not held
            trailers = b""
            if done:
                self._held_end, trailers = False, self._held_trailers
            self._pass_on(payload, done=done, trailers=trailers)
        self._is_releasing = False

    def let_go(self) -> None:
        """Forget what is held, and read nothing more."""
        self.is_over = True
        self._forget_rest()
        self._held = []
        self._held_end = False
        if self.held:
            self._connection.hold(-self.held)
            self.held = 0

    # To the client

    def send_answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Send head and first bytes."""
        if self._is_connect and 200 <= answer.status < 300:
            # The client would take it for an open tunnel.
            self.exchange.refuse(502, "upstream did not switch to the WebSocket protocol")
            return
        self._send(answer_frame(answer, self._context.clock.date_line), payload, done=done, trailers=trailers)

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body."""
        self._send(b"", payload, done=done, trailers=trailers)

    def _send(self, head: bytes, payload: bytes, *, done: bool, trailers: bytes) -> None:
        if payload:
            head += frame(DATA, payload)
        if done and trailers:
            head += trailers_frame(trailers)
        if head or done:
            self._connection.link.send(self.id, head, end=done)
        if done:
            self.exchange.finish()
            self._connection.answered(self)
        else:
            self.pause_if_full()

    def pause_if_full(self) -> None:
        """Stop or go on taking the answer from the upstream, by what waits for the client."""
        link, high = self._connection.link, self._context.config.buffer_high
        full = link.unsent(self.id) > high
        if full:
            link.flush()
            full = link.unsent(self.id) > high
        if full is not self.write_paused:
            self.write_paused = full
            self._connection.note_paused(self)
            if self.exchange.active:
                self.exchange.client_paused(full)

    def send_informational(self, answer: AnswerHead) -> None:
        """Pass a 1xx on."""
        self._connection.link.send(self.id, informational_frame(answer), end=False)

    def send_continue(self) -> None:
        """Ask for the body."""
        self._connection.link.send(self.id, CONTINUE, end=False)

    def open_tunnel(self, answer: AnswerHead, payload: bytes) -> None:
        """Say that the CONNECT was taken (RFC 9220)."""
        data = tunnel_frame(answer)
        if payload:
            data += frame(DATA, payload)
        self._connection.link.send(self.id, data, end=False)

    def end_tunnel(self) -> None:
        """End the stream behind the last byte."""
        self._connection.link.send(self.id, b"", end=True)
        self._connection.answered(self)

    def cut_off(self) -> None:
        """Reset the stream."""
        self._connection.drop(self, INTERNAL_ERROR)

    def abort(self) -> None:
        """Reset the stream."""
        self._connection.drop(self, REQUEST_CANCELLED)

    def taken(self) -> int:
        """Count what was sent for the first time."""
        return self.exchange.bytes_sent - self.unsent()

    def unsent(self) -> int:
        """Count what waits for the client's windows and the network."""
        return self._connection.link.unsent(self.id)

    def own_answer(self, answer: AnswerHead, status: int, reason: str) -> AnswerHead | None:
        """Give an answer of ours the form that gRPC wants; None: it is good as it is."""
        return grpc_answer(status, reason) if self.is_grpc else None


def _may_have_ended(headers: HeaderList) -> bool:
    """Tell whether a request whose stream goes on has perhaps no body."""
    is_plain = False
    for name, value in headers:
        if name == b"content-length":
            return False
        if name == b":method":
            is_plain = value in _WITHOUT_BODY
    return is_plain
