"""Heads between HTTP/2 and the form that exchanges know: checked HTTP/1.1 header lines.

All that RFC 9113 section 8 says of fields is checked here, and what could be read in two ways once it stands in
HTTP/1.1.
"""

import base64
import re
import secrets
from typing import Final

from headgate.gateway.proxy.errors import FramingError, LimitExceeded, phrase, status_line
from headgate.gateway.proxy.heads.authority import normal_host
from headgate.gateway.proxy.heads.grammar import TOKEN
from headgate.gateway.proxy.heads.head import AnswerHead, RequestFields
from headgate.gateway.proxy.heads.reading import read_answer_fields, read_request_fields
from headgate.gateway.proxy.heads.special_fields import ALL_NAMES, RequestRules
from headgate.gateway.proxy.heads.trailers import FORBIDDEN_TRAILERS
from headgate.gateway.proxy.http2.compression import (
    CONTENT_LENGTH,
    SECRET_NAMES,
    compress_field,
    compress_lines,
    compress_literal,
)
from headgate.gateway.proxy.http2.decompression import HeaderList

_METHOD: Final = re.compile(TOKEN + rb"++")
_METHODS: Final = frozenset(b"GET HEAD POST PUT PATCH DELETE OPTIONS".split())
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]++")
_VALUE_FAULT: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_SPACES: Final = frozenset({b" ", b"\t"})
_TARGET: Final = re.compile(rb"/[\x21\x22\x24-\x7e]*+|\*")
_PSEUDO: Final = frozenset({b":method", b":scheme", b":authority", b":path", b":protocol"})
_SCHEMES: Final = frozenset({b"http", b"https"})
_CONNECTION_FIELDS: Final = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
)
"""HTTP/2 has no use for them, HTTP/1.1 a dangerous one (RFC 9113 section 8.2.2)."""


class RequestHead:
    """What a request in HTTP/2 says before its body."""

    __slots__ = ("fields", "is_connect", "is_grpc", "method", "target", "timeout_s")

    def __init__(self, method: bytes, target: bytes, fields: RequestFields) -> None:
        self.method = method
        self.target = target
        self.fields = fields
        self.is_connect = False
        """It opens a tunnel (RFC 8441), though its method is GET for everybody behind us."""
        self.is_grpc = False
        self.timeout_s: float | None = None
        """What `grpc-timeout` allows."""


class _Names:
    """What follows from the names of fields alone: where those are that have a meaning for us; -1: not there."""

    __slots__ = ("content_type", "grpc_timeout", "te")

    def __init__(self, names: tuple[bytes, ...]) -> None:
        for name in names:
            if not _NAME.fullmatch(name):
                raise FramingError("malformed header name")
            if name in _CONNECTION_FIELDS:
                raise FramingError("a header that belongs to HTTP/1.1 connections")
        self.content_type = names.index(b"content-type") if b"content-type" in names else -1
        self.grpc_timeout = names.index(b"grpc-timeout") if b"grpc-timeout" in names else -1
        self.te = names.index(b"te") if b"te" in names else -1
        if names.count(b"te") > 1:
            raise FramingError("more than one TE")


_NAMES: Final[dict[tuple[bytes, ...], _Names]] = {}
_REMEMBERED_NAMES: Final = 1024
_REMEMBERED_BYTES: Final = 2048
"""Of names in one list; with the number of lists this bounds what a hostile client can make us remember."""


def _check_names(names: tuple[bytes, ...]) -> _Names:
    known = _NAMES.get(names)
    if known is None:
        known = _Names(names)
        if sum(map(len, names)) <= _REMEMBERED_BYTES:
            if len(_NAMES) >= _REMEMBERED_NAMES:
                _NAMES.clear()
            _NAMES[names] = known
    return known


_VALUES: Final[set[bytes]] = set()
"""Values that were checked before: most come again, with the next request or on the next connection."""
_REMEMBERED_VALUES: Final = 4096
_REMEMBERED_VALUE_BYTES: Final = 128


def _check_values(names: tuple[bytes, ...], values: list[bytes]) -> None:
    for at, value in enumerate(values):
        if value not in _VALUES:
            if _VALUE_FAULT.search(value) or value[:1] in _SPACES or value[-1:] in _SPACES:
                raise FramingError("control character in a header, or spaces at an end of its value")
            if len(value) <= _REMEMBERED_VALUE_BYTES and names[at] not in SECRET_NAMES:
                if len(_VALUES) >= _REMEMBERED_VALUES:
                    _VALUES.clear()
                _VALUES.add(value)


