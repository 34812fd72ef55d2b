"""Values of parameters and forms as their schemas have them, out of the texts that requests bring.

https://spec.openapis.org/oas/v3.1.0#style-values
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from headgate.common.plugins.transformation.openapi import Parameter

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MAX_DIGITS: Final = 400
_DELIMITERS: Final = {"pipeDelimited": "|", "spaceDelimited": " "}
_BRACKETS: Final = re.compile(r"\[([^\]]*)\]")
_MAX_DEPTH: Final = 8
_TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}

Texts = Mapping[str, Sequence[str]]
"""Values by names, several of one name in their order."""


class Malformed(Exception):
    """A text that cannot be read; the exception's own text says why."""


def read_parameter(parameter: Parameter, given: Texts) -> Any:
    """Return the value of a parameter; None: the request has none. Raises Malformed."""
    schema = parameter.checked.schema if parameter.checked is not None else {}
    types = types_of(schema)
    if parameter.style == "deepObject" and parameter.place == "query":
        found = _deep_object(parameter.name, given, schema)
        return found if found or parameter.name not in given else coerced(given[parameter.name][0], schema)
    texts = given.get(parameter.name)
    if texts is None:
        is_spread = "object" in types and parameter.style == "form" and parameter.explode
        return _spread_object(given, schema) if is_spread else None
    if parameter.is_json:
        return _json(texts[0])
    if "array" in types:
        items = _inner(schema, "items")
        return [coerced(text, items) for text in _parts(parameter, texts)]
    if "object" in types:
        return _object(parameter, texts[0], schema)
    return coerced(texts[0], schema)


def read_form(fields: Texts, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a form."""
    properties = _inner(schema, "properties")
    made: dict[str, Any] = {}
    for name, texts in fields.items():
        inner = _inner(properties, name)
        if "array" in types_of(inner):
            made[name] = [coerced(text, _inner(inner, "items")) for text in texts]
        else:
            values = [coerced(text, inner) for text in texts]
            made[name] = values[0] if len(values) == 1 else values
    return made


def coerced(text: str, schema: Mapping[str, Any]) -> Any:
    """Return a text as the number or the truth that a schema wants, if it is one; else as it is."""
    types = types_of(schema)
    if types & {"integer", "number"} and len(text) <= _MAX_DIGITS and _NUMBER.fullmatch(text):
        return json.loads(text)
    if "boolean" in types and text in _TRUTHS:
        return _TRUTHS[text]
    return text


def types_of(schema: Any, depth: int = 0) -> frozenset[str]:
    """Return the types that a schema has a word of."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return frozenset()
    told = schema.get("type")
    types = {told} if isinstance(told, str) else {each for each in told or () if isinstance(each, str)}
    if not types:
        for word in ("anyOf", "oneOf", "allOf"):
            for inner in schema.get(word) or ():
                types |= types_of(inner, depth + 1)
    return frozenset(types)


def _parts(parameter: Parameter, texts: Sequence[str]) -> list[str]:
    """Return the members of a list."""
    if parameter.style == "form" and parameter.explode:
        return list(texts)
    delimiter = _DELIMITERS.get(parameter.style, ",")
    return [part for text in texts for part in text.split(delimiter)]


def _object(parameter: Parameter, text: str, schema: Mapping[str, Any]) -> Any:
    parts = text.split(",")
    if parameter.explode:
        pairs = [part.partition("=")[::2] for part in parts]
    else:
        pairs = list(zip(parts[::2], parts[1::2], strict=False))
    properties = _inner(schema, "properties")
    return {name: coerced(value, _inner(properties, name)) for name, value in pairs}


def _spread_object(given: Texts, schema: Mapping[str, Any]) -> Any:
    """Return an object whose fields are parameters themselves."""
    properties = _inner(schema, "properties")
    found = {name: coerced(given[name][0], _inner(properties, name)) for name in properties if name in given}
    return found or None


def _deep_object(name: str, given: Texts, schema: Mapping[str, Any]) -> Any:
    """Return an object whose fields are named `name[field]`, or `name[field][inner]`."""
    made: dict[str, Any] = {}
    for path, text in _deep_fields(name, given):
        holder, known = made, schema
        for step in path[:-1]:
            within = holder.setdefault(step, {})
            if not isinstance(within, dict):
                raise Malformed("a field is a text and an object")
            holder, known = within, _inner(_inner(known, "properties"), step)
        holder[path[-1]] = coerced(text, _inner(_inner(known, "properties"), path[-1]))
    return made or None


def _deep_fields(name: str, given: Texts) -> Iterator[tuple[list[str], str]]:
    for key, texts in given.items():
        if key.startswith(f"{name}["):
            path = _BRACKETS.findall(key[len(name) :])
            if not path or len(path) > _MAX_DEPTH:
                raise Malformed(f"a field is named otherwise than {name}[field], or deeper than {_MAX_DEPTH}")
            yield path, texts[0]


def _inner(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = schema.get(name)
    return found if isinstance(found, Mapping) else {}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("it is no JSON") from None
