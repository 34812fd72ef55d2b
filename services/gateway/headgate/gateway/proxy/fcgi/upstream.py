"""One request to an application by FastCGI, on a connection of its own."""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.connection_side import ConnectionSide
from headgate.gateway.proxy.errors import BadMessage, FramingError
from headgate.gateway.proxy.fcgi.answer import HEAD_END, read_cgi_head
from headgate.gateway.proxy.fcgi.params import ParamsWriter
from headgate.gateway.proxy.fcgi.records import STDERR, STDIN, RecordReader, begin_request, end_stream, write_stream
from headgate.gateway.proxy.sides import SentRequest

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool

_log = logging.getLogger(__name__)
_MAX_ERRORS: Final = 2048
"""Bytes of what an application says of its errors that are logged for a request."""
_REFUSALS: Final = frozenset({1, 2})
"""The application takes one request at a time, or has no room (specification, section 5.5): it has not begun."""
_UNKNOWN: Final = -1


class FcgiUpstream(ConnectionSide):
    """Sends parameters and body, and reads the answer: its head, its body, and what it says of errors."""

    __slots__ = ("_errors", "_has_ended", "_has_head", "_head", "_left", "_reader", "_writer")

    def __init__(self, pool: "EndpointPool", writer: ParamsWriter) -> None:
        super().__init__(pool)
        self._writer = writer
        self._reader = RecordReader()
        self._head = b""
        """What there is of the head."""
        self._has_head = False
        self._left = _UNKNOWN
        """Bytes of the body that have to come, by its Content-Length."""
        self._has_ended = False
        """The application says nothing more."""
        self._errors = b""

    def begin(self, exchange: SentRequest, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send the parameters and the first bytes of the body."""
        self.exchange = exchange
        self.pool.in_flight += 1
        fields = exchange.fields
        size = fields.content_length
        if size < 0 and done and (payload or fields.chunked):
            size = len(payload)
        try:
            params = self._writer.write(exchange, self.pool, size)
        except BadMessage as bad:
            asyncio.get_running_loop().call_soon(self._fail, bad.reason)
            return
        # Applications know no other protocol to switch to, and answer as they like.
        is_whole = done or bool(exchange.upgrade)
        self.transport.write(begin_request(params) + _body(payload, is_whole=is_whole))

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body; CGI has no trailers."""
        if payload or done:
            self.transport.write(_body(payload, is_whole=done))

    def end_tunnel(self) -> None:
        """There are none."""
        self.transport.close()

    def discard(self) -> None:
        """Part with the exchange, and close."""
        self._part()
        if self._connected:
            self.transport.abort()

    def _part(self) -> SentRequest | None:
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            self.pool.in_flight -= 1
        if self._errors:
            told = self._errors.decode("utf-8", "backslashreplace").strip()
            self._errors = b""
            _log.warning("the application at %s says: %s", self.pool.label, told.encode("unicode_escape").decode())
        return exchange

    def _fail(self, reason: str) -> None:
        exchange = self._part()
        self.transport.abort()
        if exchange is not None:
            exchange.upstream_failed(reason)

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        """Read records, and pass on what is in them."""
        exchange = self.exchange
        if exchange is None:
            self.transport.abort()
            return
        self.seen = True
        try:
            output = self._read(data)
            status = self._reader.status
            if status in _REFUSALS and not self._has_head:
                self._refuse()
            elif status > 0:
                raise FramingError(f"the application ended the request with status {status}")
            elif self._has_head:
                payload = self._cut(output)
                done = self._is_over(status == 0)
                if done:
                    self._end(exchange)
                if payload or done:
                    exchange.answer_data(payload, done=done, trailers=b"")
            else:
                self._read_head(exchange, output, ended=status == 0)
        except BadMessage as bad:
            self._fail(f"invalid answer: {bad.reason}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the exchange that was under way; all of the answer may be there although its end was not said."""
        if self.circuit is not None:
            self.circuit.release_connection()
        exchange = self._part()
        if exchange is None:
            return
        if self._has_head and self._has_ended and self._left <= 0 and exc is None:
            exchange.upstream = None
            exchange.answer_data(b"", done=True, trailers=b"")
        else:
            exchange.upstream_lost(self)

    # Reading

    def _read(self, data: bytes) -> bytes:
        """Give the output in what came, and note the errors."""
        output: list[bytes] = []
        for kind, content in self._reader.feed(data):
            if kind == STDERR:
                self._errors += content[: _MAX_ERRORS - len(self._errors)]
            elif content:
                output.append(content)
            else:
                self._has_ended = True
        return b"".join(output)

    def _read_head(self, exchange: SentRequest, output: bytes, *, ended: bool) -> None:
        self._head += output
        found = HEAD_END.search(self._head)
        limit = self.pool.config.max_head
        size = len(self._head) if found is None else found.start()
        if size > limit:
            raise BadMessage(f"head longer than {limit} bytes", 502)
        if found is None:
            if ended:
                raise FramingError("it ended before its head did")
            return
        answer = read_cgi_head(self._head[:size], self.pool.config.max_header_count)
        payload, self._head = self._head[found.end() :], b""
        self._has_head = True
        bodiless = exchange.method == b"HEAD" or answer.status == 204 or answer.status == 304
        self._left = answer.content_length
        if bodiless:
            payload, done = b"", True
        else:
            payload = self._cut(payload)
            done = self._is_over(ended)
        if done:
            self._end(exchange)
        exchange.answer(answer, payload, bodiless=bodiless, done=done, trailers=b"")

    def _cut(self, payload: bytes) -> bytes:
        """Leave out what is behind the body's length, as nginx does."""
        if self._left == _UNKNOWN:
            return payload
        payload = payload[: self._left]
        self._left -= len(payload)
        return payload

    def _is_over(self, ended: bool) -> bool:
        if ended and self._left > 0:
            raise FramingError("it ends before its Content-Length")
        return ended or self._left == 0

    def _refuse(self) -> None:
        exchange = self._part()
        self.transport.abort()
        self.seen = False
        if exchange is not None:
            exchange.upstream_refused(self)

    def _end(self, exchange: SentRequest) -> None:
        """Part with the exchange before the end of its answer is passed on, as that may start the next request."""
        self._part()
        exchange.upstream = None
        self.transport.close()


def _body(payload: bytes, *, is_whole: bool) -> bytes:
    return write_stream(STDIN, payload) + (end_stream(STDIN) if is_whole else b"")
