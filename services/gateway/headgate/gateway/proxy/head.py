"""Heads of requests and answers: bytes in, checked values out.

A head is cut once by `grammar.field_pattern` into what is passed on and what concerns us: framing, connection, host,
and what we add ourselves. What is passed on is a few long runs of lines, so a usual head costs a handful of Python
steps instead of one per field. Nothing in here does I/O or knows time.
"""

import re

from headgate.gateway.proxy.errors import FramingError, LimitExceeded
from headgate.gateway.proxy.grammar import (
    ABSOLUTE_TARGET,
    CONTENT_LENGTH,
    HOST,
    STATUS_LINE,
    TOKEN,
    fault_of_block,
    field_pattern,
)

_REQUEST_FIELDS = field_pattern(
    (
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "http2-settings",
        "expect",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "forwarded",
        "x-real-ip",
        "x-request-id",
    ),
    families=("x-forwarded-",),
)
_ANSWER_FIELDS = field_pattern(
    (
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "date",
        "server",
    )
)

_FRAMING_IN_DISGUISE = frozenset({b"content_length", b"transfer_encoding"})
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,200}")
_MEMBER = re.compile(TOKEN + rb"++")

FORBIDDEN_TRAILERS = frozenset(
    b"authorization connection content-encoding content-length content-range content-type cookie expect forwarded host "
    b"keep-alive max-forwards proxy-authenticate proxy-authorization proxy-connection range set-cookie te trailer "
    b"transfer-encoding upgrade www-authenticate x-real-ip x-request-id".split()
)
"""Framing, routing, authentication and content format are decided before a body; RFC 9110 section 6.5.1."""


class RequestFields:
    """What the header block of one request says; immutable once parsed, so equal blocks may share one."""

    __slots__ = (
        "chunked",
        "content_length",
        "expects_continue",
        "forwarded",
        "host",
        "host_line",
        "lines",
        "logged",
        "options",
        "raw",
        "request_id",
        "upstream_lines",
    )

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.lines = b""
        """Checked lines that are passed on as they are."""
        self.host = b""
        """Lower case, without port and trailing dot; empty if there is none (HTTP/1.0 only)."""
        self.host_line = b""
        """Value of Host as sent."""
        self.content_length = -1
        """-1 without the field."""
        self.chunked = False
        self.expects_continue = False
        self.options: frozenset[bytes] = frozenset()
        """Members of Connection, lower case."""
        self.request_id = b""
        self.forwarded: dict[bytes, bytes] = {}
        """Last value of each X-Forwarded-*, X-Real-IP and Forwarded, by lower-case name; lists are joined."""
        self.upstream_lines = b""
        """All that follows the request line towards an upstream, except a request id of our making; see `forward`."""
        self.logged: tuple[bytes, bytes] | None = None
        """Referer and User-Agent, once the access log asked for them."""


def parse_request_fields(block: bytes, max_count: int) -> RequestFields:
    """Check and read the header lines of a request (`block`: every line with its CRLF, without the empty one)."""
    if block.count(b"\n") > max_count:
        raise LimitExceeded(f"more than {max_count} header fields", 431)
    fields = RequestFields(block)
    kept = []
    for run, name, value, odd_name, odd_value, garbage in _REQUEST_FIELDS.findall(block):
        if run:
            kept.append(run)
        elif name:
            kept.append(_take_request_field(fields, name.lower(), value.strip(b" \t")))
        elif odd_name:
            kept.append(b"%b: %b\r\n" % (odd_name, odd_value.strip(b" \t")))
        elif garbage:
            raise FramingError(fault_of_block(block))
    if fields.chunked and fields.content_length >= 0:
        raise FramingError("both Content-Length and Transfer-Encoding")
    fields.lines = _canonical(b"".join(kept), fields.options)
    return fields


