"""One client connection: bytes in, one request after the other out to its exchange.

Requests are served strictly in order, one at a time; what a client sends meanwhile waits in a bounded buffer.
"""

import asyncio
from typing import Final, cast

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import BadMessage, FramingError, LimitExceeded
from headgate.gateway.proxy.exchange import Exchange
from headgate.gateway.proxy.forward import Peer
from headgate.gateway.proxy.framing import BodyReader, ChunkedReader, LengthReader
from headgate.gateway.proxy.grammar import PARTIAL_HEAD_FAULT, REQUEST_LINE, fault_of_request_line
from headgate.gateway.proxy.head import RequestFields, normal_host, read_request_fields, split_target
from headgate.gateway.proxy.outbox import OutboxTransport
from headgate.gateway.proxy.parser import RequestParser

_ALLOWED: Final = b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"
_REFUSED_METHODS: Final = frozenset({b"CONNECT", b"TRACE"})
_BURST: Final = 32
"""Pipelined requests taken in a row before other connections get their turn."""
_NO_FIELDS: Final = RequestFields()


# What the bytes that come next are.
_HEAD: Final = 0
_BODY: Final = 1
_ANSWERING: Final = 2
"""The request is whole, its answer is not: bytes belong to later requests."""
_LINGERING: Final = 3
"""Our last answer is out and the client still sends: bytes are dropped, so that it can read the answer."""
_CLOSED: Final = 4


