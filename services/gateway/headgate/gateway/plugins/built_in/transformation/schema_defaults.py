"""The defaults of a JSON Schema, put into values that lack them, as Apache APISIX does.

A property that is absent gets the `default` of its schema, at any depth and in each member of a list; objects that are
absent themselves are not made. `$ref` and `allOf` are followed.
"""

import copy
import json
from typing import Any, Final
from urllib.parse import unquote

from headgate.gateway.proxy.errors import BodyTooLarge

MAX_ADDED: Final = 8 << 20
"""Bytes of JSON that defaults may add to one body: each member of a list may get them."""


class Defaults:
    """The defaults of one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self.is_empty = not _has_default(schema)

    def fill(self, value: Any) -> bool:
        """Put what is absent into a value, in place; tell whether anything was.

        Raises:
            BodyTooLarge: it would become longer by more than `MAX_ADDED` bytes.
        """
        filling = _Filling(self._schema)
        filling.fill(self._schema, value)
        return filling.has_filled


class _Filling:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._left = MAX_ADDED
        self.has_filled = False

    def fill(self, schema: Any, value: Any) -> None:
        if not isinstance(schema, dict):
            return
        reference = schema.get("$ref")
        if isinstance(reference, str):
            self.fill(_resolve(self._document, reference), value)
        for part in schema.get("allOf") or ():
            self.fill(part, value)
        properties, items = schema.get("properties"), schema.get("items")
        if isinstance(value, dict) and isinstance(properties, dict):
            for name, inner in properties.items():
                if name in value:
                    self.fill(inner, value[name])
                elif isinstance(inner, dict) and "default" in inner:
                    value[name] = self._copied(inner["default"])
        elif isinstance(value, list) and isinstance(items, dict):
            for member in value:
                self.fill(items, member)

    def _copied(self, default: Any) -> Any:
        self._left -= len(json.dumps(default))
        if self._left < 0:
            raise BodyTooLarge(f"defaults add more than {MAX_ADDED} bytes to the body")
        self.has_filled = True
        return copy.deepcopy(default)


def _resolve(document: Any, reference: str) -> Any:
    """Follow a pointer, which was checked with the schema."""
    found = document
    for step in reference[1:].split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        found = found[int(name)] if isinstance(found, list) else found[name]
    return found


def _has_default(schema: Any) -> bool:
    left = [schema]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if "default" in one:
                return True
            left += one.values()
        elif isinstance(one, list):
            left += one
    return False
