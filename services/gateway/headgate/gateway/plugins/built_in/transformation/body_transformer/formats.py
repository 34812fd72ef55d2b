"""The fields of a body: JSON, XML, forms. All decoders are bounded by the length of what they are given.

XML becomes what xml2lua makes of it, which templates of Apache APISIX are written for: an element is its text, or a
table of its children by their names without prefixes, several of one name a list; `_attr` has its attributes, beside
which its text is 1. White space at the ends of texts is dropped.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from headgate.gateway.model.form_parts import read_parts

_MAX_DEPTH: Final = 128
_MAX_JSON_DEPTH: Final = 900
"""What Python 3.11 can decode at most. Newer versions decode more than the recursion of templates could read."""
_MAX_FIELDS: Final = 1024
_MAX_ELEMENTS: Final = 20_000
_PIECE: Final = 64 << 10
"""Bytes of XML that are parsed at once: between two pieces other threads get their turn."""

Fields = dict[Any, Any] | list[Any]


class BodyFault(Exception):
    """A body that is not what it is said to be; the text says why, without any of it."""


def format_of(content_type: str) -> str | None:
    """Return the format that a Content-Type stands for; None: none of those that are decoded."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return "json"
    if kind in ("text/xml", "application/xml") or kind.endswith("+xml"):
        return "xml"
    if kind == "application/x-www-form-urlencoded":
        return "encoded"
    return "multipart" if kind.startswith("multipart/") else None


def decode_fields(body: bytes, format_: str, content_type: str) -> Fields:
    """Return the fields of a body; `content_type` names the boundary of one in parts. Raises BodyFault."""
    try:
        fields = _DECODERS[format_](body, content_type)
    except RecursionError:
        raise BodyFault("it is nested too deep") from None
    if not isinstance(fields, dict | list):
        raise BodyFault("it is neither an object nor a list")
    return fields


def decode_query(query: str) -> Fields:
    """Return the parameters of a query. Raises BodyFault."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS, encoding="utf-8")
    except ValueError:
        raise BodyFault(f"it has more than {_MAX_FIELDS} parameters, or one that is no UTF-8") from None
    return _gathered(pairs)


def _gathered(pairs: Iterable[tuple[str, Any]]) -> dict[Any, Any]:
    """Return values by their names, several of one name in a list."""
    fields: dict[Any, Any] = {}
    several: set[str] = set()
    for name, value in pairs:
        if name in several:
            fields[name].append(value)
        elif name in fields:
            several.add(name)
            fields[name] = [fields[name], value]
        else:
            fields[name] = value
    return fields


def _read_json(body: bytes, content_type: str) -> Any:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError):
        raise BodyFault("it is no JSON") from None
    if body.count(b"[") + body.count(b"{") > _MAX_JSON_DEPTH and _is_too_deep(value):
        raise RecursionError
    return value


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_JSON_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [each for members in inner for each in members if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def _read_form(body: bytes, content_type: str) -> Fields:
    return decode_query(body.decode("latin-1"))


def _read_xml(body: bytes, content_type: str) -> Fields:
    # Here, as few gateways need it.
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import XMLParser

    elements = _Elements()
    parser = XMLParser(target=elements, forbid_dtd=True)
    try:
        for at in range(0, len(body), _PIECE):
            parser.feed(body[at : at + _PIECE])
        parser.close()
    except DefusedXmlException:
        raise BodyFault("it has a DOCTYPE, which is not taken") from None
    except (ParseError, LookupError, ValueError):
        raise BodyFault("it is no XML") from None
    return elements.fields


class _Elements:
    """What a parser tells of elements; it is stopped where there are too many, or too many in each other."""

    def __init__(self) -> None:
        self.fields: Fields = {}
        self._count = 0
        self._open: list[tuple[str, dict[str, str], list[tuple[str, Any]], list[str]]] = []
        """Name, attributes, children and pieces of text of those that have begun."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        self._count += 1
        if self._count > _MAX_ELEMENTS:
            raise BodyFault(f"it has more than {_MAX_ELEMENTS} elements")
        if len(self._open) >= _MAX_DEPTH:
            raise BodyFault(f"it is nested deeper than {_MAX_DEPTH} levels")
        self._open.append((_local(tag), attributes, [], []))

    def data(self, text: str) -> None:
        """Take a piece of text."""
        self._open[-1][3].append(text)

    def end(self, tag: str) -> None:
        """End an element."""
        name, attributes, children, texts = self._open.pop()
        table = _gathered(children)
        if attributes:
            table["_attr"] = {_local(each): value for each, value in attributes.items()}
        value: Any = "".join(texts).strip()
        if table:
            if value:
                table[1] = value
            value = table
        if self._open:
            self._open[-1][2].append((name, value))
        else:
            self.fields = {name: value}

    def close(self) -> None:
        """End the document."""


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _read_parts(body: bytes, content_type: str) -> Fields:
    try:
        parts = read_parts(body, content_type, _MAX_FIELDS)
    except ValueError as error:
        raise BodyFault(str(error)) from None
    return _gathered((name, text.decode("utf-8", "surrogateescape")) for name, text in parts)


_DECODERS: Final[Mapping[str, Callable[[bytes, str], Any]]] = MappingProxyType(
    {"json": _read_json, "xml": _read_xml, "encoded": _read_form, "multipart": _read_parts}
)
