"""Where a field of an object stands in the text of its file.

The parser gets the text line by line, as it asks for it: of a file with thousands of objects one is read each time.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.events import (
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[]+)")
_END: Final = re.compile(r"---(?:\s|$)")


class Span(NamedTuple):
    """A piece of one line."""

    line: int
    """From 1."""
    begin: int
    """Column, from 0."""
    end: int
    """Column behind it."""


class FieldPlace(NamedTuple):
    """Where a field stands, or the deepest field above it that is there."""

    line: int
    """From 1."""
    is_exact: bool
    """Whether it is the field itself."""
    name: Span | None = None
    """Its key; None of an item of a list."""
    value: Span | None = None
    """A plain value within one line, without quotes."""


def find_field(text: str, object_line: int, field: str) -> FieldPlace:
    """Return where a field stands.

    Args:
        text: of the file, which was read before.
        object_line: where the object begins, from 1.
        field: as problems name it: `spec.rules[0].host`, `metadata.annotations[a.example/b]`.
    """
    steps = [inner or name for inner, name in _STEP.findall(field)]
    walk = _Walk(DocumentText(lines_of(text), object_line - 1), object_line - 1)
    try:
        return walk.find(steps)
    except (yaml.YAMLError, StopIteration):
        return walk.best


@lru_cache(maxsize=4)
def lines_of(text: str) -> Sequence[str]:
    """Return the lines of a text with their ends; those of the last texts are kept."""
    return text.splitlines(keepends=True)


class DocumentText:
    """A document from a line on, as the parser reads it."""

    def __init__(self, lines: Sequence[str], begin: int) -> None:
        self._lines, self._begin, self._next = lines, begin, begin

    def read(self, _: int = -1, /) -> str:
        """Return the next line, however long; nothing at the end."""
        if self._next >= len(self._lines):
            return ""
        line, is_first = self._lines[self._next], self._next == self._begin
        if is_first and line.startswith("---"):
            line = "\n"
        elif _END.match(line):
            return ""
        self._next += 1
        return line


class _Walk:
    """Goes down through a document's events, along one path."""

    def __init__(self, document: DocumentText, before: int) -> None:
        self._events = _events(document)
        self._before = before
        self.best = FieldPlace(before + 1, is_exact=False)

    def find(self, steps: list[str]) -> FieldPlace:
        event = next(self._events)
        while not isinstance(event, MappingStartEvent):
            event = next(self._events)  # the beginning of the stream, or of a List's items
        name: Span | None = None
        while steps:
            step = steps[0]
            if isinstance(event, MappingStartEvent):
                found = self._key(steps)
            elif isinstance(event, SequenceStartEvent) and step.isdecimal():
                found = self._item(int(step)), None, 1
            else:
                return self.best
            if found[0] is None:
                return self.best
            event, name, taken = found
            del steps[:taken]
            line = name.line if name is not None else self._before + event.start_mark.line + 1
            self.best = FieldPlace(line, is_exact=not steps, name=name, value=self._span(event))
        return self.best

    def _key(self, steps: list[str]) -> tuple[Any, Span | None, int]:
        """Return the value of a key with how many steps it is: names may have dots in them."""
        wanted = {".".join(steps[:count]): count for count in range(1, len(steps) + 1)}
        while not isinstance(key := next(self._events), MappingEndEvent):
            self._skip(key)
            value = next(self._events)
            if isinstance(key, ScalarEvent) and key.value in wanted:
                return value, self._span(key), wanted[key.value]
            self._skip(value)
        return None, None, 0

    def _item(self, number: int) -> Any:
        for _ in range(number):
            event = next(self._events)
            if isinstance(event, SequenceEndEvent):
                return None
            self._skip(event)
        event = next(self._events)
        return None if isinstance(event, SequenceEndEvent) else event

    def _skip(self, event: Any) -> None:
        """Pass over the rest of what an event begins."""
        depth = 0
        while True:
            if isinstance(event, MappingStartEvent | SequenceStartEvent):
                depth += 1
            elif isinstance(event, MappingEndEvent | SequenceEndEvent):
                depth -= 1
            if depth <= 0:
                return
            event = next(self._events)

    def _span(self, event: Any) -> Span | None:
        if not isinstance(event, ScalarEvent) or event.anchor or event.tag:
            return None
        marks: tuple[Any, Any] = event.start_mark, event.end_mark
        begin, end = marks
        if begin.line != end.line:
            return None
        quote = 1 if event.style in ("'", '"') else 0
        return Span(self._before + begin.line + 1, begin.column + quote, end.column - quote)


def _events(document: DocumentText) -> Iterator[Any]:
    parser = CParser(document)
    while (event := parser.get_event()) is not None:
        yield event
