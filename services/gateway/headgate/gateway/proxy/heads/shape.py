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
_SPACE: Final = 0x20
_REMEMBERED_PREFIXES: Final = 64
"""Of names; plugins ask for those that their configurations have."""
_FORWARDED: Final = frozenset(
    {
        b"\nx-forwarded-for:",
        b"\nx-forwarded-host:",
        b"\nx-forwarded-port:",
        b"\nx-forwarded-proto:",
        b"\nx-real-ip:",
    }
)
"""What requests get besides, where nothing special is to be said of their origin (`forward.forwarded_lines`)."""


class FieldNames:
    """Which names a head may have: where one is not among them, its lines need not be searched.

    Names stand as keys, a line feed before and a colon behind, in lower case: so they are found in lines, too.
    """

    __slots__ = ("_prefixes", "keys")

    def __init__(self, beginnings: list[bytes]) -> None:
        self.keys = _FORWARDED | {b"\n%b:" % beginning[:-2].lower() for beginning in beginnings}
        self._prefixes: dict[bytes, bool] = {}

    def has_any(self, prefix: bytes) -> bool:
        """Tell whether any name begins so, in lower case."""
        found = self._prefixes.get(prefix)
        if found is None:
            found = any([key.startswith(prefix, 1) for key in self.keys])
            if len(self._prefixes) < _REMEMBERED_PREFIXES:
                self._prefixes[prefix] = found
        return found


class Shape:
    """What all heads with the same field names in the same order have in common.

    Clients and servers send few sequences of names and many values, so what follows from names alone is found out once:
    which fields are special, and how all the others are written.

    Most heads on a connection have the shape of the one before. `cut` finds that out from the lines as they are: where
    each begins with its name, a colon, one space and no further white space, it stands as it would be written anew.
    """

    __slots__ = (
        "_beginnings",
        "_names",
        "_pick_lines",
        "_plain",
        "_specials",
        "agent",
        "has_date",
        "has_server",
        "is_remembered",
        "referer",
    )

    def __init__(self, names: tuple[bytes, ...], choose: Callable[[bytes], Taker | None]) -> None:
        takers = [choose(name) for name in names]
        plain = [position for position, take in enumerate(takers) if take is None]
        self._beginnings = [name + b": " for name in names]
        self._specials = [(position, take) for position, take in enumerate(takers) if take is not None]
        self._plain = [(position, self._beginnings[position]) for position in plain]
        # The empty line behind the fields makes the last of them end with a CRLF when they are joined.
        lines = [position + 1 for position in (*plain, len(names))]
        self._pick_lines: Callable[[list[bytes]], tuple[bytes, ...]] = itemgetter(*lines) if plain else lambda lines: ()
        self._names: FieldNames | None = None
        self.is_remembered = False
        """It is found again by its names."""
        lower = [name.lower() for name in names]
        self.agent = lower.index(b"user-agent") if b"user-agent" in lower else -1
        self.referer = lower.index(b"referer") if b"referer" in lower else -1
        self.has_date = b"date" in lower
        self.has_server = b"server" in lower

    @property
    def names(self) -> FieldNames:
        """Which names the lines have that are written of such a head, and those that the gateway adds to a request."""
        names = self._names
        if names is None:
            names = self._names = FieldNames(self._beginnings)
        return names

    def write(self, target: Head, values: tuple[bytes, ...]) -> bytes:
        """Hand special fields to their takers, and write the others anew in their order."""
        lines = [beginning + values[position] for position, beginning in self._plain]
        lines.append(b"")
        written = b"\r\n".join(lines)
        for position, take in self._specials:
            line = take(target, values[position].strip(b" "))
            if line is not None:
                written += line
        return _without(written, target.options) if target.lists_fields else written

    def cut(self, message: bytes) -> list[bytes] | None:
        """Cut a message that begins with a whole head of this shape, all of whose lines stand as they would be written.

        Returns its first line, those of the fields, the empty one, each without its CRLF, and what comes behind the
        head; None: the head is another one, or not whole. Whether it is a head at all is for llhttp to say.
        """
        beginnings = self._beginnings
        count = len(beginnings)
        lines = message.split(b"\r\n", count + 2)
        if len(lines) != count + 3 or lines[count + 1]:
            return None
        at = 1
        for beginning in beginnings:
            line, size = lines[at], len(beginning)
            if not line.startswith(beginning) or (len(line) > size and line[size] <= _SPACE):
                return None
            at += 1
        return lines

    def write_lines(self, target: Head, lines: list[bytes]) -> bytes:
        """Do as `write`, with lines as `cut` gives them."""
        written = b"\r\n".join(self._pick_lines(lines))
        for position, take in self._specials:
            value = self.value(lines, position)
            line = take(target, value.strip(b" ") if value.endswith(b" ") else value)
            if line is not None:
                written += line
        return _without(written, target.options) if target.lists_fields else written

    def value(self, lines: list[bytes], position: int) -> bytes:
        """Give the value of the field at a position, of lines as `cut` gives them."""
        return lines[position + 1][len(self._beginnings[position]) :]


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
        shape.is_remembered = True
    return shape


def _without(lines: bytes, listed: frozenset[bytes]) -> bytes:
    """Remove the fields that Connection lists (RFC 9110 section 7.6.1)."""
    kept = (line for line in lines.splitlines(keepends=True) if line.partition(b":")[0].lower() not in listed)
    return b"".join(kept)