def _take_request_field(fields: RequestFields, name: bytes, value: bytes) -> bytes:
    """Note one special field; give the line that is passed on in its place, mostly none."""
    match name:
        case b"host":
            _set_host(fields, value)
        case b"connection":
            fields.options |= _members(value, "Connection")
        case b"content-length":
            fields.content_length = _content_length(value, fields.content_length)
        case b"transfer-encoding":
            _require_chunked(value, fields.chunked)
            fields.chunked = True
        case b"expect":
            if value.lower() != b"100-continue":
                raise LimitExceeded("unknown expectation", 417)
            fields.expects_continue = True
        case b"trailer":
            _check_trailer_names(value)
            return b"Trailer: %b\r\n" % value
        case b"x-request-id":
            if fields.request_id:
                raise FramingError("more than one X-Request-ID")
            fields.request_id = value if _REQUEST_ID.fullmatch(value) else b""
        case _ if name in _FRAMING_IN_DISGUISE:
            raise FramingError("framing header with an underscore in its name")
        case _ if name.startswith((b"x-forwarded-", b"x-real-ip", b"forwarded")):
            known = fields.forwarded.get(name)
            fields.forwarded[name] = value if known is None else b"%b, %b" % (known, value)
        case _:
            pass
    return b""


def _set_host(fields: RequestFields, value: bytes) -> None:
    if fields.host_line:
        raise FramingError("more than one Host")
    fields.host = normal_host(value)
    fields.host_line = value


def normal_host(authority: bytes) -> bytes:
    """Check an authority and give its host for routing: lower case, without port and trailing dot."""
    found = HOST.fullmatch(authority)
    if found is None or (found[2] and int(found[2]) > 65535):
        raise FramingError("malformed Host")
    host: bytes = found[1].lower()
    return host.removesuffix(b".") if host != b"." else host


def split_target(target: bytes) -> tuple[bytes, bytes] | None:
    """Cut an absolute-form target (RFC 9112 section 3.2.2) into authority and origin-form; None for any other form."""
    found = ABSOLUTE_TARGET.fullmatch(target)
    if found is None:
        return None
    rest = found[2] or b"/"
    return found[1], rest if rest.startswith(b"/") else b"/" + rest


def logged_fields(fields: RequestFields) -> tuple[bytes, bytes]:
    """Give Referer and User-Agent as the access log writes them (`-` for none), and remember them."""
    found = [pattern.search(fields.lines) for pattern in (_REFERER, _USER_AGENT)]
    referer, agent = (_LOG_UNSAFE.sub(_escape_byte, match[1]) if match else b"-" for match in found)
    fields.logged = (referer, agent)
    return fields.logged


def _escape_byte(found: re.Match[bytes]) -> bytes:
    return b"\\x%02x" % found[0][0]


_REFERER = re.compile(rb"(?i)(?:\A|\n)referer: ([^\r]*)")
_USER_AGENT = re.compile(rb"(?i)(?:\A|\n)user-agent: ([^\r]*)")
_LOG_UNSAFE = re.compile(rb'["\\\t]')


class AnswerHead:
    """What the head of one answer says; immutable once parsed, so equal heads may share one."""

    __slots__ = (
        "chunked",
        "closes",
        "content_length",
        "has_date",
        "has_server",
        "lines",
        "minor",
        "ready",
        "ready_date",
        "status",
    )

    def __init__(self, status: int, minor: int) -> None:
        self.status = status
        self.minor = minor
        self.lines = b""
        """Status line and checked lines that are passed on; framing and connection fields are not among them."""
        self.content_length = -1
        self.chunked = False
        self.closes = minor == 0
        """The connection ends with this answer."""
        self.has_date = False
        self.has_server = False
        self.ready = b""
        """The whole head as a keep-alive HTTP/1.1 client gets it, made with the Date line `ready_date`."""
        self.ready_date = b""


