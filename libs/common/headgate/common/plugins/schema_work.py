"""How much work a JSON Schema makes for each value that it is compared with.

References can make it exponential: twenty definitions of which each names the next one twice are a million comparisons
for one value, and a definition that names itself twice makes two for each level of a body. So references are followed
here, each time, and what a schema has in all is bounded; of references in a circle no two may apply to one value.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

MAX_SIZE: Final = 2_000
"""Schemas and keywords within, each counted as often as references lead to it."""
MAX_WORK: Final = 50_000_000
"""Size of a schema times bytes of a body: at worst about a second."""
_MAX_DEPTH: Final = 100
_MAX_CIRCULAR: Final = 100
_NO_SCHEMAS: Final = frozenset(
    ("enum", "const", "default", "examples", "required", "definitions", "$defs", "title", "description", "type")
)
_BY_NAME: Final = frozenset(("dependentSchemas", "dependencies"))
_OF_ITEMS: Final = frozenset(("items", "additionalItems", "contains", "unevaluatedItems"))
_OF_PROPERTIES: Final = frozenset(("additionalProperties", "unevaluatedProperties"))
_OTHER_REFERENCES: Final = ("$dynamicRef", "$recursiveRef")
_SHOWN: Final = 80

_Place = tuple[str, str | int | None]
"""Of a value within another: `p` and a name, `i` and an index; None is any."""


def schema_size(schema: Mapping[str, Any]) -> int:
    """Return how many keywords a value is compared with at most. Raises ValueError: too many, or without end."""
    walk = _Walk(schema)
    walk.count(schema, ())
    walk.check_circles()
    return walk.size


class _Overlap:
    """How many references of a circle apply to a value, and to the values within."""

    __slots__ = ("count", "within")

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self.within: dict[_Place, _Overlap] = {}

    def add(self, other: "_Overlap") -> None:
        """Take what applies besides."""
        self.count += other.count
        for place, inner in other.within.items():
            self.add_within(place, inner)

    def add_within(self, place: _Place, inner: "_Overlap") -> None:
        """Take what applies besides to a value within."""
        if inner.count or inner.within:
            self.within.setdefault(place, _Overlap()).add(inner)

    def most(self) -> int:
        """Return the most for any one value."""
        counts = [self.count]
        for place, inner in self.within.items():
            joined = _Overlap()
            joined.add(inner)
            anywhere = self.within.get((place[0], None))
            if place[1] is not None and anywhere is not None:
                joined.add(anywhere)
            counts.append(joined.most())
        return max(counts)


class _Walk:
    """Goes through a document as a value would be compared, references followed each time."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._circular: set[str] = set()
        """References that lead back to themselves."""
        self.size = 0

    def count(self, node: Any, path: tuple[str, ...], depth: int = 0) -> None:
        """Count the keywords of a part, reached by the references in `path`. Raises ValueError."""
        if depth > _MAX_DEPTH:
            raise ValueError(f"must be nested at most {_MAX_DEPTH} deep, references followed")
        self.size += 1
        if self.size > MAX_SIZE:
            raise ValueError(f"is too large: it must have at most {MAX_SIZE} keywords, references followed each time")
        if isinstance(node, list):
            for each in node:
                self.count(each, path, depth + 1)
        elif isinstance(node, dict):
            if depth and isinstance(node.get("$id"), str):
                raise ValueError("must not have a $id within; references are pointers: #/definitions/NAME")
            for key, value in node.items():
                if key == "$ref" and isinstance(value, str):
                    self._follow(value, path, depth)
                elif key in _OTHER_REFERENCES:
                    raise ValueError(f"must not have {key}; references are $ref with a pointer: #/definitions/NAME")
                elif key not in _NO_SCHEMAS:
                    self.count(value, path, depth + 1)

    def _follow(self, reference: str, path: tuple[str, ...], depth: int) -> None:
        if reference in path:
            self._circular.update(path[path.index(reference) :])
        else:
            self.count(self._resolve(reference), (*path, reference), depth + 1)

    def check_circles(self) -> None:
        """Look for circles that make more work at each level of a body. Raises ValueError."""
        if len(self._circular) > _MAX_CIRCULAR:
            raise ValueError(f"must have at most {_MAX_CIRCULAR} references that lead back to themselves")
        for reference in sorted(self._circular):
            if self._overlap(self._resolve(reference)).most() > 1:
                raise ValueError(
                    f"has references in a circle by {reference[:_SHOWN]!r} of which several apply to one value: "
                    "each level of a body would double the work"
                )

    def _resolve(self, reference: str) -> Any:
        if not reference.startswith("#") or (reference[1:] and not reference.startswith("#/")):
            raise ValueError(f"has the reference {reference[:_SHOWN]!r}; it must be a pointer: #/definitions/NAME")
        found: Any = self._document
        for step in reference[1:].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise ValueError(f"has the reference {reference[:_SHOWN]!r}, which leads nowhere")
        return found

    def _overlap(self, node: Any) -> _Overlap:
        """Find where circular references apply, relative to the value that a schema is for."""
        found = _Overlap()
        if isinstance(node, list):
            for each in node:
                found.add(self._overlap(each))
        elif isinstance(node, dict):
            for key, value in node.items():
                if key == "$ref":
                    found.count += value in self._circular
                elif key not in _NO_SCHEMAS:
                    self._add_keyword(found, key, value)
        return found

    def _add_keyword(self, found: _Overlap, key: str, value: Any) -> None:
        if key == "properties" and isinstance(value, dict):
            for name, inner in value.items():
                found.add_within(("p", name), self._overlap(inner))
        elif key in ("items", "prefixItems") and isinstance(value, list):
            for index, inner in enumerate(value):
                found.add_within(("i", index), self._overlap(inner))
        elif key in _OF_ITEMS:
            found.add_within(("i", None), self._overlap(value))
        elif key in _OF_PROPERTIES:
            found.add_within(("p", None), self._overlap(value))
        elif key == "patternProperties" and isinstance(value, dict):
            for inner in value.values():
                found.add_within(("p", None), self._overlap(inner))
        elif key in _BY_NAME and isinstance(value, dict):
            for inner in value.values():
                found.add(self._overlap(inner))
        else:
            found.add(self._overlap(value))
