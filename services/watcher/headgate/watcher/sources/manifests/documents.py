"""The text of a manifest file as plain values, read the way kubectl reads it.

kubectl turns YAML into JSON before anything looks at types, so this reader does the same and knows no schema: YAML
1.1 words (`yes`, `on`, `y`) are booleans, `1.10` is the number 1.1, timestamps stay text, keys that are numbers or
booleans become text, and what JSON cannot say (NaN, bytes, tags of one's own) is refused. Twice the same key in a
mapping is refused too. As in kubectl's parser `1:30` is text, not the base-60 number of YAML 1.1.

Values are built from libyaml's events, not from PyYAML's nodes: that is as quick as CSafeLoader, keeps line
numbers, and its recursion is ours to bound (PyYAML's composer overflows the C stack on deep nesting).
"""

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec
import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from headgate.watcher.sources.manifests.scalars import MERGE, number, plain

MAX_DEPTH = 100
"""Mappings and sequences within each other."""
MAX_ALIASED_NODES = 100_000
"""Values that aliases may add to one file."""
_LINED_DEPTH = 2
"""Mappings down to the items of a List have their line kept."""

_MOST_KNOWN = 1000
"""Keys, and unquoted values, of a stream that are remembered: most documents have the same keys, and many of the same
values."""
_UNKNOWN = object()
_TAG = "tag:yaml.org,2002:"
_KIND = re.compile(r"^kind: *([A-Za-z]{1,63})", re.MULTILINE)
_METADATA = re.compile(r"^metadata: *\n((?:[ ]+.*\n)+)", re.MULTILINE)
_NAMES = re.compile(r"^ {1,4}(namespace|name): *[\"']?([-.a-z0-9]{1,253})", re.MULTILINE)
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)


class Document(msgspec.Struct, frozen=True, gc=False):
    """One document of a file."""

    value: Any
    line: int
    """Where it begins, from 1."""
    lines: dict[int, int]
    """`id()` of the mappings near its top, to the line where each begins; empty for JSON."""


@dataclass(frozen=True, slots=True)
class BadDocument:
    """A document that is not readable."""

    line: int
    reason: str
    message: str
    object: str = "document"
    """`Ingress default/web`, as far as its text shows that."""


class _Refused(Exception):
    def __init__(self, line: int, message: str, reason: str = "InvalidSyntax") -> None:
        super().__init__(message)
        self.bad = BadDocument(line, reason, message)


def read_documents(text: str) -> tuple[list[Document], list[BadDocument]]:
    """Read a file of YAML or JSON documents; what is wrong with one does not hide the others."""
    if text.lstrip()[:1] == "{":
        try:
            return list(_json_documents(text)), []
        except json.JSONDecodeError as error:
            broken = BadDocument(error.lineno, "InvalidSyntax", f"not JSON: {error.msg} (column {error.colno})")
        except _Refused as error:
            return [], [error.bad]
        except RecursionError:
            return [], [BadDocument(1, "TooDeep", f"nested deeper than {MAX_DEPTH}")]
        documents, bad = _yaml_by_document(text)  # flow mappings of YAML begin with a brace too
        return (documents, bad) if not bad else ([], [broken])
    try:
        return list(_Builder(text).documents()), []
    except _Refused:
        return _yaml_by_document(text)


def _yaml_by_document(text: str) -> tuple[list[Document], list[BadDocument]]:
    """Cut at the separators first, as kubectl does, so that one bad document spoils only itself."""
    documents: list[Document] = []
    bad: list[BadDocument] = []
    starts = [0, *(found.start() for found in _SEPARATOR.finditer(text)), len(text)]
    line = 0
    for begin, end in itertools.pairwise(starts):
        try:
            documents += _Builder(text[begin:end], line).documents()
        except _Refused as error:
            bad.append(dataclasses.replace(error.bad, object=_guess_object(text[begin:end])))
        line += text.count("\n", begin, end)
    return documents, bad


def _guess_object(text: str) -> str:
    """Name the object that a broken document is probably about."""
    kind, metadata = _KIND.search(text), _METADATA.search(text)
    found = dict(_NAMES.findall(metadata[1])) if metadata else {}
    name = "/".join(found[part] for part in ("namespace", "name") if part in found)
    return " ".join(part for part in (kind[1] if kind else "document", name) if part)


