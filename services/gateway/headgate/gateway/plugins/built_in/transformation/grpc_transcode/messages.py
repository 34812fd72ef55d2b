"""Messages of Protocol Buffers out of JSON, forms and queries, and JSON out of messages."""

import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from headgate.common.plugins.transformation.protobuf_methods import field_kinds

_MAX_DEPTH: Final = 64
_NUMBER: Final = re.compile(r"#?(-?)#?(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})")
_TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}
_INTEGERS: Final = frozenset(("INT32", "INT64", "UINT32", "UINT64"))
_FLOATS: Final = frozenset(("FLOAT", "DOUBLE"))
_LONG: Final = frozenset(("INT64", "UINT64"))


class Unfit(Exception):
    """A value that a field does not take."""


class Transcoder:
    """Reads and writes messages.

    Args:
        options: of lua-protobuf, as `pb_option` has them.
    """

    def __init__(self, options: Collection[str]) -> None:
        self._kinds = field_kinds()
        self._names_enums = "enum_as_value" not in options
        self._long = next((each for each in reversed(list(options)) if each.startswith("int64_")), "int64_as_number")
        self._has_defaults = not {"no_default_values", "use_default_metatable"} & set(options)

    def read(self, kind: Any, fields: Mapping[str, Any]) -> bytes:
        """Return a message with the fields that it has of an object. Raises Unfit."""
        message = kind()
        try:
            self._fill(message, fields, 0)
            raw: bytes = message.SerializeToString()
        except (ValueError, TypeError, OverflowError) as error:
            raise Unfit("failed to encode request data to protobuf") from error
        return raw

    def _fill(self, message: Any, fields: Mapping[str, Any], depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise ValueError
        for field in message.DESCRIPTOR.fields:
            value = fields.get(field.name)
            if value is not None:
                self._set(message, field, value, depth)

    def _set(self, message: Any, field: Any, value: Any, depth: int) -> None:
        if _is_map(field):
            key, inner = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            held = getattr(message, field.name)
            for name, each in _mapping(value).items():
                if inner.message_type is not None:
                    self._fill(held[self._scalar(key, name)], _mapping(each), depth + 1)
                else:
                    held[self._scalar(key, name)] = self._scalar(inner, each)
        elif field.is_repeated:
            held = getattr(message, field.name)
            for each in value if isinstance(value, list) else [value]:
                if field.message_type is not None:
                    self._fill(held.add(), _mapping(each), depth + 1)
                else:
                    held.append(self._scalar(field, each))
        elif field.message_type is not None:
            inner_message = getattr(message, field.name)
            inner_message.SetInParent()
            self._fill(inner_message, _mapping(value), depth + 1)
        else:
            # Of several texts of a query or a form the first counts.
            setattr(message, field.name, self._scalar(field, value[0] if isinstance(value, list) and value else value))

    def _scalar(self, field: Any, value: Any) -> Any:
        kind = self._kinds[field.cpp_type]
        if kind == "STRING":
            if field.type == field.TYPE_BYTES:
                return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
            return value if isinstance(value, str) else _number_text(value)
        if kind in _INTEGERS:
            return _integer(value)
        if kind in _FLOATS:
            return float(value)
        if kind == "BOOL":
            return _TRUTHS[value] if isinstance(value, str) and value in _TRUTHS else value
        known = field.enum_type.values_by_name.get(value) if isinstance(value, str) else None
        return known.number if known is not None else _integer(value)

    def write(self, message: Any) -> dict[str, Any]:
        """Return a message as JSON has it."""
        made: dict[str, Any] = {}
        for field in message.DESCRIPTOR.fields:
            held = getattr(message, field.name)
            if _is_map(field):
                inner = field.message_type.fields_by_name["value"]
                made[field.name] = {_key(name): self._shown(inner, held[name]) for name in held}
            elif field.is_repeated:
                made[field.name] = [self._shown(field, each) for each in held]
            elif field.has_presence:
                is_scalar_of_proto2 = field.message_type is None and field.containing_oneof is None
                if message.HasField(field.name) or (is_scalar_of_proto2 and self._has_defaults):
                    made[field.name] = self._shown(field, held)
            elif self._has_defaults or held:
                made[field.name] = self._shown(field, held)
        return made

    def _shown(self, field: Any, value: Any) -> Any:
        if field.message_type is not None:
            return self.write(value)
        kind = self._kinds[field.cpp_type]
        if kind == "ENUM":
            known = field.enum_type.values_by_number.get(value) if self._names_enums else None
            return known.name if known is not None else value
        if kind in _LONG:
            return self._long_number(value)
        if kind in _FLOATS:
            return value if math.isfinite(value) else None
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def _long_number(self, value: int) -> int | str:
        """Return a number of 64 bits; as text only if it does not fit into 32."""
        if self._long == "int64_as_number" or -(1 << 31) <= value < 1 << 32:
            return value
        return f"#{value}" if self._long == "int64_as_string" else f"#0x{value & 0xFFFFFFFFFFFFFFFF:x}"


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return field.is_repeated and kind is not None and kind.GetOptions().map_entry


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        if found is None:
            raise ValueError
        number = int(found[2], 0) if found[2][:2] in ("0x", "0X") else int(found[2])
        return -number if found[1] else number
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise TypeError
    return int(value)


def _number_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return str(value)


def _key(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
