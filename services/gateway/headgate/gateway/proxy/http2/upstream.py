"""A request to an endpoint that speaks HTTP/2: one stream of a connection."""

import asyncio
import base64
import hashlib
import re
from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.errors import BadMessage, status_line
from headgate.gateway.proxy.heads.forward import authority
from headgate.gateway.proxy.heads.head import AnswerHead
from headgate.gateway.proxy.http2.compression import (
    AUTHORITY,
    CONTENT_LENGTH,
    REQUEST_ID,
    compress_field,
    compress_lines,
    compress_literal,
)
from headgate.gateway.proxy.http2.decompression import HeaderList
from headgate.gateway.proxy.http2.flow import Flow
from headgate.gateway.proxy.http2.frames import CANCEL, NO_ERROR, REFUSED_STREAM
from headgate.gateway.proxy.http2.heads import is_grpc_type, lines_of, read_answer
from headgate.gateway.proxy.sides import SentRequest, UpstreamSide

if TYPE_CHECKING:
    from headgate.gateway.health.circuit import Circuit
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.http2.client import UpstreamLink

_MAX_INFORMATIONAL: Final = 16
_NO_FLOW: Final = Flow(0)
_WEBSOCKET_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY: Final = re.compile(rb"^sec-websocket-key:([^\r\n]*)\r\n", re.IGNORECASE | re.MULTILINE)
_TYPE: Final = re.compile(rb"^content-type:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_SCHEMES: Final = (compress_field(b":scheme", b"http"), compress_field(b":scheme", b"https"))
_TE: Final = compress_field(b"te", b"trailers")


class Http2Upstream(UpstreamSide):
    """One request on a connection to an endpoint."""

    __slots__ = (
        "_bodiless",
        "_flow",
        "_informational",
        "_left",
        "_link",
        "_paused",
        "_tunnel",
        "_websocket_key",
        "id",
    )

    def __init__(self, pool: "EndpointPool", link: "UpstreamLink") -> None:
        super().__init__(pool)
        self._link = link
        self._flow = _NO_FLOW
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

    def begin(self, exchange: SentRequest, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Open a stream with head and first bytes."""
        link = self._link
        self.exchange = exchange
        self.pool.in_flight += 1
        self.id = link.begin(self)
        self._flow = link.flows[self.id]
        if exchange.upgrade and not link.peer_takes_connect:
            asyncio.get_running_loop().call_soon(self._fail, "the endpoint takes no WebSockets over HTTP/2")
            return
        ends = done and not payload and not trailers and not exchange.upgrade
        if not link.send_headers(self.id, self._block(exchange), end=ends):
            asyncio.get_running_loop().call_soon(self.was_ignored)
        elif not ends and not exchange.upgrade and (payload or done):
            self.send_data(payload, done=done, trailers=trailers)

    def _block(self, exchange: SentRequest) -> bytes:
        lines = exchange.lines
        pool = self.pool
        pieces = [
            compress_field(b":method", b"CONNECT" if exchange.upgrade else exchange.method),
            _SCHEMES[pool.spec.tls is not None],
            compress_literal(AUTHORITY, authority(exchange, pool)),
            compress_field(b":path", exchange.target),
        ]
        if exchange.upgrade:
            pieces.append(compress_field(b":protocol", exchange.upgrade))
            key = _KEY.search(lines)
            self._websocket_key = key[1].strip(b" \t") if key is not None else b""
            lines = _KEY.sub(b"", lines)
        pieces.append(compress_lines(lines))
        if exchange.client.is_grpc or _has_grpc_type(lines):
            pieces.append(_TE)
        fields = exchange.fields
        if fields.content_length >= 0 and not fields.chunked:
            pieces.append(compress_literal(CONTENT_LENGTH, b"%d" % fields.content_length))
        pieces.append(compress_literal(REQUEST_ID, exchange.request_id))
        return b"".join(pieces)

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body, or of what goes through the tunnel."""
        self._link.send(self.id, payload, end=done, trailers=trailers)
        self.pause_if_full()

    def pause_if_full(self) -> None:
        """Stop or go on taking the body from the client, by what waits here."""
        full = self._flow.size > self.pool.config.buffer_high
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
            self._flow.drops_rest = True
            self._link.send(self.id, b"", end=True)
            self._link.finished(self.id, self._flow)
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
        self._link.return_window(self.id, self._flow)

    def _part(self) -> SentRequest | None:
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

    def take_informational(self, headers: HeaderList, *, done: bool) -> None:
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
        if done or answer.status == 101 or answer.content_length >= 0 or self._informational > _MAX_INFORMATIONAL:
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
        if self._bodiless and data:
            self._fail("invalid answer: a body that must not be there")
            return
        if self._left >= 0:
            self._left -= len(data)
            if self._left < 0 or (done and self._left):
                self._fail("invalid answer: its Content-Length disagrees with its body")
                return
        if done:
            self._end(exchange)
        self._flow.unreturned += size
        exchange.answer_data(data, done=done, trailers=b"")
        if not done and not self._paused and self.exchange is not None:
            self._link.return_window(self.id, self._flow)

    def take_trailers(self, headers: HeaderList, *, done: bool) -> None:
        """End the answer with trailers."""
        exchange = self.exchange
        if exchange is None:
            return
        if not done:
            self._fail("invalid answer: trailers before the end of its body")
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

    def _lose(self, exchange: SentRequest) -> None:
        self._part()
        self._flow.drops_rest = True
        self._link.finished(self.id, self._flow)
        exchange.upstream_lost(self)

    def _end(self, exchange: SentRequest) -> None:
        """Part with the exchange before the end of its answer is passed on, as that may start the next request."""
        self._part()
        exchange.upstream = None
        if self._flow.is_over:
            self._link.finished(self.id, self._flow)
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


def _has_grpc_type(lines: bytes) -> bool:
    """Say whether header lines name a type of gRPC, which a plugin may have chosen."""
    if lines.find(b"application/grpc") < 0:
        return False
    kind = _TYPE.search(lines)
    return kind is not None and is_grpc_type(kind[1])


def _switched(answer: AnswerHead, key: bytes) -> AnswerHead:
    """Build the 101 that an HTTP/1.1 client waits for (RFC 6455 section 4.2.2) out of an answer of RFC 8441."""
    switched = AnswerHead(101, status_line(101))
    proof = base64.b64encode(hashlib.sha1(key + _WEBSOCKET_GUID, usedforsecurity=False).digest())
    switched.lines = b"%bSec-WebSocket-Accept: %b\r\n" % (answer.lines, proof)
    switched.upgrade = b"websocket"
    return switched
