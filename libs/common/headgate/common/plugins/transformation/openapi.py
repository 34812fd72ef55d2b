"""An OpenAPI document (3.0 and 3.1, in JSON) as far as requests are compared with it: operations by path and method.

https://spec.openapis.org/oas/v3.1.0. Schemas of 3.0 become JSON Schemas of draft 7, those of 3.1 are of draft 2020-12.
References are pointers within the document.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from headgate.common.patterns import Pattern, compile_pattern
from headgate.common.plugins.schema_work import schema_size
from headgate.common.plugins.transformation.discriminators import with_discriminators
from headgate.common.plugins.transformation.request_validation import compile_schema

MAX_OPERATIONS: Final = 500
MAX_SIZE: Final = 20_000
"""Keywords of all schemas together, references followed each time."""
_METHODS: Final = frozenset(("get", "put", "post", "delete", "options", "head", "patch", "trace"))
_NOT_CHECKED: Final = frozenset(("accept", "content-type", "authorization"))
"""Headers that the standard has ignored as parameters."""
_NAME: Final = re.compile(r"\{([^{}]+)\}")
_MAX_DEPTH: Final = 100
_SCHEMAS: Final = "#/components/schemas/"


class Checked(NamedTuple):
    """What a value is compared with."""

    schema: Mapping[str, Any]
    """As it stands in the document, its own reference followed."""
    validator: Any
    size: int
    """Keywords, references followed."""


class Parameter(NamedTuple):
    """A parameter of an operation."""

    name: str
    place: str
    """`path`, `query` or `header`."""
    is_required: bool
    style: str
    explode: bool
    is_json: bool
    """Its value is JSON, not text of a style."""
    checked: Checked | None


class Body(NamedTuple):
    """The body of an operation."""

    is_required: bool
    content: Mapping[str, Checked | None]
    """By media types in lower case."""


class Operation(NamedTuple):
    """What a method does at a path."""

    path: str
    segments: tuple["str | Segment", ...]
    parameters: tuple[Parameter, ...]
    body: Body | None


class Segment(NamedTuple):
    """A part of a path with parameters."""

    names: tuple[str, ...]
    pattern: Pattern | None
    """None: the only parameter is all of it."""


class OpenApi:
    """A document. Raises ValueError for one that is not followed."""

    def __init__(self, text: str) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is no JSON: {str(error)[:100]}") from None
        version = document.get("openapi") if isinstance(document, dict) else None
        if not isinstance(version, str) or not version.startswith(("3.0", "3.1")):
            raise ValueError("has no openapi: 3.0 and 3.1 are followed")
        self._document: dict[str, Any] = document
        self._is_old = version.startswith("3.0")
        self._size = 0
        self._compiled: dict[str, Checked] = {}
        self.operations: dict[tuple[str, int], list[Operation]] = {}
        """By method and number of segments; those with fewer parameters come first."""
        for method, operation in self._read():
            self.operations.setdefault((method, len(operation.segments)), []).append(operation)
        for found in self.operations.values():
            found.sort(key=lambda each: sum(isinstance(part, Segment) for part in each.segments))

    def _read(self) -> Iterator[tuple[str, Operation]]:
        bases = self._bases()
        count = 0
        for path, written in _object(self._document.get("paths")).items():
            item = self._resolved(written)
            for method in _METHODS.intersection(item):
                count += len(bases)
                if count > MAX_OPERATIONS:
                    raise ValueError(f"has more than {MAX_OPERATIONS} operations, counted for each of its servers")
                try:
                    parameters, body = self._parameters(item, item[method]), self._body(item[method])
                except ValueError as error:
                    raise ValueError(f"paths.{path}.{method}: {error}") from None
                for base in bases:
                    yield method.upper(), Operation(path, _segments(base + path), parameters, body)

    def _bases(self) -> list[str]:
        """Return the paths of the document's servers."""
        bases = []
        servers = self._document.get("servers")
        for server in servers if isinstance(servers, list) else ():
            url = server.get("url") if isinstance(server, dict) else None
            if isinstance(url, str):
                variables = _object(server.get("variables"))
                known = {name: str(_object(value).get("default", "")) for name, value in variables.items()}
                url = _NAME.sub(lambda found, known=known: known.get(found[1], ""), url)  # type: ignore[misc]
                bases.append(urlsplit(url).path.rstrip("/"))
        return list(dict.fromkeys(bases)) or [""]

    def _parameters(self, item: Mapping[str, Any], operation: Any) -> tuple[Parameter, ...]:
        found: dict[tuple[str, str], Parameter] = {}
        for holder in (item, _object(operation)):
            listed = holder.get("parameters")
            for written in listed if isinstance(listed, list) else ():
                one = self._resolved(written)
                name, place = one.get("name"), one.get("in")
                if not isinstance(name, str) or place not in ("path", "query", "header"):
                    continue
                if place != "header" or name.lower() not in _NOT_CHECKED:
                    found[name, place] = self._parameter(name, place, one)
        return tuple(found.values())

    def _parameter(self, name: str, place: str, written: Mapping[str, Any]) -> Parameter:
        media = _object(written.get("content")).get("application/json")
        schema = written.get("schema") if media is None else _object(media).get("schema")
        style = written.get("style") or ("form" if place == "query" else "simple")
        return Parameter(
            name,
            place,
            is_required=bool(written.get("required")) or place == "path",
            style=str(style),
            explode=bool(written.get("explode", style == "form")),
            is_json=media is not None,
            checked=self._checked(schema) if schema is not None else None,
        )

    def _body(self, operation: Any) -> Body | None:
        written = _object(operation).get("requestBody")
        if written is None:
            return None
        body = self._resolved(written)
        content = {}
        for kind, media in _object(body.get("content")).items():
            schema = _object(media).get("schema")
            content[kind.partition(";")[0].strip().lower()] = self._checked(schema) if schema is not None else None
        return Body(bool(body.get("required")), content)

    def _checked(self, schema: Any) -> Checked:
        """Compile a schema, with those that it refers to."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self._compiled:
            made = self._written(schema)
            needed = {name: self._schema(name) for name in self._reachable(made)}
            whole: dict[str, Any] = {"allOf": [made], "components": {"schemas": needed}}
            if not self._is_old:
                whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
            size = schema_size({"allOf": [made], "components": {"schemas": needed}})
            self._size += size
            if self._size > MAX_SIZE:
                raise ValueError(f"all schemas together have more than {MAX_SIZE} keywords, references followed")
            self._compiled[key] = Checked(self._resolved(schema), compile_schema(whole), size)
        return self._compiled[key]

    def _schema(self, name: str) -> Any:
        return self._written(self._find(f"{_SCHEMAS}{name}"))

    def _written(self, schema: Any) -> Any:
        """Return a schema as JSON Schema has it."""
        made = with_discriminators(schema, _SCHEMAS)
        return _as_json_schema(made) if self._is_old else made

    def _reachable(self, schema: Any) -> set[str]:
        """Return the names of schemas that one leads to."""
        names: set[str] = set()
        left = [schema]
        while left:
            for reference in _references(left.pop()):
                if not reference.startswith(_SCHEMAS) or "/" in reference[len(_SCHEMAS) :]:
                    raise ValueError(f"the reference {reference[:80]!r} does not begin with {_SCHEMAS}")
                name = _unescaped(reference[len(_SCHEMAS) :])
                if name not in names:
                    names.add(name)
                    left.append(self._find(reference))
        return names

    def _resolved(self, written: Any) -> Mapping[str, Any]:
        """Return an object, or what it refers to."""
        for _ in range(_MAX_DEPTH):
            reference = written.get("$ref") if isinstance(written, dict) else None
            if not isinstance(reference, str):
                return _object(written)
            written = self._find(reference)
        raise ValueError("has references in a circle")

    def _find(self, reference: str) -> Any:
        found: Any = self._document
        if not reference.startswith("#/"):
            raise ValueError(f"has the reference {reference[:80]!r}; it must be a pointer: #/components/…")
        for step in reference[2:].split("/"):
            name = _unescaped(step)
            if not isinstance(found, dict) or name not in found:
                raise ValueError(f"has the reference {reference[:80]!r}, which leads nowhere")
            found = found[name]
        return found


def _unescaped(step: str) -> str:
    return unquote(step).replace("~1", "/").replace("~0", "~")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _references(node: Any, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise ValueError(f"is nested more than {_MAX_DEPTH} deep")
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield reference
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _references(inner, depth + 1)


def _as_json_schema(node: Any, depth: int = 0) -> Any:
    """Return a schema of OpenAPI 3.0 as one of draft 7: `nullable` and exclusive bounds are written otherwise."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"is nested more than {_MAX_DEPTH} deep")
    if isinstance(node, list):
        return [_as_json_schema(each, depth + 1) for each in node]
    if not isinstance(node, dict):
        return node
    made = {
        name: value if name in ("enum", "default", "example") else _as_json_schema(value, depth + 1)
        for name, value in node.items()
        if name not in ("nullable", "example", "discriminator", "xml", "externalDocs")
    }
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(exclusive), bool):
            is_exclusive = made.pop(exclusive)
            if is_exclusive and bound in made:
                made[exclusive] = made.pop(bound)
    return {"anyOf": [made, {"type": "null"}]} if node.get("nullable") is True else made


def _segments(path: str) -> tuple[str | Segment, ...]:
    """Read a path with `{name}` in it."""
    return tuple(_segment(part) for part in path.strip("/").split("/"))


def _segment(text: str) -> str | Segment:
    names = tuple(_NAME.findall(text))
    if not names:
        return text
    if text == f"{{{names[0]}}}":
        return Segment(names, None)
    literals = (re.escape(part) for part in _NAME.sub("\0", text).split("\0"))
    return Segment(names, compile_pattern("(.+?)".join(literals), captures=True))
