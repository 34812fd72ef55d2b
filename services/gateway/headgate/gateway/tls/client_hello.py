"""The server name that a TLS client asks for, read from its ClientHello without speaking TLS.

RFC 8446 sections 4.1.2 and 5.1 (the same for TLS 1.0 to 1.2), RFC 6066 section 3 for the name, RFC 7301 for ALPN. The
hello may come in pieces, both of TCP and of TLS records.
"""

from enum import Enum, auto
from typing import Final, NamedTuple

MAX_HELLO: Final = 16 * 1024
"""Bytes of the longest hello, record headers included; those with post-quantum key shares are under 2 KiB."""
_RECORD_HEADER: Final = 5
_MAX_RECORD: Final = 1 << 14
_HANDSHAKE: Final = 22
_CLIENT_HELLO: Final = 1
_SERVER_NAME: Final = 0
_ALPN: Final = 16
_NAME_BYTES: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-._")


class HelloOutcome(Enum):
    """What else the bytes of a connection may be."""

    NEED_MORE = auto()
    """The beginning of a hello."""
    NOT_TLS = auto()
    """No hello, or a malformed or overlong one, whatever follows."""


class ClientHello(NamedTuple):
    """What a client asks for."""

    server_name: str
    """Lower case, without a trailing dot; empty if it names none."""
    alpn: tuple[bytes, ...]
    """Protocols offered, in the client's order."""


class _Malformed(Exception):
    """The hello breaks the grammar."""


def read_client_hello(data: bytes) -> ClientHello | HelloOutcome:
    """Read the hello that a connection begins with."""
    try:
        message = _handshake_message(data)
        if message is None:
            return HelloOutcome.NEED_MORE if len(data) < MAX_HELLO else HelloOutcome.NOT_TLS
        return _read_hello(_Fields(message))
    except _Malformed:
        return HelloOutcome.NOT_TLS


def _handshake_message(data: bytes) -> bytes | None:
    """Join the first handshake message from its records; None: it is not there to its end."""
    joined = b""
    at = 0
    while at < len(data):
        header = data[at : at + _RECORD_HEADER]
        if header[0] != _HANDSHAKE or header[1:2] not in (b"", b"\x03"):
            raise _Malformed
        if len(header) < _RECORD_HEADER:
            return None
        size = int.from_bytes(header[3:5], "big")
        if not 0 < size <= _MAX_RECORD:
            raise _Malformed
        at += _RECORD_HEADER
        joined += data[at : at + size]
        at += size
        if joined and joined[0] != _CLIENT_HELLO:
            raise _Malformed
        if len(joined) >= 4:
            end = 4 + int.from_bytes(joined[1:4], "big")
            if end > MAX_HELLO:
                raise _Malformed
            if len(joined) >= end:
                return joined[4:end]
    return None


class _Fields:
    """Bytes read from the front; reading beyond their end raises _Malformed."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise _Malformed
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> "_Fields":
        """Take bytes that are preceded by their number, itself of `size` bytes."""
        return _Fields(self.take(self.number(size)))

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)


def _read_hello(fields: _Fields) -> ClientHello:
    fields.take(2 + 32)  # version and random
    fields.vector(1)  # session
    if not fields.vector(2) or not fields.vector(1):  # cipher suites, compression methods
        raise _Malformed
    name = ""
    alpn: tuple[bytes, ...] = ()
    if not fields:
        return ClientHello(name, alpn)
    extensions = fields.take(fields.number(2))
    if fields:
        raise _Malformed
    seen: set[int] = set()
    at, end = 0, len(extensions)
    # Written out, as a hello has a dozen extensions of which two matter, and every handshake waits for this.
    while at < end:
        body = at + 4
        if body > end:
            raise _Malformed
        kind = extensions[at] << 8 | extensions[at + 1]
        at = body + (extensions[at + 2] << 8 | extensions[at + 3])
        if at > end or kind in seen:
            raise _Malformed
        seen.add(kind)
        if kind == _SERVER_NAME:
            name = _read_server_name(_Fields(extensions[body:at]))
        elif kind == _ALPN:
            alpn = _read_alpn(_Fields(extensions[body:at]))
    return ClientHello(name, alpn)


def _read_server_name(body: _Fields) -> str:
    names = body.vector(2)
    if body or not names:
        raise _Malformed
    found = ""
    while names:
        kind, name = names.number(1), names.vector(2).rest().lower()
        if kind != 0:
            continue
        # Two names of one kind are forbidden; a name with other bytes is none that a route could have.
        if found or not 0 < len(name) <= 255 or not _NAME_BYTES.issuperset(name):
            raise _Malformed
        found = name.decode()
    return found.removesuffix(".")


def _read_alpn(body: _Fields) -> tuple[bytes, ...]:
    protocols = body.vector(2)
    if body or not protocols:
        raise _Malformed
    offered: list[bytes] = []
    while protocols:
        protocol = protocols.vector(1).rest()
        if not protocol:
            raise _Malformed
        offered.append(protocol)
    return tuple(offered)
