"""One connection to an endpoint: sends requests, reads answers, and knows whether it may be used again.

It may be, only if the answer ended where its framing said, the whole request was sent, and nothing surprising came: a
connection about which there is doubt is closed, for on it the next client could read the answer to somebody else.
"""

from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.connection_side import ConnectionSide
from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.heads.forward import request_head
from headgate.gateway.proxy.heads.grammar import PARTIAL_HEAD_FAULT
from headgate.gateway.proxy.heads.head import AnswerHead
from headgate.gateway.proxy.heads.reading import read_answer_head
from headgate.gateway.proxy.heads.shape import Shape
from headgate.gateway.proxy.http1.framing import (
    BodyReader,
    ChunkedReader,
    EndReader,
    LengthReader,
    encode_chunk,
    last_chunk,
)
from headgate.gateway.proxy.http1.parser import AnswerParser
from headgate.gateway.proxy.sides import SentRequest

if TYPE_CHECKING:
    from headgate.gateway.proxy.http1.pool import Http1Pool

_MAX_INFORMATIONAL: Final = 16


class UpstreamConnection(ConnectionSide):
    """An HTTP/1.1 connection: serves one exchange at a time; between two it rests in its pool."""

    __slots__ = (
        "_buffer",
        "_chunking",
        "_home",
        "_informational",
        "_parser",
        "_reader",
        "_shape",
        "_surprised",
        "_tunnel",
        "_turn",
        "idle_since",
        "requests",
    )

    def __init__(self, pool: "Http1Pool") -> None:
        super().__init__(pool)
        self._home = pool
        """Where it rests."""
        self.idle_since = 0.0
        self.requests = 0
        """Begun on this connection."""
        self._buffer = b""
        self._parser = AnswerParser()
        self._reader: BodyReader | None = None
        self._shape: Shape | None = None
        """Of the last answer's head, which the next one probably has."""
        self._surprised = False
        self._turn = 0
        """Of the event loop, in which the current request was written."""
        self._informational = 0
        self._chunking = False
        """The request's body is sent in chunks."""
        self._tunnel = False

    def begin(self, exchange: SentRequest, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send head and first bytes in one piece."""
        self.exchange = exchange
        self._turn = self.pool.outbox.turn
        self.seen = False
        self._reader = None
        self._surprised = False
        self._informational = 0
        self.requests += 1
        self.pool.in_flight += 1
        if self.circuit is not None:
            self.circuit.unrest(self)
        data = request_head(exchange, self.pool)
        self._chunking = exchange.fields.chunked
        if self._chunking:
            data += encode_chunk(payload) + (last_chunk(trailers) if done else b"")
        elif payload:
            data += payload
        self.transport.write(data)

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body, or of what goes through the tunnel."""
        if self._chunking:
            payload = encode_chunk(payload) + (last_chunk(trailers) if done else b"")
        if payload:
            self.transport.write(payload)

    def end_tunnel(self) -> None:
        """End the sending half; TLS has none, so there the connection is closed."""
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def discard(self) -> None:
        """Part with the current exchange, if any, and close: the connection is not to be used again."""
        if self.exchange is not None:
            self.exchange = None
            self.pool.in_flight -= 1
        if not self._connected:
            return
        if self._tunnel:
            # What the client said last is still on its way.
            self.transport.close()
        else:
            self.transport.abort()

    def make_room(self) -> None:
        """Close, at rest, for a connection to another endpoint that is counted instead."""
        self.circuit = None
        self._home.forget(self)
        self.transport.close()

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        """Read the head, then the body, of the current answer."""
        exchange = self.exchange
        if exchange is None:
            # Nobody asked: whatever it is must not become the answer to the next request.
            self._home.forget(self)
            self.transport.abort()
            return
        if not self.seen and self._turn == self.pool.outbox.turn:
            # It came before the request left, so it answers nothing.
            self.discard()
            exchange.upstream_lost(self)
            return
        self.seen = True
        if self._tunnel:
            exchange.answer_data(data, done=False, trailers=b"")
            return
        try:
            if self._reader is None:
                self._read_head(exchange, data)
            else:
                self._read_body(exchange, self._reader, data)
        except BadMessage as bad:
            self.discard()
            exchange.upstream_failed(f"invalid answer: {bad.reason}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the pool, and the exchange that was under way."""
        exchange, self.exchange = self.exchange, None
        self._parser.close()
        if self.circuit is not None:
            self.circuit.unrest(self)
            self.circuit.release_connection()
        if exchange is None:
            self._home.forget(self)
            return
        self.pool.in_flight -= 1
        if isinstance(self._reader, EndReader) and exc is None:
            exchange.upstream = None
            exchange.answer_data(b"", done=True, trailers=b"")
        else:
            exchange.upstream_lost(self)

    # Reading

    def _read_head(self, exchange: SentRequest, data: bytes) -> None:
        config, shape = self.pool.config, self._shape
        lines: list[bytes] | None = None
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        elif shape is not None:
            lines = shape.cut(data)
        end = data.find(b"\r\n\r\n") if lines is None else len(data) - len(lines[-1]) - 4
        if end < 0 or end > config.max_head:
            self._keep_partial(data, end)
            return
        head = data[: end + 4]
        self._parser.head(head)
        if lines is None:
            lines, shape, rest = head.split(b"\r\n")[:-1], None, data[end + 4 :]
        else:
            rest = lines.pop()
        answer = read_answer_head(lines, shape, config.max_header_count)
        self._shape = answer.shape
        if answer.status < 200:
            self._read_informational(exchange, answer, rest)
        else:
            self._begin_answer(exchange, answer, rest)

    def _keep_partial(self, data: bytes, end: int) -> None:
        limit = self.pool.config.max_head
        if end > limit or len(data) > limit:
            raise BadMessage(f"head longer than {limit} bytes", 502)
        if PARTIAL_HEAD_FAULT.search(data):
            raise BadMessage("malformed head", 502)
        self._buffer = data

    def _read_informational(self, exchange: SentRequest, answer: AnswerHead, rest: bytes) -> None:
        """Pass 1xx on, except what the client never asked for: 100 is dropped, 101 refused."""
        self._informational += 1
        if answer.status == 101 and exchange.upgrade and answer.upgrade == exchange.upgrade:
            self._tunnel = True
            exchange.switch(answer, rest)
            return
        if answer.status == 101 or self._informational > _MAX_INFORMATIONAL:
            raise BadMessage(f"unexpected {answer.status}", 502)
        if answer.content_length >= 0:
            raise BadMessage(f"Content-Length in an answer {answer.status}", 502)
        if answer.status == 100:
            self._surprised = True
        else:
            exchange.informational(answer)
        if rest and self.exchange is exchange:
            self._read_head(exchange, rest)

    def _begin_answer(self, exchange: SentRequest, answer: AnswerHead, rest: bytes) -> None:
        length = answer.content_length
        bodiless = exchange.method == b"HEAD" or answer.status == 204 or answer.status == 304
        if bodiless:
            if not self._parser.complete:
                # An answer to HEAD, of which llhttp cannot know that its body will not come.
                self._parser.renew()
            surplus = bool(rest)
            payload = b""
            self._end(exchange, reusable=not (answer.closes or surplus))
            exchange.answer(answer, payload, bodiless=bodiless, done=True, trailers=b"")
            return
        parser = self._parser
        if length == len(rest):
            payload = parser.body(rest)
            if not parser.complete:
                raise BadMessage("unclear where the answer ends", 502)
            self._end(exchange, reusable=not answer.closes)
            exchange.answer(answer, payload, bodiless=False, done=True, trailers=b"")
            return
        reader: BodyReader
        if answer.chunked:
            reader = ChunkedReader(parser)
        else:
            reader = LengthReader(parser, length) if length >= 0 else EndReader(parser)
        self._surprised |= answer.closes
        self._reader = reader
        payload = reader.feed(rest)
        if reader.done:
            self._end(exchange, reusable=not reader.rest)
        exchange.answer(answer, payload, bodiless=False, done=reader.done, trailers=reader.trailers)

    def _read_body(self, exchange: SentRequest, reader: BodyReader, data: bytes) -> None:
        payload = reader.feed(data)
        if reader.done:
            self._end(exchange, reusable=not reader.rest)
        exchange.answer_data(payload, done=reader.done, trailers=reader.trailers)

    def _end(self, exchange: SentRequest, *, reusable: bool) -> None:
        """Part with the exchange before its answer is passed on, as that may start the client's next request."""
        self.exchange = None
        exchange.upstream = None
        self.pool.in_flight -= 1
        self._reader = None
        if reusable and exchange.request_done and not self._surprised and not self.write_paused:
            self.reused = True
            self.resume_reading()
            circuit = self.circuit
            self._home.release(self)
            if circuit is not None and not self.transport.is_closing():
                circuit.rest(self)
        else:
            self.transport.close()
