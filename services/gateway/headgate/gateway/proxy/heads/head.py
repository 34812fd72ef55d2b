"""Heads of requests and answers: bytes in, checked values out.

llhttp has cut a head into fields (`parser`); here they are sorted into what is passed on, written anew line by line,
and what concerns us: framing, connection, host, and what we add ourselves. Nothing in here does I/O or knows time.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, Final

from headgate.gateway.proxy.errors import FramingError, LimitExceeded
from headgate.gateway.proxy.heads.grammar import ABSOLUTE_TARGET, HOST, STATUS_LINE, TOKEN
from headgate.gateway.proxy.http1.parser import Fields, cut_fields

_MAX_AUTHORITY: Final = 261
"""A name of 255 bytes, a colon and a port."""
_CACHED_LENGTH: Final = 128
_REQUEST_ID: Final = re.compile(rb"[\x21-\x7e]{1,200}")
_MEMBER: Final = re.compile(TOKEN + rb"++")

FORBIDDEN_TRAILERS: Final = frozenset(
    b"authorization connection content-encoding content-length content-range content-type cookie expect forwarded host "
    b"keep-alive max-forwards proxy-authenticate proxy-authorization proxy-connection range set-cookie te trailer "
    b"transfer-encoding upgrade www-authenticate x-real-ip x-request-id".split()
)
"""Framing, routing, authentication and content format are decided before a body; RFC 9110 section 6.5.1."""


class _Head:
    """What heads of requests and answers have in common."""

    __slots__ = ("chunked", "content_length", "lines", "options", "upgrade")

    def __init__(self) -> None:
        self.lines = b""
        """Checked lines that are passed on; framing and connection fields are not among them."""
        self.content_length = -1
        """-1 without the field."""
        self.chunked = False
        self.options: frozenset[bytes] = _NO_OPTIONS
        """Members of Connection, lower case."""
        self.upgrade = b""
        """The one protocol that Upgrade names, lower case."""


_NO_OPTIONS: Final[frozenset[bytes]] = frozenset()


class RequestFields(_Head):
    """What the header block of one request says."""

    __slots__ = (
        "agent",
        "expects_continue",
        "forwarded",
        "forwarded_host",
        "host",
        "host_line",
        "passes_claims",
        "referer",
        "request_id",
    )

    def __init__(self) -> None:
        super().__init__()
        self.host = b""
        """Lower case, without port and trailing dot; empty if there is none (HTTP/1.0 only)."""
        self.host_line = b""
        """Value of Host as sent."""
        self.forwarded_host = b""
        """That the upstream gets in its place, as a trusted proxy forwarded it. The gateway decides nothing by it."""
        self.expects_continue = False
        self.request_id = b""
        self.forwarded: dict[bytes, bytes] = {}
        """X-Forwarded-*, X-Real-IP, Forwarded and what else may name the client, by lower-case name; lists are
        joined."""
        self.passes_claims = False
        """A trusted proxy says what is in `forwarded`, so that the upstream gets it."""
        self.agent = b""
        self.referer = b""

    @property
    def wants_websocket(self) -> bool:
        """Whether the client asks for a WebSocket (RFC 6455 section 4.1)."""
        return self.upgrade == b"websocket" and b"upgrade" in self.options


class RequestRules:
    """What the settings make of the names in requests, with the shapes that follow from it.

    Args:
        underscores: what becomes of names with `_`: `allow`, `drop` or `refuse`.
        real_ip_header: names the client where the peer is a trusted proxy, so that nobody else may send it on.
    """

    __slots__ = ("_real_ip_header", "_underscores", "shapes")

    def __init__(self, underscores: str = "allow", real_ip_header: str = "") -> None:
        self.shapes: _Shapes = {}
        self._underscores = underscores
        self._real_ip_header = real_ip_header.lower().encode()

    def taker(self, name: bytes) -> "_Taker | None":
        """Choose what to do with a field of a request; None: pass it on."""
        if self._real_ip_header and name.lower() == self._real_ip_header:
            return partial(_note_forwarded, self._real_ip_header)
        if b"_" not in name or self._underscores == "allow":
            return _request_taker(name)
        if self._underscores == "refuse":
            return _refuse_underscore
        return _refuse_disguised_framing if name.lower().replace(b"_", b"-") in _FRAMING else _drop


ALL_NAMES: Final = RequestRules()


def read_request_fields(found: Fields, max_count: int, rules: RequestRules = ALL_NAMES) -> RequestFields:
    """Read the fields that llhttp found in a request; raises BadMessage."""
    names, values = found
    shape = rules.shapes.get(names) or _new_shape(names, max_count, 431, rules.shapes, rules.taker)
    fields = RequestFields()
    if shape.agent >= 0:
        fields.agent = values[shape.agent]
    if shape.referer >= 0:
        fields.referer = values[shape.referer]
    fields.lines = shape.write(fields, values)
    if fields.chunked and fields.content_length >= 0:
        raise FramingError("both Content-Length and Transfer-Encoding")
    return fields


class _Shape:
    """What all heads with the same field names in the same order have in common.

    Clients and servers send few sequences of names and many values, so what follows from names alone is found out once:
    which fields are special, and a template that writes all the others with one formatting.
    """

    __slots__ = ("agent", "has_date", "has_server", "pick", "referer", "specials", "template")

    def __init__(self, names: tuple[bytes, ...], choose: Callable[[bytes], "_Taker | None"]) -> None:
        takers = [choose(name) for name in names]
        plain = [position for position, take in enumerate(takers) if take is None]
        self.specials = tuple((position, take) for position, take in enumerate(takers) if take is not None)
        self.template = b"".join(names[position].replace(b"%", b"%%") + b": %b\r\n" for position in plain)
        self.pick: Callable[[tuple[bytes, ...]], tuple[bytes, ...]] = (
            itemgetter(*plain) if len(plain) > 1 else lambda values: tuple(values[position] for position in plain)
        )
        lower = [name.lower() for name in names]
        self.agent = lower.index(b"user-agent") if b"user-agent" in lower else -1
        self.referer = lower.index(b"referer") if b"referer" in lower else -1
        self.has_date = b"date" in lower
        self.has_server = b"server" in lower

    def write(self, target: _Head, values: tuple[bytes, ...]) -> bytes:
        """Hand special fields to their takers, and write the others anew in their order."""
        lines: bytes = self.template % self.pick(values)
        for position, take in self.specials:
            line = take(target, values[position].strip(b" "))
            if line is not None:
                lines += line
        return lines if target.options <= _CONNECTION_OPTIONS else _without(lines, target.options)


_Shapes = dict[tuple[bytes, ...], _Shape]
_ANSWER_SHAPES: Final[_Shapes] = {}
_REMEMBERED_SHAPES: Final = 1024
_REMEMBERED_BYTES: Final = 2048
"""Of names in one shape; with the number of shapes this bounds what a hostile client can make us remember."""


def _new_shape(
    names: tuple[bytes, ...], max_count: int, status: int, known: _Shapes, choose: Callable[[bytes], "_Taker | None"]
) -> _Shape:
    if len(names) > max_count:
        raise LimitExceeded(f"more than {max_count} header fields", status)
    shape = _Shape(names, choose)
    if sum(map(len, names)) <= _REMEMBERED_BYTES:
        if len(known) >= _REMEMBERED_SHAPES:
            known.clear()
        known[names] = shape
    return shape


@lru_cache(4096)
def _request_taker(name: bytes) -> "_Taker | None":
    """Choose what to do with a field of a request; None: pass it on."""
    name = name.lower()
    take = _REQUEST_TAKERS.get(name)
    if take is not None:
        return take
    # CGI-style servers take `_` for `-`, so what would be special to them must not slip through.
    dashed = name.replace(b"_", b"-")
    if dashed in _FRAMING:
        return _refuse_disguised_framing
    if dashed in _FORWARDED or dashed.startswith(b"x-forwarded-"):
        return partial(_note_forwarded, name)
    return _drop if dashed in _REQUEST_TAKERS or dashed in _DROPPED else None


def _note_forwarded(name: bytes, fields: RequestFields, value: bytes) -> None:
    known = fields.forwarded.get(name)
    fields.forwarded[name] = value if known is None else b"%b, %b" % (known, value)


def _drop(fields: _Head, value: bytes) -> None:
    """Hop-by-hop: not passed on."""


def _set_connection(fields: _Head, value: bytes) -> None:
    options = _KNOWN_OPTIONS.get(value) or _members(value)
    fields.options = fields.options | options if fields.options else options


_KNOWN_OPTIONS: Final = {
    value: frozenset({value.lower()}) for value in (b"keep-alive", b"Keep-Alive", b"close", b"Close")
}


def _heed_close(fields: _Head, value: bytes) -> None:
    """Proxy-Connection was never a standard; llhttp ends the connection on its `close`, so we do."""
    if b"close" in _members(value):
        fields.options |= {b"close"}


def _set_content_length(fields: _Head, value: bytes) -> None:
    if fields.content_length >= 0:
        raise FramingError("more than one Content-Length")
    if not value.isdigit() or len(value) > _LENGTH_DIGITS:
        raise FramingError("malformed Content-Length")
    fields.content_length = int(value)


_LENGTH_DIGITS: Final = 18
"""As many as always fit into 64 bits."""


def _set_transfer_encoding(fields: _Head, value: bytes) -> None:
    if fields.chunked or value.lower() != b"chunked":
        raise FramingError("Transfer-Encoding is not exactly one `chunked`")
    fields.chunked = True


def _keep_trailer_names(fields: _Head, value: bytes) -> bytes:
    if _members(value) & FORBIDDEN_TRAILERS:
        raise FramingError("Trailer announces a field that must not be a trailer")
    return b"Trailer: %b\r\n" % value


def _set_expect(fields: RequestFields, value: bytes) -> None:
    if value.lower() != b"100-continue":
        raise LimitExceeded("unknown expectation", 417)
    fields.expects_continue = True


def _set_request_id(fields: RequestFields, value: bytes) -> None:
    if fields.request_id:
        raise FramingError("more than one X-Request-ID")
    fields.request_id = value if _REQUEST_ID.fullmatch(value) else b""


def _refuse_disguised_framing(fields: RequestFields, value: bytes) -> None:
    raise FramingError("framing header with an underscore in its name")


def _refuse_underscore(fields: RequestFields, value: bytes) -> None:
    raise FramingError("header with an underscore in its name")


def _set_upgrade(fields: "RequestFields | AnswerHead", value: bytes) -> None:
    fields.upgrade = b"" if fields.upgrade else value.lower()


def _set_host(fields: RequestFields, value: bytes) -> None:
    if fields.host_line:
        raise FramingError("more than one Host")
    fields.host_line = value
    fields.host = _HOSTS.get(value) or normal_host(value)


_HOSTS: Final[dict[bytes, bytes]] = {}
"""Authorities that were checked lately."""
_REMEMBERED_HOSTS: Final = 4096


def normal_host(authority: bytes) -> bytes:
    """Check an authority and give its host for routing: lower case, without port and trailing dot."""
    if len(authority) > _MAX_AUTHORITY:
        raise FramingError("Host too long")
    found = HOST.fullmatch(authority)
    if found is None or (found[2] and int(found[2]) > 65535):
        raise FramingError("malformed Host")
    host: bytes = found[1].lower()
    host = host.removesuffix(b".") if host != b"." else host
    if len(_HOSTS) >= _REMEMBERED_HOSTS:
        _HOSTS.clear()
    _HOSTS[authority] = host
    return host


def split_target(target: bytes) -> tuple[bytes, bytes] | None:
    """Cut an absolute-form target (RFC 9112 section 3.2.2) into authority and origin-form; None for any other form."""
    found = ABSOLUTE_TARGET.fullmatch(target)
    if found is None:
        return None
    rest = found[2] or b"/"
    return found[1], rest if rest.startswith(b"/") else b"/" + rest


def logged_fields(fields: RequestFields) -> tuple[bytes, bytes]:
    """Give Referer and User-Agent as the access log writes them (`-` for none)."""
    both = fields.referer + fields.agent
    if len(both.translate(None, _LOG_UNSAFE)) == len(both):
        return fields.referer or b"-", fields.agent or b"-"
    return _logged_value(fields.referer), _logged_value(fields.agent)


def _logged_value(value: bytes) -> bytes:
    for byte in _LOG_UNSAFE:
        value = value.replace(bytes((byte,)), b"\\x%02x" % byte)
    return value or b"-"


_LOG_UNSAFE: Final = b'\\"\t'
"""The backslash first, as the others are written with one."""


class AnswerHead(_Head):
    """What the head of one answer says; `lines` begin with its status line."""

    __slots__ = ("closes", "has_date", "has_server", "minor", "status")

    def __init__(self, status: int, minor: int) -> None:
        super().__init__()
        self.status = status
        self.minor = minor
        self.closes = minor == 0
        """The connection ends with this answer."""
        self.has_date = False
        self.has_server = False


_STATUS_LINES: Final[dict[bytes, tuple[int, int, bytes]]] = {}
"""Status lines seen: status, minor version, and the line as it is passed on."""
_REMEMBERED_STATUS_LINES: Final = 256


def _read_status_line(line: bytes) -> tuple[int, int, bytes]:
    found = STATUS_LINE.fullmatch(line)
    if found is None:
        raise FramingError("malformed status line")
    read = int(found[2]), int(found[1]), b"HTTP/1.1 %b %b\r\n" % (found[2], found[3] or b"")
    if len(_STATUS_LINES) < _REMEMBERED_STATUS_LINES and len(line) <= _CACHED_LENGTH:
        _STATUS_LINES[line] = read
    return read


def read_answer_head(raw: bytes, found: Fields, max_count: int) -> AnswerHead:
    """Read the fields that llhttp found in an answer; `raw` is its head. Raises BadMessage."""
    line = raw[: raw.index(b"\n") + 1]
    status, minor, status_line = _STATUS_LINES.get(line) or _read_status_line(line)
    return _read_answer(AnswerHead(status, minor), status_line, found, max_count)


def read_answer_fields(status: int, phrase: bytes, found: Fields, max_count: int) -> AnswerHead:
    """Read the fields of an answer that has no status line, as in HTTP/2. Raises BadMessage."""
    return _read_answer(AnswerHead(status, 1), b"HTTP/1.1 %d %b\r\n" % (status, phrase), found, max_count)


def _read_answer(answer: AnswerHead, status_line: bytes, found: Fields, max_count: int) -> AnswerHead:
    names, values = found
    shape = _ANSWER_SHAPES.get(names) or _new_shape(names, max_count, 502, _ANSWER_SHAPES, _answer_taker)
    lines = shape.write(answer, values)
    if answer.chunked:
        _check_chunked(answer)
    options = answer.options
    answer.closes = b"close" in options or (answer.minor == 0 and b"keep-alive" not in options)
    answer.has_date = shape.has_date and b"date" not in options
    answer.has_server = shape.has_server and b"server" not in options
    answer.lines = status_line + lines
    return answer


@lru_cache(4096)
def _answer_taker(name: bytes) -> "_Taker | None":
    """Choose what to do with a field of an answer; None: pass it on."""
    name = name.lower()
    return _ANSWER_TAKERS.get(name) or (_drop if name in _DROPPED else None)


def _check_chunked(answer: AnswerHead) -> None:
    if answer.content_length >= 0:
        raise FramingError("both Content-Length and Transfer-Encoding")
    if answer.minor == 0:
        raise FramingError("Transfer-Encoding in HTTP/1.0")
    if answer.status < 200 or answer.status == 204:
        raise FramingError(f"Transfer-Encoding in an answer {answer.status}")


@lru_cache(256)
def _short_members(value: bytes) -> frozenset[bytes]:
    members = frozenset(member for part in value.lower().split(b",") if (member := part.strip(b" \t")))
    if not all(_MEMBER.fullmatch(member) for member in members):
        raise FramingError("malformed list of names in Connection or Trailer")
    return members


def _members(value: bytes) -> frozenset[bytes]:
    """Split a comma-separated list of tokens; empty members are legal (RFC 9110 section 5.6.1)."""
    return _short_members(value) if len(value) < _CACHED_LENGTH else _short_members.__wrapped__(value)


def trailer_lines(block: bytes) -> bytes:
    """Check trailers that llhttp has accepted (`block`: lines, each with its CRLF) and write them anew.

    Raises:
        FramingError: a field that must not be a trailer.
    """
    lines = []
    for name, value in zip(*cut_fields(block), strict=True):
        dashed = name.lower().replace(b"_", b"-")
        if dashed in FORBIDDEN_TRAILERS or dashed.startswith(b"x-forwarded-"):
            raise FramingError("a trailer that must not be one")
        lines.append(b"%b: %b\r\n" % (name, value.strip(b" \t")))
    return b"".join(lines)


def _without(lines: bytes, listed: frozenset[bytes]) -> bytes:
    """Remove the fields that Connection lists (RFC 9110 section 7.6.1)."""
    kept = (line for line in lines.splitlines(keepends=True) if line.partition(b":")[0].lower() not in listed)
    return b"".join(kept)


_CONNECTION_OPTIONS: Final = frozenset({b"close", b"keep-alive", b"upgrade"})
"""Options that name no field which is passed on anyway."""

# What each special field does: notes the value, and gives the line that is passed on in its place, if any. Values come
# without the spaces around them; a tab there is legal, but no two servers agree on it, so framing does not take it.
_Taker = Callable[[Any, bytes], bytes | None]

_REQUEST_TAKERS: Final[dict[bytes, _Taker]] = {
    b"host": _set_host,
    b"connection": _set_connection,
    b"content-length": _set_content_length,
    b"transfer-encoding": _set_transfer_encoding,
    b"trailer": _keep_trailer_names,
    b"proxy-connection": _heed_close,
    b"expect": _set_expect,
    b"x-request-id": _set_request_id,
    b"upgrade": _set_upgrade,
}
_ANSWER_TAKERS: Final[dict[bytes, _Taker]] = {
    b"proxy-connection": _heed_close,
    b"connection": _set_connection,
    b"content-length": _set_content_length,
    b"transfer-encoding": _set_transfer_encoding,
    b"trailer": _keep_trailer_names,
    b"upgrade": _set_upgrade,
}
_DROPPED: Final = frozenset(b"te upgrade http2-settings keep-alive proxy-authenticate proxy-authorization".split())
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
_FORWARDED: Final = frozenset(
    {b"forwarded", b"x-real-ip", b"x-scheme", b"x-original-forwarded-for", b"x-original-forwarded-host"}
)