def read_request(headers: HeaderList, *, ended: bool, max_count: int, rules: RequestRules = ALL_NAMES) -> RequestHead:
    """Read the header list of a request; raises BadMessage."""
    pseudo = _leading_pseudo(headers)
    names: list[bytes] = []
    values: list[bytes] = []
    cookies: list[bytes] = []
    host: bytes | None = None
    for at in range(len(pseudo), len(headers)):
        name, value = headers[at]
        if name == b"cookie":
            cookies.append(value)
        elif name == b"host":
            if host is not None:
                raise FramingError("more than one Host")
            host = value
        else:
            names.append(name)
            values.append(value)
    if cookies:
        # Split for compression; one field towards everybody else (RFC 9113 section 8.2.3).
        names.append(b"cookie")
        values.append(b"; ".join(cookies))
    all_names = tuple(names)
    where = _check_names(all_names)
    _check_values(all_names, values)
    if where.te >= 0 and values[where.te].lower() != b"trailers":
        raise FramingError("TE other than trailers")
    fields = read_request_fields((all_names, tuple(values)), max_count, rules)
    _set_host(fields, pseudo.get(b":authority", b""), host or b"")
    if not ended and fields.content_length < 0:
        fields.chunked = True
    if ended and fields.content_length > 0:
        raise FramingError("Content-Length without a body")
    head = RequestHead(pseudo.get(b":method", b""), pseudo.get(b":path", b""), fields)
    if b":protocol" in pseudo and b"sec-websocket-key" in names:
        raise FramingError("a Sec-WebSocket-Key in HTTP/2")
    _read_pseudo(head, pseudo)
    if where.content_type >= 0 and is_grpc_type(values[where.content_type]):
        head.is_grpc = True
        if where.grpc_timeout >= 0:
            head.timeout_s = _grpc_seconds(values[where.grpc_timeout])
    return head


def _leading_pseudo(headers: HeaderList) -> dict[bytes, bytes]:
    """Read the pseudo-headers; one behind another field is taken for a field with a malformed name."""
    pseudo: dict[bytes, bytes] = {}
    for name, value in headers:
        if name[:1] != b":":
            break
        if name in pseudo or name not in _PSEUDO:
            raise FramingError("a pseudo-header that is unknown or there twice")
        pseudo[name] = value
    return pseudo


def _set_host(fields: RequestFields, authority: bytes, host: bytes) -> None:
    """Take the host that a request names, in one way or in two that agree."""
    if authority and host and authority != host:
        raise FramingError("Host and :authority differ")
    if not authority and not host:
        raise FramingError("no Host")
    fields.host_line = authority or host
    fields.host = normal_host(fields.host_line)


def _read_pseudo(head: RequestHead, pseudo: dict[bytes, bytes]) -> None:
    protocol = pseudo.get(b":protocol")
    if head.method not in _METHODS and not _METHOD.fullmatch(head.method):
        raise FramingError("malformed method")
    if head.method == b"CONNECT":
        if protocol is None and (b":scheme" in pseudo or b":path" in pseudo):
            raise FramingError("a CONNECT with scheme or path")
        _read_connect(head, protocol or b"")
    elif protocol is not None:
        raise FramingError("a protocol without CONNECT")
    if pseudo.get(b":scheme") not in _SCHEMES:
        raise FramingError("malformed scheme")
    if not _TARGET.fullmatch(head.target):
        raise FramingError("malformed target")


def is_grpc_type(value: bytes) -> bool:
    """Say whether a Content-Type is one of gRPC, which is not gRPC-Web."""
    return value.startswith(b"application/grpc") and value[16:17] in (b"", b"+", b";")


def _read_connect(head: RequestHead, protocol: bytes) -> None:
    """Make of an extended CONNECT (RFC 8441) the upgrade that HTTP/1.1 knows; other CONNECTs are refused."""
    if protocol != b"websocket":
        raise LimitExceeded("method not allowed", 405)
    head.method, head.is_connect = b"GET", True
    fields = head.fields
    fields.upgrade, fields.options = b"websocket", frozenset({b"upgrade"})
    names, values = fields.found
    fields.take_found(((*names, b"Connection", b"Upgrade"), (*values, b"Upgrade", b"websocket")))
    fields.chunked, fields.content_length = False, -1
    fields.lines += b"Sec-WebSocket-Key: %b\r\n" % base64.b64encode(secrets.token_bytes(16))


