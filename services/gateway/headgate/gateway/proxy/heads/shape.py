"""Heads by the names of their fields: each sequence of names is looked at once, and its values many times."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

from headgate.gateway.proxy.errors import LimitExceeded
from headgate.gateway.proxy.heads.head import Head

Taker = Callable[[Any, bytes], bytes | None]
"""Notes the value of a special field, and gives the line that is passed on in its place, if any."""

_REMEMBERED_SHAPES: Final = 1024
_REMEMBERED_BYTES: Final = 2048
"""Of names in one shape; with the number of shapes this bounds what a hostile client can make us remember."""
_CONNECTION_OPTIONS: Final = frozenset({b"close", b"keep-alive", b"upgrade"})
"""Options that name no field which is passed on anyway."""


class Shape:
    """What all heads with the same field names in the same order have in common.

    Clients and servers send few sequences of names and many values, so what follows from names alone is found out once:
    which fields are special, and a template that writes all the others with one formatting.
    """

    __slots__ = ("agent", "has_date", "has_server", "pick", "referer", "specials", "template")

    def __init__(self, names: tuple[bytes, ...], choose: Callable[[bytes], Taker | None]) -> None:
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

    def write(self, target: Head, values: tuple[bytes, ...]) -> bytes:
        """Hand special fields to their takers, and write the others anew in their order."""
        lines: bytes = self.template % self.pick(values)
        for position, take in self.specials:
            line = take(target, values[position].strip(b" "))
            if line is not None:
                lines += line
        return lines if target.options <= _CONNECTION_OPTIONS else _without(lines, target.options)


Shapes = dict[tuple[bytes, ...], Shape]


def new_shape(
    names: tuple[bytes, ...], max_count: int, status: int, known: Shapes, choose: Callable[[bytes], Taker | None]
) -> Shape:
    """Find the shape of names that are not `known`, and remember it; raises LimitExceeded with the status."""
    if len(names) > max_count:
        raise LimitExceeded(f"more than {max_count} header fields", status)
    shape = Shape(names, choose)
    if sum(map(len, names)) <= _REMEMBERED_BYTES:
        if len(known) >= _REMEMBERED_SHAPES:
            known.clear()
        known[names] = shape
    return shape


def _without(lines: bytes, listed: frozenset[bytes]) -> bytes:
    """Remove the fields that Connection lists (RFC 9110 section 7.6.1)."""
    kept = (line for line in lines.splitlines(keepends=True) if line.partition(b":")[0].lower() not in listed)
    return b"".join(kept)
