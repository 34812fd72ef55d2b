"""One request of a client of HTTP/2: a stream of its connection."""

import math
from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import BadMessage, FramingError
from headgate.gateway.proxy.exchange.exchange import Exchange
from headgate.gateway.proxy.heads.head import AnswerHead
from headgate.gateway.proxy.http2.compression import compress_field, compress_lines
from headgate.gateway.proxy.http2.decompression import HeaderList
from headgate.gateway.proxy.http2.flow import Flow
from headgate.gateway.proxy.http2.frames import CANCEL, INTERNAL_ERROR
from headgate.gateway.proxy.http2.heads import RequestHead, answer_block, grpc_answer, lines_of
from headgate.gateway.proxy.sides import ClientSide

if TYPE_CHECKING:
    from headgate.gateway.proxy.http2.server import Http2Connection

_CONTINUE: Final = compress_field(b":status", b"100")
_TUNNEL: Final = compress_field(b":status", b"200")


class Stream(ClientSide):
    """One request of a client; once it is answered the object may serve another one of the same connection."""

    __slots__ = ("_connection", "_flow", "_is_connect", "_left", "ended", "exchange", "id")

    def __init__(self, connection: "Http2Connection", stream_id: int, flow: Flow, context: ProxyContext) -> None:
        super().__init__()
        self._connection = connection
        self.peer = connection.peer
        self.begin(stream_id, flow)
        self.exchange = Exchange(self, context)

    def begin(self, stream_id: int, flow: Flow) -> None:
        """Begin with a request."""
        self.id = stream_id
        self._flow = flow
        self._is_connect = False
        self._left = -1
        """Bytes of the body that have to come; -1: not known."""
        self.ended = False
        """The client has sent all that it wanted to."""
        self.is_grpc = False
        self.write_paused = False
        self.deadline = math.inf

    @property
    def is_reusable(self) -> bool:
        """Whether nothing more can come of the request, from either side."""
        exchange = self.exchange
        return self.ended and exchange.upstream is None and not (exchange.active or exchange.tunnel)

    @property
    def version(self) -> bytes:
        """As the access log writes it."""
        return b"2.0"

    def send_answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Send head and first bytes."""
        if self._is_connect and 200 <= answer.status < 300:
            # The client would take it for an open tunnel.
            self.exchange.refuse(502, "upstream did not switch to the WebSocket protocol")
            return
        connection = self._connection
        answer.lines += self.peer.alt_svc
        ends = done and not trailers and not payload
        connection.send_headers(self.id, answer_block(answer, connection.date_line), end=ends)
        if not ends:
            connection.send(self.id, payload, end=done, trailers=trailers)
        self._sent(done)

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body."""
        self._connection.send(self.id, payload, end=done, trailers=trailers)
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
        full = self._flow.size > connection.config.buffer_high or connection.write_paused
        if full is not self.write_paused:
            self.write_paused = full
            if self.exchange.active:
                self.exchange.client_paused(full)

    def send_informational(self, answer: AnswerHead) -> None:
        """Pass a 1xx on."""
        block = compress_field(b":status", b"%d" % answer.status)
        self._connection.send_headers(self.id, block + compress_lines(answer.lines), end=False)

    def send_continue(self) -> None:
        """Ask for the body."""
        self._connection.send_headers(self.id, _CONTINUE, end=False)

    def open_tunnel(self, answer: AnswerHead, payload: bytes) -> None:
        """Say that the CONNECT was taken (RFC 8441 section 5)."""
        lines = answer.lines.splitlines(keepends=True)
        kept = b"".join([line for line in lines if not line.lower().startswith(b"sec-websocket-accept:")])
        self._connection.send_headers(self.id, _TUNNEL + compress_lines(kept), end=False)
        if payload:
            self._connection.send(self.id, payload, end=False)

    def start(self, head: RequestHead, max_body: int | None) -> None:
        """Hand the request to its exchange."""
        self.is_grpc = head.is_grpc
        self._is_connect = head.is_connect
        self._left = head.fields.content_length
        exchange, target = self.exchange, head.target
        if head.timeout_s is not None:
            exchange.allow(head.timeout_s)
        if max_body is not None and not self.ended and not exchange.intake.limit(max_body):
            return
        query = target.find(b"?")
        path = target if query < 0 else target[:query]
        exchange.dispatch(path, b"", done=self.ended or head.is_connect)

    def end_tunnel(self) -> None:
        """End the stream behind the last byte."""
        self._connection.send(self.id, b"", end=True)
        self._connection.answered(self)

    def cut_off(self) -> None:
        """Reset the stream."""
        self._connection.drop(self, INTERNAL_ERROR)

    def taken(self) -> int:
        """Count what the client's windows let through."""
        return self.exchange.bytes_sent - self._flow.size

    def unsent(self) -> int:
        """Count what waits for the client's windows."""
        return self._flow.size

    def abort(self) -> None:
        """Reset the stream."""
        self._connection.drop(self, CANCEL)

    def update_reading(self) -> None:
        """Open the window for what was passed on."""
        if self.exchange.takes_body:
            self._connection.return_window(self.id, self._flow)

    def own_answer(self, answer: AnswerHead, status: int, reason: str) -> AnswerHead | None:
        """Give an answer of ours the form that gRPC wants; None: it is good as it is."""
        return grpc_answer(status, reason) if self.is_grpc else None

    def take_trailers(self, headers: HeaderList) -> None:
        """End the request with trailers."""
        exchange = self.exchange
        try:
            lines = lines_of(headers)
        except BadMessage as bad:
            exchange.refuse(bad.status, bad.reason)
            return
        if exchange.tunnel:
            exchange.end_tunnel()
        else:
            self.take_body(b"", done=True, trailers=lines, size=0)

    def take_body(self, payload: bytes, *, done: bool, trailers: bytes, size: int) -> None:
        """Pass a part of the request's body on; `size` is what it took of the window."""
        self._flow.unreturned += size
        if self._left >= 0:
            self._left -= len(payload)
            if self._left < 0 or (done and self._left):
                self._connection.refuse_malformed(self, FramingError("Content-Length disagrees with the body"))
                return
        exchange = self.exchange
        if exchange.active:
            exchange.request_data(payload, done=done, trailers=trailers)
        if not done:
            self.update_reading()