class ClientConnection:
    """Reads requests, keeps order and decides how the connection ends."""

    __slots__ = (
        "_blank_line_seen",
        "_buffer",
        "_context",
        "_eof",
        "_exchange",
        "_offset",
        "_parser",
        "_port",
        "_processing",
        "_reader",
        "_reading_paused",
        "_requests",
        "_scanned",
        "_scheme",
        "deadline",
        "peer",
        "state",
        "transport",
        "wants_close",
        "write_paused",
    )

    def __init__(self, context: ProxyContext, scheme: bytes, port: bytes) -> None:
        self._context = context
        self._scheme = scheme
        self._port = port
        self._exchange = Exchange(self, context)
        self._buffer = b""
        self._offset = 0
        """Where the next request begins in the buffer."""
        self._scanned = 0
        """Up to where the buffer was searched for the end of a head, in vain."""
        self._blank_line_seen = False
        self._parser = RequestParser()
        self._reader: BodyReader = LengthReader(self._parser, 0)
        self._processing = False
        self._reading_paused = False
        self._eof = False
        self._requests = 0
        self.state: int = _HEAD
        self.deadline = 0.0
        """Coarse monotonic time at which `timed_out` is called."""
        self.wants_close = False
        self.write_paused = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        context = self._context
        self.transport = OutboxTransport(cast(asyncio.Transport, transport), context.outbox, context.config.buffer_high)
        peername = transport.get_extra_info("peername")
        address = peername[0].removeprefix("::ffff:") if isinstance(peername, tuple) else "unix"
        self.peer = Peer(address.encode(), self._scheme, self._port)
        self.deadline = context.clock.now + context.config.header_timeout_s
        context.connections.add(self)
        context.stats.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and what it was waiting for."""
        self.state = _CLOSED
        self._buffer = b""
        self._context.forget(self)
        self._parser.close()
        self._exchange.abandon()

    def data_received(self, data: bytes) -> None:
        """Take bytes for what they are in the current state."""
        state = self.state
        if state == _HEAD:
            if self._offset < len(self._buffer):
                self._scanned = max(0, self._scanned - self._offset)
                self._buffer = self._buffer[self._offset :] + data
            else:
                self._buffer = data
                self._scanned = 0
            self._offset = 0
            self._process()
        elif state == _BODY:
            try:
                self._read_body(data)
            except BadMessage as bad:
                self._exchange.refuse(bad.status, bad.reason)
        elif state == _ANSWERING:
            self._buffer = self._buffer[self._offset :] + data
            self._offset = 0
            self.update_reading()

    def eof_received(self) -> bool:
        """Finish the request under way, if it is whole, for a client that closed its sending half."""
        self._eof = True
        return self.state == _ANSWERING and self._scheme == b"http"

    def pause_writing(self) -> None:
        """Stop taking the answer from the upstream."""
        self.write_paused = True
        self._exchange.client_paused(True)

    def resume_writing(self) -> None:
        """Go on taking the answer."""
        self.write_paused = False
        self._exchange.client_paused(False)

    # Reading requests

    def _process(self) -> None:
        """Read requests from the buffer as long as each is answered at once."""
        if self._processing:
            return
        self._processing = True
        try:
            for _ in range(_BURST):
                if self.state != _HEAD or self._offset >= len(self._buffer) or not self._read_head():
                    break
            else:
                asyncio.get_running_loop().call_soon(self._process)
        except BadMessage as bad:
            self._refuse(bad)
        finally:
            self._processing = False
        if self._eof and self.state == _HEAD:
            self.transport.close()

    def _read_head(self) -> bool:
        """Read one request's head and start it; False: more bytes are needed."""
        buffer, start = self._buffer, self._offset
        config = self._context.config
        end = buffer.find(b"\r\n\r\n", self._scanned if self._scanned > start else start)
        if end < 0:
            self._await_rest(buffer, start)
            return False
        line = REQUEST_LINE.match(buffer, start)
        if line is None:
            return self._skip_blank_line(buffer, start)
        if end - start > config.max_head:
            raise LimitExceeded(f"head longer than {config.max_head} bytes", 431)
        method, target, version = line.groups()
        found = self._parser.head(buffer[start : end + 4])
        fields = read_request_fields(found, config.max_header_count)
        self._offset = end + 4
        self._blank_line_seen = False
        self._start_request(method, target, 1 if version == b"1" else 0, fields)
        return True

    def _skip_blank_line(self, buffer: bytes, start: int) -> bool:
        """Read over one CRLF before a request, as some clients send it behind a body (RFC 9112 section 2.2)."""
        if self._blank_line_seen or not buffer.startswith(b"\r\n", start):
            raise FramingError(fault_of_request_line(buffer[start : start + 256]))
        self._blank_line_seen = True
        self._offset += 2
        return True

    def _await_rest(self, buffer: bytes, start: int) -> None:
        """Check what is there of a head: no use in waiting for the rest of what is wrong or too long already."""
        config = self._context.config
        size = len(buffer) - start
        if PARTIAL_HEAD_FAULT.search(buffer, max(start, self._scanned - 1)):
            raise FramingError("bare CR or LF, or a control character, in a head")
        if size > config.max_target and buffer.find(b"\r\n", start + 2) < 0:
            raise LimitExceeded(f"target longer than {config.max_target} bytes", 414)
        if size > config.max_head:
            raise LimitExceeded(f"head longer than {config.max_head} bytes", 431)
        if self._scanned <= start:
            self.deadline = self._context.clock.now + config.header_timeout_s
        self._scanned = max(start, len(buffer) - 3)

    def _start_request(self, method: bytes, target: bytes, minor: int, fields: RequestFields) -> None:
        config = self._context.config
        if len(target) > config.max_target:
            raise LimitExceeded(f"target longer than {config.max_target} bytes", 414)
        if minor:
            if not fields.host_line:
                raise FramingError("no Host")
        elif fields.chunked:
            raise FramingError("Transfer-Encoding in HTTP/1.0")
        if target[0] != 47:  # "/"
            target = self._other_target(method, target, fields)
        self._requests += 1
        options = fields.options
        self.wants_close = (
            b"close" in options
            or (minor == 0 and b"keep-alive" not in options)
            or self._requests >= config.keep_alive_requests
        )
        path = target.partition(b"?")[0]
        exchange = self._exchange
        if fields.content_length > 0 or fields.chunked:
            self._start_body(method, target, minor, fields, path)
            return
        if not self._parser.complete:
            raise FramingError("unclear where the request ends")
        self.state = _ANSWERING
        exchange.begin(method, target, minor, fields)
        if method in _REFUSED_METHODS:
            exchange.request_done = True
            exchange.refuse(405, "method not allowed", _ALLOWED)
        elif target == b"*":
            exchange.request_done = True
            exchange.refuse(200, "the server as a whole", _ALLOWED)
        else:
            exchange.dispatch(fields.host, path, b"", done=True)

    def _start_body(self, method: bytes, target: bytes, minor: int, fields: RequestFields, path: bytes) -> None:
        """Start a request with a body, with what is there of it."""
        max_body = self._context.config.max_body
        if max_body is not None and fields.content_length > max_body:
            raise LimitExceeded(f"body longer than {max_body} bytes", 413)
        reader: BodyReader = (
            ChunkedReader(self._parser, max_body)
            if fields.chunked
            else LengthReader(self._parser, fields.content_length)
        )
        payload = reader.feed(self._buffer[self._offset :])
        self._take_over(reader)
        exchange = self._exchange
        exchange.begin(method, target, minor, fields)
        if method in _REFUSED_METHODS or target == b"*":
            exchange.refuse(405, "method not allowed", _ALLOWED)
        else:
            exchange.dispatch(fields.host, path, payload, done=reader.done, trailers=reader.trailers)

    def _other_target(self, method: bytes, target: bytes, fields: RequestFields) -> bytes:
        """Read a target that is not in origin-form (RFC 9112 section 3.2)."""
        if method == b"CONNECT" or (target == b"*" and method == b"OPTIONS"):
            return target
        split = split_target(target)
        if split is None:
            raise FramingError("target is neither a path nor a URL")
        authority, target = split
        # The target's authority replaces Host (RFC 9112 section 3.2.2).
        fields.host, fields.host_line = normal_host(authority), authority
        return target

    def _read_body(self, data: bytes) -> None:
        reader = self._reader
        payload = reader.feed(data)
        self._take_over(reader)
        self._exchange.request_data(payload, done=reader.done, trailers=reader.trailers)

    def _take_over(self, reader: BodyReader) -> None:
        """Keep what came behind a body for the next request, or the reader for the rest of it."""
        self._reader = reader
        self.state = _ANSWERING if reader.done else _BODY
        self._buffer = reader.rest
        self._offset = self._scanned = 0

    def update_reading(self) -> None:
        """Read from the client, or not: nothing is taken that could not be passed on or kept."""
        if self.state == _BODY:
            upstream = self._exchange.upstream
            pause = upstream is None or upstream.write_paused
        elif self.state == _ANSWERING:
            pause = len(self._buffer) - self._offset > self._context.config.max_pipelined
        else:
            pause = False
        if pause is not self._reading_paused and not self.transport.is_closing():
            self._reading_paused = pause
            if pause:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    # Ends

    def answered(self, *, closing: bool) -> None:
        """Go on to the next request after the last byte of an answer, or close."""
        if closing:
            self._close()
            return
        self.state = _HEAD
        self.deadline = self._context.clock.now + self._context.config.idle_timeout_s
        if self._reading_paused:
            self.update_reading()
        if self._offset < len(self._buffer) or self._eof:
            self._process()

    def cut_off(self, *, hard: bool) -> None:
        """End in the middle of an answer. `hard` resets the connection, where its end would pass for the answer's."""
        self.state = _CLOSED
        if hard:
            self.transport.abort()
        else:
            self.transport.close()

    def timed_out(self) -> None:
        """React to a deadline that passed."""
        if self._exchange.active:
            self._exchange.timed_out()
        elif self.state == _HEAD and self._offset < len(self._buffer):
            self._refuse(LimitExceeded("the rest of the head did not come in time", 408))
        else:
            self.transport.abort()

    def drain(self) -> None:
        """Close if nothing is under way; otherwise the answer will close."""
        if self.state == _HEAD and self._offset >= len(self._buffer):
            self.transport.close()

    def _refuse(self, bad: BadMessage) -> None:
        """Answer a message that has no exchange, as its head was refused."""
        exchange = self._exchange
        if not exchange.active:
            self.state = _BODY
            exchange.begin(b"-", b"-", 1, _NO_FIELDS)
        exchange.refuse(bad.status, bad.reason)

    def _close(self) -> None:
        """Close so that the client can read what was written: unread bytes would turn the close into a reset."""
        unread = self.state == _BODY or self._offset < len(self._buffer) or self._reading_paused
        if not unread or not self.transport.can_write_eof():
            self.state = _CLOSED
            self.transport.close()
            return
        self.state = _LINGERING
        self._buffer, self._offset = b"", 0
        self.deadline = self._context.clock.now + self._context.config.lingering_s
        self.update_reading()
        self.transport.write_eof()
