"""Reading of header blocks (RFC 7541), into what a bounded table of the peer's making lets them mean.

The static table and the tree of the Huffman code are hpack's; its own decoder, which makes an object of every field and
logs it, took a quarter of the time of a request.
"""

from typing import Final

from hpack.huffman_table import HUFFMAN_COMPLETE, HUFFMAN_EMIT_SYMBOL, HUFFMAN_FAIL, HUFFMAN_TABLE
from hpack.table import HeaderTable

Field = tuple[bytes, bytes]
"""Name and value."""
HeaderList = list[Field]

TABLE_SIZE: Final = 4096
"""What our SETTINGS leave at its default: the most that a peer may make us remember, in bytes as section 4.1 counts."""
_OVERHEAD: Final = 32
"""What every field counts for beside its bytes."""
_STATIC: Final[list[Field]] = list(HeaderTable.STATIC_TABLE)
_STATIC_COUNT: Final = len(_STATIC)
_MOST: Final = 2**24
"""Numbers above it mean nothing in a block of any size that is read."""

_FAIL: Final = HUFFMAN_FAIL
_EMIT: Final = HUFFMAN_EMIT_SYMBOL
_COMPLETE: Final = HUFFMAN_COMPLETE
_HUFFMAN: Final[list[int]] = [state << 16 | flags << 8 | symbol for state, flags, symbol in HUFFMAN_TABLE]
"""For each state and four bits of input: next state, flags and symbol in one number."""
_TEXTS: Final[dict[bytes, bytes]] = {}
"""What short texts mean that came before, on any connection."""
_REMEMBERED_TEXTS: Final = 4096
_REMEMBERED_BYTES: Final = 64


class CompressionFault(Exception):
    """The block cannot be read, nor can any that follows it on the connection."""


class HeaderListTooLong(Exception):
    """The block means more than is taken."""


class Decoder:
    """Reads the header blocks of one connection, in their order."""

    __slots__ = ("_entries", "_limit", "_size", "max_list")

    def __init__(self, max_list: int) -> None:
        """`max_list`: bytes of a header list, each field counted with 32 more."""
        self.max_list = max_list
        self._entries: HeaderList = []
        """What the peer made us remember; the newest is the last."""
        self._size = 0
        self._limit = TABLE_SIZE

    def decode(self, block: bytes) -> HeaderList:
        """Read a whole block; raises CompressionFault or HeaderListTooLong, after which nothing more can be read."""
        try:
            return self._decode(block)
        except IndexError:
            raise CompressionFault("a header block that ends too early") from None

    def _decode(self, block: bytes) -> HeaderList:
        fields: HeaderList = []
        size, at, end = 0, 0, len(block)
        while at < end:
            first = block[at]
            at += 1
            if first >= 0x80:
                index = first & 0x7F
                if index == 0x7F:
                    index, at = read_number(block, at, index)
                field = self._entry(index)
                name, value = field
            elif first >= 0x40 or first < 0x20:
                mask = 0x3F if first >= 0x40 else 0x0F
                index = first & mask
                if index == mask:
                    index, at = read_number(block, at, index)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = _text(block, at)
                value, at = _text(block, at)
                field = (name, value)
                if mask == 0x3F:
                    self._add(field)
            else:
                at = self._resize(block, at, first, is_first=not fields)
                continue
            fields.append(field)
            size += _OVERHEAD + len(name) + len(value)
            if size > self.max_list:
                raise HeaderListTooLong(f"a header list of more than {self.max_list} bytes")
        return fields

    def _entry(self, index: int) -> Field:
        if index == 0:
            raise CompressionFault("a header field with the number 0")
        if index <= _STATIC_COUNT:
            return _STATIC[index - 1]
        back = index - _STATIC_COUNT
        entries = self._entries
        if back > len(entries):
            raise CompressionFault("a header field that is not in the table")
        return entries[len(entries) - back]

    def _add(self, field: Field) -> None:
        self._entries.append(field)
        self._size += _OVERHEAD + len(field[0]) + len(field[1])
        if self._size > self._limit:
            self._evict()

    def _resize(self, block: bytes, at: int, first: int, *, is_first: bool) -> int:
        if not is_first:
            raise CompressionFault("a change of the table's size behind a field")
        size = first & 0x1F
        if size == 0x1F:
            size, at = read_number(block, at, size)
        if size > TABLE_SIZE:
            raise CompressionFault("a table that is larger than allowed")
        self._limit = size
        self._evict()
        return at

    def _evict(self) -> None:
        entries, size, count = self._entries, self._size, 0
        while size > self._limit:
            name, value = entries[count]
            size -= _OVERHEAD + len(name) + len(value)
            count += 1
        del entries[:count]
        self._size = size


def read_number(block: bytes, at: int, value: int) -> tuple[int, int]:
    """Read the rest of a number (section 5.1); return it and where it ends."""
    shift = 0
    while True:
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if value > _MOST or shift > 21:
            raise CompressionFault("a number that is too large")
        if byte < 0x80:
            return value, at
        shift += 7


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    """Read a name or value (section 5.2); return it and where it ends."""
    first = block[at]
    at += 1
    length = first & 0x7F
    if length == 0x7F:
        length, at = read_number(block, at, length)
    end = at + length
    if end > len(block):
        raise CompressionFault("a header block that ends too early")
    text = block[at:end]
    if first < 0x80:
        return text, end
    return decode_huffman(text), end


def decode_huffman(text: bytes) -> bytes:
    """Read a text in the Huffman code, which QPACK has too; raises CompressionFault."""
    known = _TEXTS.get(text)
    if known is None:
        known = _decode_huffman(text)
        if len(text) <= _REMEMBERED_BYTES:
            if len(_TEXTS) >= _REMEMBERED_TEXTS:
                _TEXTS.clear()
            _TEXTS[text] = known
    return known


def _decode_huffman(text: bytes) -> bytes:
    table = _HUFFMAN
    symbols: list[int] = []
    state, flags = 0, _COMPLETE
    for byte in text:
        packed = table[state << 4 | byte >> 4]
        flags = packed >> 8 & 0xFF
        if flags & _EMIT:
            symbols.append(packed & 0xFF)
        if flags & _FAIL:
            raise CompressionFault("a text that is not in the Huffman code")
        packed = table[packed >> 16 << 4 | byte & 0x0F]
        flags = packed >> 8 & 0xFF
        if flags & _EMIT:
            symbols.append(packed & 0xFF)
        if flags & _FAIL:
            raise CompressionFault("a text that is not in the Huffman code")
        state = packed >> 16
    if not flags & _COMPLETE:
        raise CompressionFault("a text whose Huffman code has no end")
    return bytes(symbols)
