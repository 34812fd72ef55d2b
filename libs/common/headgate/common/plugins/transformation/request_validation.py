"""Configuration of `request-validation`."""

from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from headgate.common.effort import spend
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.schema_work import MAX_WORK, schema_size

_MAX_PATTERNS: Final = 100
_MAX_BODY: Final = 8 << 20
"""Bytes that are read on the event loop."""
_MAX_PATTERN: Final = 64 << 10
"""Bytes of a compiled pattern: it is run on the event loop, over what clients send."""


def _no_retrieval(uri: str) -> Any:
    raise ValueError("references to other documents are not followed")


def compile_schema(schema: dict[str, JsonValue]) -> Any:
    """Compile a JSON Schema (draft 7 unless its `$schema` says otherwise); patterns take linear time.

    Raises:
        ValueError: it is none.
    """
    # Here, as it takes 7 MB of memory that processes without such a plugin have no use for.
    import jsonschema_rs

    make = jsonschema_rs.validator_for if "$schema" in schema else jsonschema_rs.Draft7Validator
    patterns = _patterns(schema)
    if patterns > _MAX_PATTERNS:
        raise ValueError(f"has more than {_MAX_PATTERNS} patterns")
    try:
        size = schema_size(schema)
    except ValueError as error:
        raise ValueError(f"schema {error}") from None
    spend(500 * (patterns + 1) + 10 * size)
    options = jsonschema_rs.RegexOptions(size_limit=_MAX_PATTERN)
    try:
        return make(schema, retriever=_no_retrieval, pattern_options=options, mask="the value")
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise ValueError(f"is no JSON Schema: {str(error).splitlines()[0][:200]}") from None


def _patterns(schema: Any) -> int:
    """Count what may be a pattern."""
    count, left = 0, [schema]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            count += isinstance(one.get("pattern"), str)
            named = one.get("patternProperties")
            count += len(named) if isinstance(named, dict) else 0
            left += one.values()
        elif isinstance(one, list):
            left += one
    return count


def _check_schema(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    compile_schema(schema)
    return schema


Schema = Annotated[dict[str, JsonValue], AfterValidator(_check_schema)]


class RequestValidationConfig(PluginConfig, plugin="request-validation"):
    """Fields of `request-validation`: one of the two schemas or both."""

    header_schema: Schema | None = None
    """JSON Schema of the headers, an object of texts; names in any case."""
    body_schema: Schema | None = None
    """JSON Schema of the body: JSON, or the fields of a form (`application/x-www-form-urlencoded`)."""
    rejected_code: int = Field(default=400, ge=200, le=599)
    rejected_msg: str | None = Field(default=None, min_length=1, max_length=256)
    """Answered instead of what is wrong."""
    max_req_body_size: int = Field(default=64 << 20, gt=0)
    """Bytes; longer bodies are refused with 413. At most 8 MiB, and 50,000,000 divided by the number of the body
    schema's keywords, references followed: 1 MiB for a schema of 47."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.header_schema is None and self.body_schema is None:
            raise ValueError("needs header_schema or body_schema")
        return self

    @property
    def max_checked_body(self) -> int:
        """Bytes of a body that the schema allows to be checked between requests of others."""
        work = MAX_WORK // schema_size(self.body_schema) if self.body_schema is not None else _MAX_BODY
        return min(self.max_req_body_size, _MAX_BODY, work)
