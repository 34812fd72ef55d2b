"""Heads between HTTP/2 and the form that exchanges know: checked HTTP/1.1 header lines.

h2 has checked what RFC 9113 says of pseudo-headers, connection fields and lengths. What could be read in two ways once
it stands in HTTP/1.1 is checked here again, by our own rules: names, values, method, target and host.
"""

import base64
import re
import secrets
from typing import Final

from hpack import NeverIndexedHeaderTuple

from headgate.gateway.proxy.errors import FramingError, LimitExceeded, phrase
from headgate.gateway.proxy.grammar import TOKEN
from headgate.gateway.proxy.head import AnswerHead, RequestFields, normal_host, read_answer_fields, read_request_fields

HeaderList = list[tuple[bytes, bytes]]

_METHOD: Final = re.compile(TOKEN + rb"++")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]++")
_VALUE_FAULT: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_TARGET: Final = re.compile(rb"/[\x21\x22\x24-\x7e]*+|\*")
_SECRET_NAMES: Final = frozenset({b"authorization", b"cookie", b"set-cookie", b"proxy-authorization"})
"""Never put into a table of the compression that an attacker might probe (RFC 7541 section 7.1)."""


class RequestHead:
    """What a request in HTTP/2 says before its body."""

    __slots__ = ("fields", "is_grpc", "method", "target", "timeout_s")

    def __init__(self, method: bytes, target: bytes, fields: RequestFields) -> None:
        self.method = method
        self.target = target
        self.fields = fields
        self.is_grpc = False
        self.timeout_s: float | None = None
        """What `grpc-timeout` allows."""


def read_request(headers: HeaderList, *, ended: bool, max_count: int) -> RequestHead:
    """Read the header list of a request; raises BadMessage."""
    pseudo: dict[bytes, bytes] = {}
    names: list[bytes] = []
    values: list[bytes] = []
    cookies: list[bytes] = []
    for raw_name, raw_value in headers:
        name, value = bytes(raw_name), bytes(raw_value)
        if name[:1] == b":" or name == b"host":
            pseudo[name] = value
        elif name == b"cookie":
            cookies.append(value)
        else:
            names.append(name)
            values.append(value)
    if cookies:
        # Split for compression; one field towards everybody else (RFC 9113 section 8.2.3).
        names.append(b"cookie")
        values.append(b"; ".join(cookies))
    _check_fields(names, values)
    fields = read_request_fields((tuple(names), tuple(values)), max_count)
    fields.host_line = _authority(pseudo)
    fields.host = normal_host(fields.host_line)
    if not ended and fields.content_length < 0:
        fields.chunked = True
    head = RequestHead(pseudo.get(b":method", b""), pseudo.get(b":path", b""), fields)
    if head.method == b"CONNECT":
        _read_connect(head, pseudo.get(b":protocol", b""))
    if not _METHOD.fullmatch(head.method):
        raise FramingError("malformed method")
    if not _TARGET.fullmatch(head.target):
        raise FramingError("malformed target")
    if b"content-type" in names and values[names.index(b"content-type")].startswith(b"application/grpc"):
        head.is_grpc = True
        if b"grpc-timeout" in names:
            head.timeout_s = _grpc_seconds(values[names.index(b"grpc-timeout")])
    return head


def _check_fields(names: list[bytes], values: list[bytes]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise FramingError("malformed header name")
    for value in values:
        if _VALUE_FAULT.search(value):
            raise FramingError("control character in a header")


def _authority(pseudo: dict[bytes, bytes]) -> bytes:
    """Give the host that a request names, in one way or in two that agree."""
    authority, host = pseudo.get(b":authority", b""), pseudo.get(b"host", b"")
    if authority and host and authority != host:
        raise FramingError("Host and :authority differ")
    if not authority and not host:
        raise FramingError("no Host")
    return authority or host


def _read_connect(head: RequestHead, protocol: bytes) -> None:
    """Make of an extended CONNECT (RFC 8441) the upgrade that HTTP/1.1 knows; other CONNECTs are refused."""
    if protocol != b"websocket":
        raise LimitExceeded("method not allowed", 405)
    head.method = b"GET"
    fields = head.fields
    fields.upgrade, fields.options = b"websocket", frozenset({b"upgrade"})
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


def request_headers(
    method: bytes, scheme: bytes, authority: bytes, target: bytes, lines: bytes, more: HeaderList
) -> HeaderList:
    """Build the header list of a request for an upstream."""
    headers: HeaderList = [
        (b":method", method),
        (b":scheme", scheme),
        (b":authority", authority),
        (b":path", target),
    ]
    headers += fields_of(lines)
    headers += more
    return headers


def answer_headers(answer: AnswerHead, date: bytes) -> HeaderList:
    """Build the header list of an answer for a client; `date` is a whole line."""
    lines = answer.lines
    headers: HeaderList = [(b":status", b"%d" % answer.status)]
    headers += fields_of(lines[lines.index(b"\n") + 1 :])
    if not answer.has_date:
        headers.append((b"date", date[6:-2]))
    if not answer.has_server:
        headers.append((b"server", b"headgate"))
    if answer.content_length >= 0 and answer.status >= 200 and answer.status != 204:
        headers.append((b"content-length", b"%d" % answer.content_length))
    return headers


def fields_of(lines: bytes) -> HeaderList:
    """Cut checked header lines into fields with names in lower case."""
    found: HeaderList = []
    for line in lines.split(b"\r\n"):
        if line:
            colon = line.index(b":")
            name = line[:colon].lower()
            value = line[colon + 1 :].strip(b" \t")
            found.append(NeverIndexedHeaderTuple(name, value) if name in _SECRET_NAMES else (name, value))
    return found


def read_answer(headers: HeaderList, max_count: int) -> AnswerHead:
    """Read the header list of an answer; raises BadMessage."""
    status = 0
    names: list[bytes] = []
    values: list[bytes] = []
    for name, value in headers:
        name, value = bytes(name), bytes(value)
        if name == b":status":
            status = int(value) if value.isdigit() and len(value) == 3 else 0
            continue
        if not _NAME.fullmatch(name) or _VALUE_FAULT.search(value):
            raise FramingError("malformed header")
        names.append(name)
        values.append(value)
    if not 100 <= status <= 599:
        raise FramingError("malformed status")
    return read_answer_fields(status, phrase(status).encode(), (tuple(names), tuple(values)), max_count)


def lines_of(headers: HeaderList) -> bytes:
    """Turn trailers into checked header lines; raises FramingError."""
    lines = []
    for name, value in headers:
        name, value = bytes(name), bytes(value)
        if not _NAME.fullmatch(name) or _VALUE_FAULT.search(value):
            raise FramingError("malformed trailer")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


def grpc_answer(status: int, reason: str) -> AnswerHead:
    """Build an answer of our own as gRPC wants it: 200, with the failure as trailers in place of a body."""
    answer = AnswerHead(200, 1)
    text = "".join(char if " " <= char <= "~" and char != "%" else f"%{ord(char) & 0xFF:02X}" for char in reason)
    answer.lines = b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ngrpc-status: %d\r\ngrpc-message: %b\r\n" % (
        _GRPC_STATUS.get(status, 2),
        text.encode("ascii"),
    )
    return answer


_GRPC_STATUS: Final[dict[int, int]] = {
    400: 13,
    401: 16,
    403: 7,
    404: 12,
    408: 4,
    413: 8,
    429: 14,
    431: 8,
    502: 14,
    503: 14,
    504: 4,
}
"""Codes of gRPC for those of HTTP (grpc/doc/http-grpc-status-mapping.md); 504 of ours is always a deadline."""
