"""Where a field of an object stands in the text of its file."""

import re
from collections.abc import Iterator
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
_END: Final = re.compile(r"^---(?:\s|$)", re.MULTILINE)


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
    lines = text.splitlines(keepends=True)[object_line - 1 :]
    rest = "".join(lines)
    if lines and lines[0].startswith("---"):
        rest = "\n" + "".join(lines[1:])
    end = _END.search(rest)
    steps = [inner or name for inner, name in _STEP.findall(field)]
    walk = _Walk(rest[: end.start()] if end else rest, object_line - 1)
    try:
        return walk.find(steps)
    except (yaml.YAMLError, StopIteration):
        return walk.best


class _Walk:
    """Goes down through a document's events, along one path."""

    def __init__(self, text: str, before: int) -> None:
        self._events = _events(text)
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


def _events(text: str) -> Iterator[Any]:
    parser = CParser(text)
    while (event := parser.get_event()) is not None:
        yield event
