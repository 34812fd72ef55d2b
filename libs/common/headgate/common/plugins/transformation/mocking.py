"""Configuration of `mocking`."""

import json
from typing import Self

from pydantic import Field, JsonValue, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, HeaderTemplate, HeaderValue

_KINDS = ("object", "array", "string", "number", "integer", "boolean")
_MAX_DEPTH = 16
MAX_ITEMS = 3
"""Members of an array that is made up."""
_VALUE = 16
"""Bytes of a value with what is around it."""
_MAX_MADE = 128 << 10
"""Bytes of JSON, about, of a body that is made up, at most."""


class MockingConfig(PluginConfig, plugin="mocking"):
    """Fields of `mocking`."""

    delay: float = Field(default=0, ge=0, le=3600)
    """Seconds before the answer."""
    response_status: int = Field(default=200, ge=200, le=599)
    content_type: HeaderValue = "application/json;charset=utf8"
    response_example: str | None = None
    """The body: a template."""
    response_schema: dict[str, JsonValue] | None = None
    """JSON Schema of a body that is made up for each request; an `example` in it is taken as it is. Of the keywords
    `type`, `properties` and `items` count. Written as XML if `content_type` says so."""
    with_mock_header: bool = True
    """Mark the answer with `x-mock-by`."""
    response_headers: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.response_example is None and self.response_schema is None:
            raise ValueError("needs response_example or response_schema")
        if self.response_schema is not None:
            made = _check_schema(self.response_schema, "response_schema", _MAX_DEPTH)
            if made > _MAX_MADE:
                raise ValueError(
                    f"response_schema makes a body of up to {made} bytes, at most {_MAX_MADE}: an array has up to "
                    f"{MAX_ITEMS} members, so nest fewer of them"
                )
        return self


def _check_schema(schema: JsonValue, place: str, depth: int) -> int:
    """Return how many bytes a schema makes at most. Raises ValueError."""
    if not isinstance(schema, dict):
        raise ValueError(f"{place} must be an object")
    if depth == 0:
        raise ValueError(f"response_schema has more than {_MAX_DEPTH} levels")
    kind = schema.get("type", "object")
    if kind not in _KINDS:
        raise ValueError(f"{place}.type must be one of {', '.join(_KINDS)}")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise ValueError(f"{place}.properties must be an object")
    made = sum(
        len(name) + _check_schema(inner, f"{place}.properties.{name}", depth - 1) for name, inner in properties.items()
    )
    items = _check_schema(schema["items"], f"{place}.items", depth - 1) if "items" in schema else 0
    if "example" in schema:
        return len(json.dumps(schema["example"]))
    if kind == "array":
        return _VALUE + MAX_ITEMS * max(items, _VALUE)
    return _VALUE + (made if kind == "object" else 0)
