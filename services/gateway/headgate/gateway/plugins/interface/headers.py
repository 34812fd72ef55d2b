"""Header fields as plugins see them: ordered, names in any case, several values of one name.

They stay the lines of a checked head: a field is found by searching, which costs less than taking apart forty fields of
which a plugin wants one. Most of what is asked for is not there, and is not searched for where the names are known that
the head came with. Whatever is put in is checked, so no plugin and no value that a plugin copies from a client
can split a message, end a head early or change where a body ends.

Values are text of the bytes 0 to 255, as they stand on the wire (ISO 8859-1).
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from headgate.common.plugins.fields import HEADER_NAME, checked_name, checked_value

if TYPE_CHECKING:
    from headgate.gateway.proxy.heads.shape import Shape


@lru_cache(4096)
def _key(name: str) -> bytes:
    """Return what a field of this name begins with, behind the line before; for what is no name what is nowhere."""
    return b"\n%b:" % name.lower().encode() if HEADER_NAME.fullmatch(name) else b"\n\n"


@lru_cache(4096)
def _begin(name: str) -> bytes:
    """Return what the line of a field that is set begins with. Raises BadHeader."""
    return b"%b: " % checked_name(name).encode()


class Headers:
    """The fields of one head, without Host and those that frame the message."""

    __slots__ = ("_added", "_folded", "_lines", "_shape")

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._lines = b""
        self._folded: bytes | None = None
        """The lines in lower case behind a line feed, made when they are first searched: every field has one before."""
        self._shape: Shape | None = None
        """Has the names that the lines began with; None where they are not known."""
        self._added: list[bytes] = []
        """Keys of those that came to them."""
        for name, value in pairs:
            self.add(name, value)

    @classmethod
    def from_lines(cls, lines: bytes, shape: "Shape | None" = None) -> "Headers":
        """Take over lines that were checked, each `Name: value` with its CRLF, and a shape that has all their names."""
        headers = cls()
        headers._lines = lines
        headers._shape = shape
        return headers

    def to_lines(self) -> bytes:
        """Return the lines, each with its CRLF."""
        return self._lines

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return a field's value; of several all, joined by `, `."""
        key = _key(name)
        at = self._find(key, 0)
        if at < 0:
            return default
        value, end = self._value(at + len(key) - 1)
        return value if self._find(key, end) < 0 else ", ".join(self.get_all(name))

    def get_all(self, name: str) -> list[str]:
        """Return the values of all fields of a name, in their order."""
        key = _key(name)
        values = []
        at = self._find(key, 0)
        while at >= 0:
            value, end = self._value(at + len(key) - 1)
            values.append(value)
            at = self._find(key, end)
        return values

    def set(self, name: str, value: str) -> None:
        """Put one field in the place of all that have this name. Raises BadHeader."""
        line = _line(name, value)
        key = _key(name)
        at = self._find(key, 0)
        if at < 0:
            self._append(line, key)
            return
        lines = self._lines
        after = self._without(name, lines.index(b"\n", at) + 1)
        self._write(lines[:at] + line + after)

    def add(self, name: str, value: str) -> None:
        """Append a field; others of its name stay. Raises BadHeader."""
        self._append(_line(name, value), _key(name))

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
        if self._find(_key(name), 0) < 0:
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
        beginning = b"\n" + prefix
        shape = self._shape
        if shape is not None and not shape.names.has_any(beginning) and not self._has_added(beginning):
            return False
        return self._find_in_lines(beginning, 0) >= 0

    def __contains__(self, name: str) -> bool:
        return self._find(_key(name), 0) >= 0

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
        return any(key.startswith(beginning) or beginning.startswith(key) for key in self._added)

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
        key = _key(name)
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
        self._lines += lines
        if self._shape is not None:
            self._added.append(key)
        if self._folded is not None:
            self._folded += lines.lower()

    def _write(self, lines: bytes) -> None:
        self._lines = lines
        self._folded = None


def _line(name: str, value: str) -> bytes:
    # As `checked_value` does, without the call of interpreted code that it costs.
    checked = value.strip(" \t") if value.isascii() and value.isprintable() else checked_value(value)
    return b"%b%b\r\n" % (_begin(name), checked.encode("latin-1"))
