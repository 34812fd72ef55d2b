"""Header fields as plugins see them: ordered, names in any case, several values of one name.

Fields are read from the lines of a checked head only when a plugin looks at one, and the lines go on as they are while
none changes anything. Whatever is put in is checked, so no plugin and no value that a plugin copies from a client can
split a message, end a head early or change where a body ends.

Values are text of the bytes 0 to 255, as they stand on the wire (ISO 8859-1).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import AfterValidator

from headgate.gateway.proxy.grammar import TOKEN

_NAME = re.compile(TOKEN.decode() + "++")
_VALUE = re.compile("[\t\x20-\x7e\x80-\xff]*+")
_OWN = frozenset(
    {
        "connection",
        "content-length",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class BadHeader(ValueError):
    """A name or a value that must not stand in a head; the text says which and why."""


def is_reserved(name: str) -> bool:
    """Say whether a field is written by the gateway alone: Host and all that frames a message or belongs to one hop."""
    return name.lower() in _OWN


def checked_name(name: str) -> str:
    """Return a field's name if plugins may set it. Raises BadHeader."""
    if not _NAME.fullmatch(name):
        raise BadHeader(f"{name[:80]!r} is not the name of a header: letters, digits and !#$%&'*+-.^_`|~ only")
    if name.lower() in _OWN:
        raise BadHeader(f"header {name} is written by the gateway alone")
    return name


def checked_value(value: str) -> str:
    """Return a field's value without the spaces around it, if it has no control characters. Raises BadHeader."""
    if not _VALUE.fullmatch(value):
        raise BadHeader("a header's value has no line breaks, no control characters and no characters above U+00FF")
    return value.strip(" \t")


def configured_value(text: str) -> str:
    """Turn what a user wrote into a value: characters beyond ASCII go out as UTF-8. Raises BadHeader."""
    return checked_value(text.encode("utf-8").decode("latin-1"))


HeaderName = Annotated[str, AfterValidator(checked_name)]
"""In a plugin's configuration: the name of a header that is set."""
HeaderValue = Annotated[str, AfterValidator(configured_value)]
"""In a plugin's configuration: the value of a header."""

_Field = tuple[str, str, str]
"""Name in lower case, name as written, value."""


class Headers:
    """The fields of one head, without Host and those that frame the message."""

    __slots__ = ("_fields", "_lines")

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._lines: bytes | None = None
        self._fields: list[_Field] | None = []
        for name, value in pairs:
            self.add(name, value)

    @classmethod
    def from_lines(cls, lines: bytes) -> "Headers":
        """Take over lines that were checked, each `Name: value` with its CRLF."""
        headers = cls.__new__(cls)
        headers._lines = lines
        headers._fields = None
        return headers

    def to_lines(self) -> bytes:
        """Return the lines, each with its CRLF."""
        if self._lines is None:
            self._lines = "".join(f"{name}: {value}\r\n" for _, name, value in self._read()).encode("latin-1")
        return self._lines

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return a field's value; of several all, joined by `, `."""
        values = self.get_all(name)
        return ", ".join(values) if values else default

    def get_all(self, name: str) -> list[str]:
        """Return the values of all fields of a name, in their order."""
        lower = name.lower()
        return [value for key, _, value in self._read() if key == lower]

    def set(self, name: str, value: str) -> None:
        """Put one field in the place of all that have this name. Raises BadHeader."""
        field = (name.lower(), checked_name(name), checked_value(value))
        fields = self._read()
        place = next((index for index, known in enumerate(fields) if known[0] == field[0]), len(fields))
        kept = [known for known in fields[place:] if known[0] != field[0]]
        self._write([*fields[:place], field, *kept])

    def add(self, name: str, value: str) -> None:
        """Append a field; others of its name stay. Raises BadHeader."""
        self._write([*self._read(), (name.lower(), checked_name(name), checked_value(value))])

    def remove(self, name: str) -> bool:
        """Take all fields of a name away; tell whether there were any."""
        lower = name.lower()
        fields = self._read()
        kept = [field for field in fields if field[0] != lower]
        if len(kept) == len(fields):
            return False
        self._write(kept)
        return True

    def replace_all(self, other: "Headers") -> None:
        """Become a copy of others."""
        self._lines = other._lines
        self._fields = None if other._fields is None else other._fields[:]

    def copy(self) -> "Headers":
        """Return the same fields, to be changed apart."""
        headers = Headers()
        headers.replace_all(self)
        return headers

    def add_to_list(self, name: str, member: str) -> None:
        """Add a member to a comma-separated field, as `Vary`, unless it is there in any case. Raises BadHeader."""
        present = self.get(name)
        if present is None:
            self.set(name, member)
        elif member.lower() not in (part.strip().lower() for part in present.split(",")):
            self.set(name, f"{present}, {member}")

    def __contains__(self, name: str) -> bool:
        lower = name.lower()
        return any(key == lower for key, _, _ in self._read())

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter([(name, value) for _, name, value in self._read()])

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return f"Headers({[name for _, name, _ in self._read()]})"

    def _read(self) -> list[_Field]:
        fields = self._fields
        if fields is None:
            assert self._lines is not None
            fields = []
            for line in self._lines.decode("latin-1").split("\r\n")[:-1]:
                name, _, value = line.partition(":")
                fields.append((name.lower(), name, value.strip(" \t")))
            self._fields = fields
        return fields

    def _write(self, fields: list[_Field]) -> None:
        self._fields = fields
        self._lines = None