def parse_answer_head(head: bytes, max_count: int) -> AnswerHead:
    """Check and read the head of an answer (`head`: status line and header lines, each with its CRLF)."""
    line = STATUS_LINE.match(head)
    if line is None:
        raise FramingError("malformed status line")
    if head.count(b"\n") > max_count + 1:
        raise LimitExceeded(f"more than {max_count} header fields", 502)
    answer = AnswerHead(int(line[2]), int(line[1]))
    block = head[line.end() :]
    kept, options = [], frozenset[bytes]()
    for run, name, value, odd_name, odd_value, garbage in _ANSWER_FIELDS.findall(block):
        if run:
            kept.append(run)
        elif name:
            value = value.strip(b" \t")
            name = name.lower()
            if name == b"connection":
                options |= _members(value, "Connection")
            kept.append(_take_answer_field(answer, name, value))
        elif odd_name:
            kept.append(b"%b: %b\r\n" % (odd_name, odd_value.strip(b" \t")))
        elif garbage:
            raise FramingError(fault_of_block(block))
    _check_answer_framing(answer)
    answer.closes = b"close" in options or (answer.minor == 0 and b"keep-alive" not in options)
    status_line = b"HTTP/1.1 %d %b\r\n" % (answer.status, line[3] or b"")
    answer.lines = status_line + _canonical(b"".join(kept), options)
    return answer


def _take_answer_field(answer: AnswerHead, name: bytes, value: bytes) -> bytes:
    match name:
        case b"content-length":
            answer.content_length = _content_length(value, answer.content_length)
        case b"transfer-encoding":
            _require_chunked(value, answer.chunked)
            answer.chunked = True
        case b"trailer":
            _check_trailer_names(value)
            return b"Trailer: %b\r\n" % value
        case b"date":
            answer.has_date = True
            return b"Date: %b\r\n" % value
        case b"server":
            answer.has_server = True
            return b"Server: %b\r\n" % value
        case _:
            pass
    return b""


def _check_answer_framing(answer: AnswerHead) -> None:
    if answer.chunked and answer.content_length >= 0:
        raise FramingError("both Content-Length and Transfer-Encoding")
    if answer.chunked and answer.minor == 0:
        raise FramingError("Transfer-Encoding in HTTP/1.0")
    if answer.chunked and (answer.status < 200 or answer.status == 204):
        raise FramingError(f"Transfer-Encoding in an answer {answer.status}")


def _content_length(value: bytes, known: int) -> int:
    if known >= 0:
        raise FramingError("more than one Content-Length")
    if not CONTENT_LENGTH.fullmatch(value):
        raise FramingError("malformed Content-Length")
    return int(value)


def _require_chunked(value: bytes, known: bool) -> None:
    if known or value.lower() != b"chunked":
        raise FramingError("Transfer-Encoding is not exactly one `chunked`")


def _members(value: bytes, name: str) -> frozenset[bytes]:
    """Split a comma-separated list of tokens; empty members are legal (RFC 9110 section 5.6.1)."""
    members = frozenset(member for part in value.lower().split(b",") if (member := part.strip(b" \t")))
    if not all(_MEMBER.fullmatch(member) for member in members):
        raise FramingError(f"malformed {name}")
    return members


def _check_trailer_names(value: bytes) -> None:
    if _members(value, "Trailer") & FORBIDDEN_TRAILERS:
        raise FramingError("Trailer announces a field that must not be a trailer")


def check_trailers(block: bytes) -> bytes:
    """Check a trailer section and give it canonically, each line with its CRLF."""
    lines = []
    for line in block.split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        if not _TRAILER_LINE.fullmatch(line):
            raise FramingError(fault_of_block(block))
        if name.lower().replace(b"_", b"-") in FORBIDDEN_TRAILERS or name.lower().startswith(b"x-forwarded-"):
            raise FramingError("a trailer that must not be one")
        lines.append(b"%b: %b\r\n" % (name, value.strip(b" \t")))
    return b"".join(lines)


_TRAILER_LINE = re.compile(TOKEN + rb"++:[\t\x20-\x7e\x80-\xff]*+")


def _canonical(lines: bytes, options: frozenset[bytes]) -> bytes:
    """Remove what Connection lists, and white space at ends of lines."""
    if b" \r\n" in lines or b"\t\r\n" in lines:
        lines = _TRAILING_SPACE.sub(b"\r\n", lines)
    listed = options - _CONNECTION_OPTIONS
    if not listed:
        return lines
    kept = (line for line in lines.splitlines(keepends=True) if line.partition(b":")[0].lower() not in listed)
    return b"".join(kept)


_CONNECTION_OPTIONS = frozenset({b"close", b"keep-alive"})
_TRAILING_SPACE = re.compile(rb"[ \t]++\r\n")
