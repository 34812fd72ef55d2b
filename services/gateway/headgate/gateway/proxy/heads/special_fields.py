"""Fields of heads that concern the gateway, and what is done with each of them; all others are passed on.

Values come without the spaces around them. A tab there is legal, but no two servers agree on it, so framing does not
take it.
"""

import re
from functools import lru_cache, partial
from typing import Final

from headgate.gateway.proxy.errors import FramingError, LimitExceeded
from headgate.gateway.proxy.heads.authority import normal_host
from headgate.gateway.proxy.heads.grammar import TOKEN
from headgate.gateway.proxy.heads.head import AnswerHead, Head, RequestFields
from headgate.gateway.proxy.heads.shape import Shapes, Taker
from headgate.gateway.proxy.heads.trailers import FORBIDDEN_TRAILERS

_CACHED_LENGTH: Final = 128
_REQUEST_ID: Final = re.compile(rb"[\x21-\x7e]{1,200}")
_MEMBER: Final = re.compile(TOKEN + rb"++")


class RequestRules:
    """What the settings make of the names in requests, with the shapes that follow from it.

    Args:
        underscores: what becomes of names with `_`: `allow`, `drop` or `refuse`.
        real_ip_header: names the client where the peer is a trusted proxy, so that nobody else may send it on.
    """

    __slots__ = ("_real_ip_header", "_underscores", "shapes")

    def __init__(self, underscores: str = "allow", real_ip_header: str = "") -> None:
        self.shapes: Shapes = {}
        self._underscores = underscores
        self._real_ip_header = real_ip_header.lower().encode()

    def taker(self, name: bytes) -> Taker | None:
        """Choose what to do with a field of a request; None: pass it on."""
        if self._real_ip_header and name.lower() == self._real_ip_header:
            return partial(_note_forwarded, self._real_ip_header)
        if b"_" not in name or self._underscores == "allow":
            return _request_taker(name)
        if self._underscores == "refuse":
            return _refuse_underscore
        return _refuse_disguised_framing if name.lower().replace(b"_", b"-") in _FRAMING else _drop


@lru_cache(4096)
def _request_taker(name: bytes) -> Taker | None:
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


@lru_cache(4096)
def answer_taker(name: bytes) -> Taker | None:
    """Choose what to do with a field of an answer; None: pass it on."""
    name = name.lower()
    return _ANSWER_TAKERS.get(name) or (_drop if name in _DROPPED else None)


def _note_forwarded(name: bytes, fields: RequestFields, value: bytes) -> None:
    known = fields.forwarded.get(name)
    fields.forwarded[name] = value if known is None else b"%b, %b" % (known, value)


def _drop(fields: Head, value: bytes) -> None:
    """Hop-by-hop: not passed on."""


def _set_connection(fields: Head, value: bytes) -> None:
    options = _KNOWN_OPTIONS.get(value)
    if options is None:
        options = _members(value)
        fields.lists_fields = fields.lists_fields or not options <= _NO_NAMES
    fields.options = fields.options | options if fields.options else options


_KNOWN_OPTIONS: Final = {
    value: frozenset({value.lower()}) for value in (b"keep-alive", b"Keep-Alive", b"close", b"Close")
}
_NO_NAMES: Final = frozenset({b"close", b"keep-alive", b"upgrade"})
"""Options that name no field which is passed on anyway."""


def _heed_close(fields: Head, value: bytes) -> None:
    """Proxy-Connection was never a standard; llhttp ends the connection on its `close`, so we do."""
    if b"close" in _members(value):
        fields.options |= {b"close"}


def _set_content_length(fields: Head, value: bytes) -> None:
    if fields.content_length >= 0:
        raise FramingError("more than one Content-Length")
    if not value or len(value) > _LENGTH_DIGITS:
        raise FramingError("malformed Content-Length")
    length = 0
    for digit in value:
        if not _ZERO <= digit <= _NINE:
            raise FramingError("malformed Content-Length")
        length = length * 10 + digit - _ZERO
    fields.content_length = length


_ZERO: Final = 0x30
_NINE: Final = 0x39
_LENGTH_DIGITS: Final = 18
"""As many as always fit into 64 bits."""


def _set_transfer_encoding(fields: Head, value: bytes) -> None:
    if fields.chunked or value.lower() != b"chunked":
        raise FramingError("Transfer-Encoding is not exactly one `chunked`")
    fields.chunked = True


def _keep_trailer_names(fields: Head, value: bytes) -> bytes:
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


def _set_upgrade(fields: RequestFields | AnswerHead, value: bytes) -> None:
    fields.upgrade = b"" if fields.upgrade else value.lower()


def _set_host(fields: RequestFields, value: bytes) -> None:
    if fields.host_line:
        raise FramingError("more than one Host")
    fields.host_line = value
    fields.host = normal_host(value)


@lru_cache(256)
def _short_members(value: bytes) -> frozenset[bytes]:
    members = frozenset(member for part in value.lower().split(b",") if (member := part.strip(b" \t")))
    if not all(_MEMBER.fullmatch(member) for member in members):
        raise FramingError("malformed list of names in Connection or Trailer")
    return members


def _members(value: bytes) -> frozenset[bytes]:
    """Split a comma-separated list of tokens; empty members are legal (RFC 9110 section 5.6.1)."""
    return _short_members(value) if len(value) < _CACHED_LENGTH else _short_members.__wrapped__(value)


_REQUEST_TAKERS: Final[dict[bytes, Taker]] = {
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
_ANSWER_TAKERS: Final[dict[bytes, Taker]] = {
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

ALL_NAMES: Final = RequestRules()
