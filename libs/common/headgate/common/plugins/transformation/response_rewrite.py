"""Configuration of `response-rewrite`."""

import base64
import binascii
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, field_validator, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.expressions import HeadExpressions
from headgate.common.plugins.fields import HeaderName, HeaderTemplate, PatternText

MAX_BODY: Final = 16 << 20
"""Bytes that are searched at once, between requests of others."""
_MAX_EXPIRES: Final = 100 * 365 * 24 * 3600
_MAX_SEARCHED: Final = 64 << 20
"""Bytes that all filters of one use search together."""


def _read_added(value: Any) -> Any:
    """Read `["Name: value", ...]`, or a map of names and values."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list):
        return [_cut(line) if isinstance(line, str) else line for line in value]
    return value


def _write_added(added: tuple[tuple[str, str], ...]) -> list[str]:
    return [f"{name}: {value}" for name, value in added]


def _cut(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise ValueError("must be `Name: value`")
    return name.strip(), value.strip()


class AnswerHeaderChanges(PluginConfig):
    """Changes of an answer's headers; removal comes first, then `set`, then `add`. Values may have `$` references."""

    add: Annotated[
        tuple[tuple[HeaderName, HeaderTemplate], ...],
        BeforeValidator(_read_added),
        PlainSerializer(_write_added, when_used="json"),
    ] = ()
    """Lines `Name: value`; one whose value is empty is left out."""
    set: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """An empty value removes the header."""
    remove: tuple[str, ...] = ()
    """Names; with a `*` at the end all that begin so. With `Server` the gateway's own is not added either."""


class BodySubstitution(PluginConfig):
    """A pattern, and what it is replaced by in the body."""

    regex: PatternText
    scope: Literal["once", "global"] = "once"
    replace: str
    """`$1` is what the first group caught."""
    options: str = Field(default="jo", pattern="^[ijo]*$")
    """`i` ignores case; the others are taken for compatibility."""


class ResponseRewriteConfig(PluginConfig, plugin="response-rewrite"):
    """Fields of `response-rewrite`."""

    status_code: int | None = Field(default=None, ge=200, le=599)
    body: str | None = None
    body_base64: bool = False
    """`body` is given in base64."""
    filters: tuple[BodySubstitution, ...] = ()
    """Replacements in the upstream's body, which is collected for them. One that is compressed is left as it is."""
    headers: AnswerHeaderChanges = AnswerHeaderChanges()
    expires_s: int | None = Field(default=None, ge=-_MAX_EXPIRES, le=_MAX_EXPIRES)
    """Say in `Expires` and `Cache-Control` that the answer is good for so many seconds from now; if negative, that it
    must not be kept."""
    vars: HeadExpressions = ()
    """Only answers for which these hold are changed: `[["status", "==", 200]]`."""
    max_resp_body_size: int = Field(default=MAX_BODY, gt=0)
    """Bytes that `filters` collect; an answer with more is cut off. 16 MiB at most, 64 MiB for all filters
    together, and 50,000 matches."""

    @field_validator("headers", mode="before")
    @classmethod
    def _read_flat(cls, value: Any) -> Any:
        """Read the older, flat form: names and values to set."""
        flat = isinstance(value, dict) and value and not set(value) & {"add", "set", "remove"}
        return {"set": value} if flat else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.body is not None and self.filters:
            raise ValueError("takes either body or filters")
        if self.body_base64:
            try:
                base64.b64decode(self.body or "", validate=True)
            except binascii.Error:
                raise ValueError("body is not in base64") from None
        return self

    @property
    def max_searched_body(self) -> int:
        """Bytes of an answer that the filters may search between requests of others."""
        return min(self.max_resp_body_size, MAX_BODY, _MAX_SEARCHED // max(1, len(self.filters)))
