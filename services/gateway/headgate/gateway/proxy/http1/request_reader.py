"""Requests in the bytes of one client's connection, head by head, and the bodies behind them. Knows no connection."""

from typing import Final

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.errors import FramingError, LimitExceeded
from headgate.gateway.proxy.heads.authority import normal_host, split_target
from headgate.gateway.proxy.heads.grammar import PARTIAL_HEAD_FAULT, REQUEST_LINE, fault_of_request_line
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.proxy.heads.reading import read_request_head
from headgate.gateway.proxy.heads.shape import Shape
from headgate.gateway.proxy.heads.special_fields import RequestRules
from headgate.gateway.proxy.http1.framing import BodyReader, ChunkedReader, LengthReader
from headgate.gateway.proxy.http1.parser import RequestParser

# What `RequestReader.next` found.
NEEDS_MORE: Final = 0
"""No head, or one that is not whole yet."""
HAS_BEGUN: Final = 1
"""The same, and this is the first look at it."""
REQUEST: Final = 2
"""The head of a request."""
HTTP2: Final = 3
"""The preface of HTTP/2."""

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SLASH: Final = 0x2F
_NO_FIELDS: Final = RequestFields()


class RequestReader:
    """Reads one request after the other.

    Args:
        config: limits.
        rules: for header fields.
        may_be_http2: the first bytes may be the preface of HTTP/2.
    """

    __slots__ = (
        "_blank_line_seen",
        "_body",
        "_buffer",
        "_config",
        "_may_be_http2",
        "_offset",
        "_parser",
        "_rules",
        "_scanned",
        "_shape",
        "count",
        "fields",
        "has_body",
        "method",
        "minor",
        "target",
    )

    def __init__(self, config: ProxyConfig, rules: RequestRules, *, may_be_http2: bool) -> None:
        self._config = config
        self._rules = rules
        self._may_be_http2 = may_be_http2
        self._buffer = b""
        self._offset = 0
        """Where the next request begins in the buffer."""
        self._scanned = 0
        """Up to where the buffer was searched for the end of a head, in vain."""
        self._blank_line_seen = False
        self._shape: Shape | None = None
        """Of the last request's head, which the next one probably has."""
        self._parser = RequestParser()
        self._body: BodyReader = LengthReader(self._parser, 0)
        self.count = 0
        """Requests that were found."""
        # Of the request that was found last.
        self.method = b""
        self.target = b""
        """In origin-form, or `*`, or what CONNECT has."""
        self.minor = 1
        """Of the version, HTTP/1.`minor`."""
        self.fields = _NO_FIELDS
        self.has_body = False
        """A body comes behind the head; `begin_body` has to follow."""

    @property
    def pending(self) -> int:
        """Bytes that belong to requests which were not found yet."""
        return len(self._buffer) - self._offset

    def feed(self, data: bytes) -> None:
        """Take bytes that belong to the next requests."""
        if self._offset < len(self._buffer):
            self._scanned = max(0, self._scanned - self._offset)
            self._buffer = self._buffer[self._offset :] + data
        else:
            self._buffer = data
            self._scanned = 0
        self._offset = 0

    def take(self) -> bytes:
        """Give away what is pending."""
        rest = self._buffer[self._offset :]
        self._buffer = b""
        self._offset = self._scanned = 0
        return rest

    def close(self) -> None:
        """Find nothing any more."""
        self._buffer = b""
        self._offset = 0
        self._parser.close()

    # Heads

    def next(self) -> int:
        """Look for the head of the next request; raises BadMessage."""
        buffer, start, shape = self._buffer, self._offset, self._shape
        lines: list[bytes] | None = None
        if shape is not None and not (start or self._scanned):
            lines = shape.cut(buffer)
        if lines is None:
            end = buffer.find(b"\r\n\r\n", self._scanned if self._scanned > start else start)
        else:
            end = len(buffer) - len(lines.pop()) - 4
        if end < 0:
            return self._await_rest(buffer, start) if start < len(buffer) else NEEDS_MORE
        line = REQUEST_LINE.match(buffer, start)
        if line is None:
            if self.count or start or not self._may_be_http2 or not _may_be_preface(buffer):
                self._skip_blank_line(buffer, start)
                return self.next()
            return HTTP2 if len(buffer) >= len(_PREFACE) else NEEDS_MORE
        if end - start > self._config.max_head:
            raise LimitExceeded(f"head longer than {self._config.max_head} bytes", 431)
        method, target, version = line.groups()
        head = buffer if start == 0 and end + 4 == len(buffer) else buffer[start : end + 4]
        self._parser.head(head)
        if lines is None:
            lines, shape = head.split(b"\r\n")[:-1], None
        fields = read_request_head(lines, shape, self._config.max_header_count, self._rules)
        self._shape = fields.shape
        self._offset = end + 4
        self._blank_line_seen = False
        self._check(method, target, 1 if version == b"1" else 0, fields)
        return REQUEST

    def _skip_blank_line(self, buffer: bytes, start: int) -> None:
        """Read over one CRLF before a request, as some clients send it behind a body (RFC 9112 section 2.2)."""
        if self._blank_line_seen or not buffer.startswith(b"\r\n", start):
            raise FramingError(fault_of_request_line(buffer[start : start + 256]))
        self._blank_line_seen = True
        self._offset += 2

    def _await_rest(self, buffer: bytes, start: int) -> int:
        """Check what is there of a head: no use in waiting for the rest of what is wrong or too long already."""
        config = self._config
        size = len(buffer) - start
        if PARTIAL_HEAD_FAULT.search(buffer, max(start, self._scanned - 1)):
            raise FramingError("bare CR or LF, or a control character, in a head")
        if size > config.max_target and buffer.find(b"\r\n", start + 2) < 0:
            raise LimitExceeded(f"target longer than {config.max_target} bytes", 414)
        if size > config.max_head:
            raise LimitExceeded(f"head longer than {config.max_head} bytes", 431)
        is_first_look = self._scanned <= start
        self._scanned = max(start, len(buffer) - 3)
        return HAS_BEGUN if is_first_look else NEEDS_MORE

    def _check(self, method: bytes, target: bytes, minor: int, fields: RequestFields) -> None:
        config = self._config
        if len(target) > config.max_target:
            raise LimitExceeded(f"target longer than {config.max_target} bytes", 414)
        if minor:
            if not fields.host_line:
                raise FramingError("no Host")
        elif fields.chunked:
            raise FramingError("Transfer-Encoding in HTTP/1.0")
        if target[0] != _SLASH:
            target = self._other_target(method, target, fields)
        self.has_body = fields.content_length > 0 or fields.chunked
        if self.has_body:
            if config.max_body is not None and fields.content_length > config.max_body:
                raise LimitExceeded(f"body longer than {config.max_body} bytes", 413)
        elif not self._parser.complete:
            raise FramingError("unclear where the request ends")
        self.count += 1
        self.method = method
        self.target = target
        self.minor = minor
        self.fields = fields

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

    # Bodies

    def begin_body(self) -> bytes:
        """Give what is there of the body of the request that was found; raises BadMessage."""
        fields, parser = self.fields, self._parser
        if fields.chunked:
            self._body = ChunkedReader(parser, self._config.max_body)
        else:
            self._body = LengthReader(parser, fields.content_length)
        return self.read_body(self._buffer[self._offset :])

    def read_body(self, data: bytes) -> bytes:
        """Give the payload in more bytes; what comes behind the body is pending. Raises BadMessage."""
        body = self._body
        payload = body.feed(data)
        self._buffer = body.rest
        self._offset = self._scanned = 0
        return payload

    @property
    def body_is_done(self) -> bool:
        """Whether all of the body was read."""
        return self._body.done

    @property
    def trailers(self) -> bytes:
        """Checked lines that came behind the body."""
        return self._body.trailers


def _may_be_preface(buffer: bytes) -> bool:
    return buffer.startswith(_PREFACE) or _PREFACE.startswith(buffer)
