"""The fields of a request's body: of forms and of JSON, parsed when they are first asked for."""

from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from headgate.gateway.model.form_parts import read_parts

MAX_PARSED_BODY: Final = 256 * 1024
"""Bytes; fields of a longer body are absent. Parsing what a client sends holds up the loop for as long as it takes."""
MAX_FIELDS: Final = 1024
"""Fields of a form, and values that a path with `*` leads to, behind these are absent."""

_JSON: Final = msgspec.json.Decoder(float_hook=str)
_FORM: Final = b"application/x-www-form-urlencoded"
_PARTS: Final = b"multipart/form-data"


def has_fields(content_type: bytes) -> bool:
    """Tell whether bodies of a type have fields."""
    kind = _kind_of(content_type)
    return kind in (_FORM, _PARTS) or _is_json(kind)


class BodyFields:
    """A body's fields.

    Forms are `application/x-www-form-urlencoded` and `multipart/form-data`; of several fields of one name the first
    counts. JSON bodies are `application/json` and `*+json` in UTF-8; the name of a field is a path,
    `order.items.0.sku`, in which `*` stands for each member: `order.items.*.sku`. Of a string the content is returned,
    of all else its JSON text. A body that is none of these, is malformed or is longer than `MAX_PARSED_BODY` has no
    fields.
    """

    __slots__ = ("_is_json", "_json", "_texts")

    def __init__(self, content_type: bytes, body: bytes) -> None:
        kind = _kind_of(content_type)
        self._texts: dict[str, str] = {}
        self._json: object = None
        self._is_json: bool = _is_json(kind)
        if len(body) > MAX_PARSED_BODY:
            return
        if self._is_json:
            try:
                self._json = _JSON.decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                # What cannot be read has no fields; whether it may be sent on is the upstream's business.
                self._json = None
        elif kind == _FORM:
            for key, value in read_pairs(body, MAX_FIELDS).items():
                self._texts[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        elif kind == _PARTS:
            self._texts = _read_parts(content_type, body)

    def first(self, name: str) -> str | None:
        """Return a field, None if it is absent; of several that a name with `*` stands for the first."""
        found = self._texts.get(name)
        if found is None and self._json is not None:
            values = _walk(self._json, name)
            if values:
                found = self._texts[name] = values[0]
        return found

    def all(self, name: str) -> list[str]:
        """Return all fields that a name with `*` stands for; of another one the field, if it is there."""
        if self._is_json and "*" in name.split("."):
            return _walk(self._json, name)
        found = self.first(name)
        return [] if found is None else [found]


def read_pairs(text: bytes, limit: int) -> dict[bytes, bytes]:
    """Read `application/x-www-form-urlencoded` text: the first value of each name; at most `limit` pairs, -1 is all."""
    found: dict[bytes, bytes] = {}
    for part in text.split(b"&", limit)[: None if limit < 0 else limit]:
        if not part:
            continue
        cut = part.find(b"=")
        name = _decoded(part if cut < 0 else part[:cut])
        if name not in found:
            found[name] = b"" if cut < 0 else _decoded(part[cut + 1 :])
    return found


def read_values(text: bytes) -> dict[bytes, list[bytes]]:
    """Read the same text: all values of each name."""
    found: dict[bytes, list[bytes]] = {}
    for part in text.split(b"&"):
        if not part:
            continue
        cut = part.find(b"=")
        name = _decoded(part if cut < 0 else part[:cut])
        value = b"" if cut < 0 else _decoded(part[cut + 1 :])
        known = found.get(name)
        if known is None:
            found[name] = [value]
        else:
            known.append(value)
    return found


def _kind_of(content_type: bytes) -> bytes:
    return content_type.split(b";")[0].strip(b" \t").lower()


def _is_json(kind: bytes) -> bool:
    return kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def _decoded(text: bytes) -> bytes:
    if text.find(b"+") >= 0:
        text = text.replace(b"+", b" ")
    return unquote_to_bytes(text) if text.find(b"%") >= 0 else text


def _read_parts(content_type: bytes, body: bytes) -> dict[str, str]:
    """Read `multipart/form-data`; nothing of it where it is not whole."""
    found: dict[str, str] = {}
    try:
        parts = read_parts(body, content_type.decode("latin-1"), MAX_FIELDS)
    except ValueError:
        return found
    for name, content in parts:
        found.setdefault(name, content.decode("utf-8", "replace"))
    return found


def _walk(value: object, path: str) -> list[str]:
    """Follow a path of names, indexes and `*` with dots."""
    values: list[object] = [value]
    for step in path.split("."):
        values = [each for place in values for each in _members(place, step)][:MAX_FIELDS]
        if not values:
            break
    return [each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in values]


def _members(value: object, step: str) -> list[object]:
    if isinstance(value, dict):
        if step == "*":
            return list(value.values())
        return [value[step]] if step in value else []
    if isinstance(value, list):
        if step == "*":
            return value
        if step.isascii() and step.isdigit() and len(step) <= 9 and int(step) < len(value):
            return [value[int(step)]]
    return []
