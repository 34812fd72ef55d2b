"""Header blocks of HTTP/3 (RFC 9204) without memory, either way: what stands in the static table by number, all else as
it is.

Our SETTINGS leave the dynamic table at its default of no entries, so that no block waits for another stream, and none
costs memory on the connection. Answers do without the client's table for the reasons of `http2.compression`.
"""

from typing import Final

from headgate.gateway.proxy.http2.compression import SECRET_NAMES, write_number
from headgate.gateway.proxy.http2.decompression import (
    CompressionFault,
    Field,
    HeaderList,
    HeaderListTooLong,
    decode_huffman,
    read_number,
)
from headgate.gateway.proxy.http3.static_table import STATIC_TABLE

_OVERHEAD: Final = 32
"""What every field counts for beside its bytes (RFC 9114 section 4.2.2)."""
_STATIC: Final[list[Field]] = STATIC_TABLE
_STATIC_COUNT: Final = len(_STATIC)
PREFIX: Final = b"\0\0"
"""Begins a block that refers to no dynamic table."""


def decode(block: bytes, max_list: int) -> HeaderList:
    """Read a whole block into at most so many bytes, each field counted with 32 more.

    Raises:
        CompressionFault: it cannot be read, or refers to a dynamic table, which there is not.
        HeaderListTooLong: it means more.
    """
    try:
        return _decode(block, max_list)
    except IndexError:
        raise CompressionFault("a header block that ends too early") from None


def _decode(block: bytes, max_list: int) -> HeaderList:
    fields: HeaderList = []
    if block[0] != 0:
        raise CompressionFault("a header block that refers to a dynamic table")
    at, size, end = 2, 0, len(block)
    if block[1] & 0x7F == 0x7F:
        _, at = read_number(block, 2, 0x7F)
    while at < end:
        first = block[at]
        at += 1
        if first >= 0xC0:
            index = first & 0x3F
            if index == 0x3F:
                index, at = read_number(block, at, index)
            field = _entry(index)
            name, value = field
        elif first & 0xD0 == 0x50:
            index = first & 0x0F
            if index == 0x0F:
                index, at = read_number(block, at, index)
            name = _entry(index)[0]
            value, at = _text(block, at, block[at], 0x7F)
            field = (name, value)
        elif first & 0xE0 == 0x20:
            name, at = _text(block, at - 1, first, 0x07)
            value, at = _text(block, at, block[at], 0x7F)
            field = (name, value)
        else:
            raise CompressionFault("a header field from a dynamic table")
        fields.append(field)
        size += _OVERHEAD + len(name) + len(value)
        if size > max_list:
            raise HeaderListTooLong(f"a header list of more than {max_list} bytes")
    return fields


def _entry(index: int) -> Field:
    if index >= _STATIC_COUNT:
        raise CompressionFault("a header field that is not in the table")
    return _STATIC[index]


def _text(block: bytes, at: int, first: int, most: int) -> tuple[bytes, int]:
    """Read a name or value whose length begins in the byte at `at`, below a bit that says whether it is compressed."""
    length = first & most
    at += 1
    if length == most:
        length, at = read_number(block, at, length)
    end = at + length
    if end > len(block):
        raise CompressionFault("a header block that ends too early")
    text = block[at:end]
    return (decode_huffman(text) if first & (most + 1) else text), end


def _names() -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for position, (name, _) in enumerate(_STATIC):
        found.setdefault(name, position)
    return found


_FIELDS: Final[dict[tuple[bytes, bytes], bytes]] = {
    field: write_number(position, 6, 0xC0) for position, field in enumerate(_STATIC)
}
_LITERAL: Final[dict[bytes, bytes]] = {name: write_number(position, 4, 0x50) for name, position in _names().items()}
_SECRET: Final[dict[bytes, bytes]] = {name: write_number(position, 4, 0x70) for name, position in _names().items()}
"""Never to be put into a table (section 7.1.3)."""
_SHORT: Final[list[bytes]] = [write_number(length, 7, 0) for length in range(256)]
"""Lengths of values."""
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
        start = write_number(len(name), 3, 0x30 if is_secret else 0x20) + name
    size = len(value)
    return b"%b%b%b" % (start, _SHORT[size] if size < 256 else write_number(size, 7, 0), value)


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
