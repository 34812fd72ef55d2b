"""Header compression towards the peer (RFC 7541) without memory: what stands in the static table by number, all else as
it is.

A table that grows with what was sent makes heads smaller, costs memory on each connection and a search for each field,
and lets one who can add fields find out about others. nginx does without it too. h2 takes this for hpack's `Encoder`.
"""

from collections.abc import Iterable
from typing import Any, Final

from hpack.table import HeaderTable

_FORGET: Final = b"\x20"
"""Sets the size of the peer's table to 0, so that no limit of its own can be under it (section 4.2)."""


def _number(value: int, bits: int, first: int) -> bytes:
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
    (name, value): _number(position, 7, 0x80)
    for position, (name, value) in enumerate(HeaderTable.STATIC_TABLE, 1)
    if value
}
_LITERAL: Final[dict[bytes, bytes]] = {name: _number(position, 4, 0) for name, position in _names().items()}
_SECRET: Final[dict[bytes, bytes]] = {name: _number(position, 4, 0x10) for name, position in _names().items()}
_SHORT: Final[list[bytes]] = [_number(length, 7, 0) for length in range(256)]
"""Lengths of names and values."""


class StaticEncoder:
    """Writes header blocks."""

    __slots__ = ("_has_begun", "header_table_size")

    def __init__(self) -> None:
        self._has_begun = False
        self.header_table_size = 0
        """What the peer would keep; of no use to us."""

    def encode(self, headers: Iterable[Any]) -> bytes:
        """Write a header list; names are lower case, and fields of hpack's `NeverIndexedHeaderTuple` are secret."""
        block = [] if self._has_begun else [_FORGET]
        self._has_begun = True
        name: bytes
        value: bytes
        for field in headers:
            name, value = field[0], field[1]
            known = _FIELDS.get((name, value))
            if known is not None:
                block.append(known)
                continue
            is_secret = not getattr(field, "indexable", True)
            start = _SECRET.get(name) if is_secret else _LITERAL.get(name)
            if start is None:
                block.append(b"\x10" if is_secret else b"\0")
                start = _length(name) + name
            block.append(start)
            block.append(_length(value))
            block.append(value)
        return b"".join(block)


def _length(text: bytes) -> bytes:
    size = len(text)
    return _SHORT[size] if size < 256 else _number(size, 7, 0)