_GRPC_UNITS: Final[dict[bytes, float]] = {
    b"H": 3600.0,
    b"M": 60.0,
    b"S": 1.0,
    b"m": 1e-3,
    b"u": 1e-6,
    b"n": 1e-9,
}


def _grpc_seconds(value: bytes) -> float:
    number, unit = value[:-1], _GRPC_UNITS.get(value[-1:])
    if unit is None or not number.isdigit() or len(number) > 8:
        raise FramingError("malformed grpc-timeout")
    return int(number) * unit


def answer_block(answer: AnswerHead, date: bytes) -> bytes:
    """Build the header block of an answer for a client; `date` is a whole line."""
    pieces = [_status(answer.status), compress_lines(answer.lines)]
    if not answer.has_date:
        pieces.append(compress_lines(date))
    if not answer.has_server:
        pieces.append(_SERVER)
    if answer.content_length >= 0 and answer.status >= 200 and answer.status != 204:
        pieces.append(compress_literal(CONTENT_LENGTH, b"%d" % answer.content_length))
    return b"".join(pieces)


_SERVER: Final = compress_field(b"server", b"headgate")
_STATUSES: Final[dict[int, bytes]] = {}


def _status(status: int) -> bytes:
    found = _STATUSES.get(status)
    if found is None:
        found = _STATUSES[status] = compress_field(b":status", b"%d" % status)
    return found


def read_answer(headers: HeaderList, max_count: int) -> AnswerHead:
    """Read the header list of an answer; raises BadMessage."""
    status = b""
    names: list[bytes] = []
    values: list[bytes] = []
    for name, value in headers:
        if name[:1] == b":":
            if name != b":status" or status or names:
                raise FramingError("a pseudo-header that is unknown, or there twice, or behind a header")
            status = value
        else:
            names.append(name)
            values.append(value)
    code = _CODES.get(status)
    if code is None:
        raise FramingError("malformed status")
    all_names = tuple(names)
    _check_names(all_names)
    _check_values(all_names, values)
    return read_answer_fields(code, status_line(code), (all_names, tuple(values)), max_count)


_CODES: Final[dict[bytes, int]] = {b"%d" % code: code for code in range(100, 600)}


def lines_of(headers: HeaderList) -> bytes:
    """Turn trailers into checked header lines.

    Raises:
        FramingError: a field that must not be a trailer, or is malformed.
    """
    names = tuple([name for name, _ in headers])
    _check_names(names)
    _check_values(names, [value for _, value in headers])
    lines = []
    for name, value in headers:
        dashed = name.replace(b"_", b"-")
        if dashed in FORBIDDEN_TRAILERS or dashed.startswith(b"x-forwarded-"):
            raise FramingError("a trailer that must not be one")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


def grpc_answer(status: int, reason: str) -> AnswerHead:
    """Build an answer of our own as gRPC wants it: 200, with the failure as trailers in place of a body.

    Without a reason that a client may read the message is the phrase of the status.
    """
    reason = reason or phrase(status)
    answer = AnswerHead(200, status_line(200))
    # Percent-encoded UTF-8 (grpc/doc/PROTOCOL-HTTP2.md).
    text = "".join(
        chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x25 else f"%{byte:02X}"
        for byte in reason.encode("utf-8", "replace")
    )
    answer.lines = b"content-type: application/grpc\r\ngrpc-status: %d\r\ngrpc-message: %b\r\n" % (
        _GRPC_STATUS.get(status, 2),
        text.encode("ascii"),
    )
    return answer


_GRPC_STATUS: Final[dict[int, int]] = {
    400: 13,
    401: 16,
    403: 7,
    404: 12,
    405: 12,
    408: 4,
    413: 8,
    429: 14,
    431: 8,
    500: 13,
    502: 14,
    503: 14,
    504: 4,
}
"""Codes of gRPC for those of HTTP (grpc/doc/http-grpc-status-mapping.md); 504 of ours is always a deadline."""