class _Builder:
    """Builds the values of one stream of YAML from its events."""

    def __init__(self, text: str, line_offset: int = 0) -> None:
        self._text = text
        self._offset = line_offset + 1
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._lines: dict[int, int] = {}
        self._keys: set[str] = set()
        self._scalars: dict[str, Any] = {}
        self._count = 0
        self._aliased = 0

    def documents(self) -> Iterator[Document]:
        try:
            self._next: Callable[[], Any] = CParser(self._text).get_event
            while not isinstance(event := self._next(), StreamEndEvent):
                if isinstance(event, DocumentStartEvent):
                    self._anchors, self._lines = {}, {}
                    first = self._next()
                    value = self._value(first, 0)
                    yield Document(value, self._line(first), self._lines)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise _Refused(mark.line + self._offset if mark else self._offset, f"not YAML: {error.problem}") from None
        except yaml.YAMLError as error:  # characters that YAML does not allow
            raise _Refused(self._offset, f"not YAML: {getattr(error, 'reason', 'unreadable')}") from None

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + self._offset

    def _value(self, event: Any, depth: int) -> Any:
        kind = type(event)
        if kind is ScalarEvent:
            return self._scalar(event)
        if kind is AliasEvent:
            return self._alias(event)
        if depth > MAX_DEPTH:
            raise _Refused(self._line(event), f"nested deeper than {MAX_DEPTH}", "TooDeep")
        before = self._count
        value = self._mapping(event, depth) if kind is MappingStartEvent else self._sequence(event, depth)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._count - before + 1)
        return value

    def _mapping(self, start: Any, depth: int) -> dict[str, Any]:
        if start.tag is not None:
            self._check_tag(start, "map")
        result: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        read, keys, scalars = self._next, self._keys, self._scalars
        while type(event := read()) is not MappingEndEvent:
            # Most keys and values are unquoted scalars that were read before: these need no call.
            if type(event) is not ScalarEvent or event.anchor or event.tag or (key := event.value) not in keys:
                key = self._key(event)
                if key is MERGE:
                    merged += self._merge_sources(event, self._value(read(), depth + 1))
                    continue
            inner = read()
            if type(inner) is not ScalarEvent or inner.anchor or inner.tag or not inner.implicit[0]:
                value = self._value(inner, depth + 1)
            elif (value := scalars.get(inner.value, _UNKNOWN)) is _UNKNOWN:
                value = self._scalar(inner)
            if key in result:
                raise _Refused(self._line(event), f"the key {key!r} stands twice in one mapping", "DuplicateKey")
            result[key] = value
        self._count += 2 * len(result)
        for source in merged:
            for name, value in source.items():
                result.setdefault(name, value)
        if depth <= _LINED_DEPTH:
            self._lines[id(result)] = start.start_mark.line + self._offset
        return result

    def _sequence(self, start: Any, depth: int) -> list[Any]:
        if start.tag is not None:
            self._check_tag(start, "seq")
        result = []
        while type(event := self._next()) is not SequenceEndEvent:
            result.append(self._value(event, depth + 1))
        self._count += len(result)
        return result

    def _merge_sources(self, event: Any, value: Any) -> list[dict[str, Any]]:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise _Refused(self._line(event), "<< needs a mapping or a list of mappings")
        self._count += 1
        return sources

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise _Refused(self._line(event), "an alias refers to an anchor that is not before it")
        value, size = self._anchors[event.anchor]
        self._count += size
        self._aliased += size
        if self._aliased > MAX_ALIASED_NODES:
            raise _Refused(self._line(event), f"aliases expand to more than {MAX_ALIASED_NODES} values", "TooLarge")
        return value

    def _key(self, event: Any) -> Any:
        if type(event) is AliasEvent:
            return self._as_key(event, self._alias(event))
        if type(event) is not ScalarEvent:
            raise _Refused(self._line(event), "a key must be text")
        if event.value == "<<" and event.implicit[0]:
            return MERGE
        key = self._as_key(event, self._scalar(event))
        if plain(event.value) == key and len(self._keys) < _MOST_KNOWN:  # the same with quotes and without
            self._keys.add(key)
        return key

    def _as_key(self, event: Any, value: Any) -> str:
        if isinstance(value, str):
            return value
        if value is None or isinstance(value, (dict, list)):
            raise _Refused(self._line(event), "a key must be text")
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)

    def _scalar(self, event: Any) -> Any:
        is_plain = event.implicit[0] and event.tag is None
        value = plain(event.value) if is_plain else self._quoted_or_tagged(event)
        if value is MERGE:
            value = "<<"
        elif type(value) is float and not math.isfinite(value):
            raise _Refused(self._line(event), f"{event.value[:40]} is not a number that JSON can say", "InvalidNumber")
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        if is_plain and len(self._scalars) < _MOST_KNOWN:
            self._scalars[event.value] = value
        return value

    def _quoted_or_tagged(self, event: Any) -> Any:
        tag = event.tag
        if tag in (None, "!", _TAG + "str", _TAG + "timestamp"):
            return event.value
        if tag in (_TAG + "int", _TAG + "float", _TAG + "bool", _TAG + "null"):
            return plain(event.value)
        raise self._bad_tag(event)

    def _check_tag(self, event: Any, expected: str) -> None:
        if event.tag not in (None, "!", _TAG + expected):
            raise self._bad_tag(event)

    def _bad_tag(self, event: Any) -> _Refused:
        # A tag of one's own may be a secret that lacks quotes: it is not shown.
        tag = event.tag.replace(_TAG, "!!") if event.tag.startswith(_TAG) else "of one's own"
        return _Refused(self._line(event), f"a tag {tag} says what JSON cannot", "InvalidTag")


def _json_documents(text: str) -> Iterator[Document]:
    position = 0
    while (position := _skip_space(text, position)) < len(text):
        line = text.count("\n", 0, position) + 1
        value, position = _JSON.raw_decode(text, position)
        if _depth_exceeds(value, MAX_DEPTH):
            raise _Refused(line, f"nested deeper than {MAX_DEPTH}", "TooDeep")
        yield Document(value, line, {})


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _depth_exceeds(value: Any, limit: int) -> bool:
    if limit < 0:
        return True
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_depth_exceeds(child, limit - 1) for child in children)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(1, f"the key {twice!r} stands twice in one object", "DuplicateKey")
    return result


def _json_number(text: str) -> int | float:
    value = number(text)
    return _not_json(text) if isinstance(value, str) else value


def _not_json(text: str) -> NoReturn:
    raise _Refused(1, f"{text[:40]} is not a number that JSON can say", "InvalidNumber")


_JSON = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_not_json, parse_float=_json_number, parse_int=_json_number
)
