"""Header fields as plugins see them: ordered, names in any case, several values of one name.

They stay the lines of a checked head: a field is found by searching, which costs less than taking apart forty fields of
which a plugin wants one. Most of what is asked for is not there, and is not searched for where the names are known that
the head came with. Whatever is put in is checked, so no plugin and no value that a plugin copies from a client
can split a message, end a head early or change where a body ends.

Values are text of the bytes 0 to 255, as they stand on the wire (ISO 8859-1).
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from headgate.common.plugins.fields import HEADER_NAME, checked_name, checked_value, is_reserved
from headgate.gateway.proxy.heads.grammar import is_printable

if TYPE_CHECKING:
    from headgate.gateway.proxy.heads.shape import Shape


_REMEMBERED: Final = 4096
_REMEMBERED_LENGTH: Final = 64
"""Names that are remembered, and the characters of one: a client may send any that a plugin then looks for."""


_UNWRITABLE: Final = b"\n"
"""Stands for a value with characters above U+00FF, which `checked_value` refuses."""


class _Name:
    """How fields of one name are found and written."""

    __slots__ = ("_begin", "_name", "key")

    def __init__(self, name: str) -> None:
        is_name = HEADER_NAME.fullmatch(name) is not None
        self._name = name
        self.key = b"\n%b:" % name.lower().encode() if is_name else b"\n\n"
        """The beginning of a field and the end of the line before it. No head has that of a text that is no name."""
        self._begin = b"%b: " % name.encode() if is_name and not is_reserved(name) else b""
        """What a line begins with; empty where plugins may not write one."""

    def line(self, value: str) -> bytes:
        """Write a field. Raises BadHeader."""
        begin = self._begin or b"%b: " % checked_name(self._name).encode()
        try:
            written = value.strip(" \t").encode("latin-1")
        except UnicodeEncodeError:
            written = _UNWRITABLE
        if not is_printable(written):
            # `checked_value` alone would do, but is interpreted, and nearly all values are printable ASCII.
            written = checked_value(value).encode("latin-1")
        return b"%b%b\r\n" % (begin, written)


_NAMES: Final[dict[str, _Name]] = {}


def _known(name: str) -> _Name:
    known = _NAMES.get(name)
    if known is None:
        known = _Name(name)
        if len(name) <= _REMEMBERED_LENGTH:
            if len(_NAMES) >= _REMEMBERED:
                _NAMES.clear()
            _NAMES[name] = known
    return known


class Headers:
    """The fields of one head, without Host and those that frame the message."""

    __slots__ = ("_added", "_folded", "_lines", "_shape")

    def __init__(self, pairs: Iterable[tuple[str, str]] = (), lines: bytes = b"", shape: "Shape | None" = None) -> None:
        """Take pairs of names and values, which are checked, or lines that were, as `from_lines` has them."""
        self._lines = lines
        self._folded: bytes | None = None
        """The lines in lower case behind a line feed, made when they are first searched: every field has one before."""
        self._shape = shape
        """Has the names that the lines began with; None where they are not known."""
        self._added: list[bytes] | None = None
        """Keys of those that came to them, if any did."""
        if pairs:
            for name, value in pairs:
                self.add(name, value)

    @staticmethod
    def from_lines(lines: bytes, shape: "Shape | None" = None) -> "Headers":
        """Take over lines that were checked, each `Name: value` with its CRLF, and a shape that has all their names."""
        return Headers((), lines, shape)

    def to_lines(self) -> bytes:
        """Return the lines, each with its CRLF."""
        return self._lines

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return a field's value; of several all, joined by `, `."""
        key = _known(name).key
        at = self._find(key, 0)
        if at < 0:
            return default
        value, end = self._value(at + len(key) - 1)
        return value if self._find(key, end) < 0 else ", ".join(self.get_all(name))

    def get_all(self, name: str) -> list[str]:
        """Return the values of all fields of a name, in their order."""
        key = _known(name).key
        values = []
        at = self._find(key, 0)
        while at >= 0:
            value, end = self._value(at + len(key) - 1)
            values.append(value)
            at = self._find(key, end)
        return values

    def set(self, name: str, value: str) -> None:
        """Put one field in the place of all that have this name. Raises BadHeader."""
        known = _known(name)
        line = known.line(value)
        at = self._find(known.key, 0)
        if at < 0:
            self._append(line, known.key)
            return
        lines = self._lines
        after = self._without(name, lines.index(b"\n", at) + 1)
        self._write(lines[:at] + line + after)

    def add(self, name: str, value: str) -> None:
        """Append a field; others of its name stay. Raises BadHeader."""
        known = _known(name)
        self._append(known.line(value), known.key)

    def set_default(self, name: str, value: str) -> None:
        """Append a field, unless there is one of its name. Raises BadHeader."""
        known = _known(name)
        if self._find(known.key, 0) < 0:
            self._append(known.line(value), known.key)

    def set_lines(self, names: Iterable[str], prefix: bytes, lines: bytes) -> None:
        """Put checked lines, each with its CRLF, in the place of all fields that have these names.

        `prefix` is what all the names begin with, in lower case: one search says that there are none of them.
        """
        if self.has_any(prefix):
            for name in names:
                self.remove(name)
        self._append(lines, b"\n" + prefix)

    def extend(self, lines: bytes) -> None:
        """Append lines of another head, as `to_lines` gives them."""
        self._lines += lines
        self._folded = self._shape = None

    def remove(self, name: str) -> bool:
        """Take all fields of a name away; tell whether there were any."""
        if self._find(_known(name).key, 0) < 0:
            return False
        self._write(self._without(name, 0))
        return True

    def remove_named(self, name: str) -> None:
        """Take all fields of a name away, or with a `*` at its end of all names that begin so."""
        if not name.endswith("*"):
            self.remove(name)
            return
        begin = name[:-1].lower()
        for present in {field.lower() for field, _ in self if field.lower().startswith(begin)}:
            self.remove(present)

    def copy(self) -> "Headers":
        """Return the same fields, to be changed apart."""
        return Headers.from_lines(self._lines)

    def add_to_list(self, name: str, member: str) -> None:
        """Add a member to a comma-separated field, as `Vary`, unless it is there in any case. Raises BadHeader."""
        present = self.get(name)
        if present is None:
            self.set(name, member)
        elif member.lower() not in (part.strip().lower() for part in present.split(",")):
            self.set(name, f"{present}, {member}")

    def has_any(self, prefix: bytes) -> bool:
        """Tell whether the name of any field begins so; in lower case."""
        shape, added = self._shape, self._added
        is_known_to_lack = shape is not None and not shape.names.has_any(prefix)
        if is_known_to_lack and (added is None or not self._has_added(b"\n" + prefix)):
            return False
        return self._find_in_lines(b"\n" + prefix, 0) >= 0

    def __contains__(self, name: str) -> bool:
        return self._find(_known(name).key, 0) >= 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for line in self._lines.decode("latin-1").split("\r\n")[:-1]:
            name, _, value = line.partition(":")
            yield name, value.strip(" \t")

    def __len__(self) -> int:
        return self._lines.count(b"\n")

    def __repr__(self) -> str:
        return f"Headers({[name for name, _ in self]})"

    def _find(self, key: bytes, start: int) -> int:
        """Return where the next line with a key begins, from the beginning of a line on; negative if there is none."""
        shape = self._shape
        if shape is not None and key not in shape.names.keys and not self._has_added(key):
            return -1
        return self._find_in_lines(key, start)

    def _has_added(self, beginning: bytes) -> bool:
        """Tell whether a line may have been added that begins so, or with what `beginning` begins with."""
        added = self._added
        return added is not None and any(key.startswith(beginning) or beginning.startswith(key) for key in added)

    def _find_in_lines(self, key: bytes, start: int) -> int:
        folded = self._folded
        if folded is None:
            folded = self._folded = b"\n" + self._lines.lower()
        return folded.find(key, start)

    def _value(self, begin: int) -> tuple[str, int]:
        """Return the value behind a name and its colon, and where the next line begins."""
        end = self._lines.index(b"\n", begin)
        return self._lines[begin:end].strip(b" \t\r").decode("latin-1"), end + 1

    def _without(self, name: str, start: int) -> bytes:
        """Return the lines from a line's beginning on without those of a name."""
        key = _known(name).key
        kept = []
        at = self._find(key, start)
        while at >= 0:
            kept.append(self._lines[start:at])
            start = self._lines.index(b"\n", at) + 1
            at = self._find(key, start)
        kept.append(self._lines[start:])
        return b"".join(kept)

    def _append(self, lines: bytes, key: bytes) -> None:
        """Append lines that begin with a key, all of them."""
        self._lines = self._lines + lines  # `+=` on bytes is not compiled
        if self._shape is not None:
            if self._added is None:
                self._added = [key]
            else:
                self._added.append(key)
        if self._folded is not None:
            self._folded += lines.lower()

    def _write(self, lines: bytes) -> None:
        self._lines = lines
        self._folded = None
