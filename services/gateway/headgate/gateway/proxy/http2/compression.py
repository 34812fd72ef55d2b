"""Writing of header blocks (RFC 7541) without memory: what stands in the static table by number, all else as it is.

A table that grows with what was sent makes heads smaller, costs memory on each connection and a search for each field,
and lets one who can add fields find out about others. nginx does without it too.
"""

from typing import Final

from hpack.table import HeaderTable

FORGET: Final = b"\x20"
"""Begins the first block of a connection: sets the size of the peer's table to 0, so that no limit of its own can be
under it (section 4.2)."""
SECRET_NAMES: Final = frozenset({b"authorization", b"cookie", b"set-cookie", b"proxy-authorization"})
"""Never put into a table of the compression that an attacker might probe (section 7.1), here and behind the peer."""


def write_number(value: int, bits: int, first: int) -> bytes:
    """Write a number with a prefix of so many bits (section 5.1); `first` is what stands in the bits before it."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    written = [first | most]
    value -= most
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def _names() -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for position, (name, _) in enumerate(HeaderTable.STATIC_TABLE, 1):
        found.setdefault(name, position)
    return found


_FIELDS: Final[dict[tuple[bytes, bytes], bytes]] = {
    (name, value): write_number(position, 7, 0x80)
    for position, (name, value) in enumerate(HeaderTable.STATIC_TABLE, 1)
    if value
}
_LITERAL: Final[dict[bytes, bytes]] = {name: write_number(position, 4, 0) for name, position in _names().items()}
_SECRET: Final[dict[bytes, bytes]] = {name: write_number(position, 4, 0x10) for name, position in _names().items()}
_SHORT: Final[list[bytes]] = [write_number(length, 7, 0) for length in range(256)]
"""Lengths of names and values."""
_LINES: Final[dict[bytes, bytes]] = {}
"""Header lines as they were compressed before: most of them stand in many heads."""
_REMEMBERED_LINES: Final = 4096
_REMEMBERED_BYTES: Final = 128


def compress_field(name: bytes, value: bytes) -> bytes:
    """Write one field; the name is in lower case."""
    known = _FIELDS.get((name, value))
    if known is not None:
        return known
    is_secret = name in SECRET_NAMES
    start = _SECRET.get(name) if is_secret else _LITERAL.get(name)
    if start is None:
        return b"\0%b%b%b%b" % (_length(name), name, _length(value), value)
    return b"%b%b%b" % (start, _length(value), value)


def literal_start(name: bytes) -> bytes:
    """Write a name, in lower case, whose values are in no table; `compress_literal` writes one behind it."""
    return _LITERAL.get(name) or b"\0%b%b" % (_length(name), name)


def compress_literal(start: bytes, value: bytes) -> bytes:
    """Write a field whose name was written by `literal_start`."""
    return b"%b%b%b" % (start, _length(value), value)


def compress_lines(lines: bytes) -> bytes:
    """Write fields that stand as checked header lines, each with its line end; names come out in lower case."""
    pieces: list[bytes] = []
    for line in lines.split(b"\r\n"):
        if line:
            piece = _LINES.get(line)
            pieces.append(_compress_line(line) if piece is None else piece)
    return b"".join(pieces)


def _compress_line(line: bytes) -> bytes:
    colon = line.index(b":")
    name = line[:colon].lower()
    piece = compress_field(name, line[colon + 1 :].strip(b" \t"))
    if len(line) <= _REMEMBERED_BYTES and name not in SECRET_NAMES:
        if len(_LINES) >= _REMEMBERED_LINES:
            _LINES.clear()
        _LINES[line] = piece
    return piece


def _length(text: bytes) -> bytes:
    size = len(text)
    return _SHORT[size] if size < 256 else write_number(size, 7, 0)


AUTHORITY: Final = literal_start(b":authority")
CONTENT_LENGTH: Final = literal_start(b"content-length")
REQUEST_ID: Final = literal_start(b"x-request-id")
