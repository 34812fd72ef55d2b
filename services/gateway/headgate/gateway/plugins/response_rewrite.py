"""`response-rewrite`: change an answer on its way to the client: status, headers, body."""

import base64
import binascii
import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from headgate.common.patterns import Pattern, compile_pattern
from headgate.gateway.plugins.conditions import Expressions, compile_expressions
from headgate.gateway.plugins.headers import HeaderName
from headgate.gateway.plugins.interface import (
    BodyFilter,
    BodyTooLarge,
    Plugin,
    PluginConfig,
    PluginServices,
    Request,
    Response,
)
from headgate.gateway.plugins.patterns import PatternText, Template
from headgate.gateway.plugins.proxy_rewrite import HeaderTemplate

_MAX_BODY = 16 << 20


def _read_added(value: Any) -> Any:
    """Read `["Name: value", ...]`, or a map of names and values."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list):
        return [_cut(line) if isinstance(line, str) else line for line in value]
    return value


def _cut(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise ValueError("must be `Name: value`")
    return name.strip(), value.strip()


class AnswerHeaderChanges(PluginConfig):
    """Changes of an answer's headers; removal comes first, then `set`, then `add`. Values may have `$` references."""

    add: Annotated[tuple[tuple[HeaderName, HeaderTemplate], ...], BeforeValidator(_read_added)] = ()
    """Lines `Name: value`."""
    set: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """An empty value removes the header."""
    remove: tuple[str, ...] = ()


class BodySubstitution(PluginConfig):
    """A pattern, and what it is replaced by in the body."""

    regex: PatternText
    scope: Literal["once", "global"] = "once"
    replace: str
    """`$1` is what the first group caught."""
    options: str = Field(default="jo", pattern="^[ijo]*$")
    """`i` ignores case; the others are taken for compatibility."""


class ResponseRewriteConfig(PluginConfig):
    """Fields of `response-rewrite`."""

    status_code: int | None = Field(default=None, ge=200, le=599)
    body: str | None = None
    body_base64: bool = False
    """`body` is given in base64."""
    filters: tuple[BodySubstitution, ...] = ()
    """Replacements in the upstream's body, which is collected for them. One that is compressed is left as it is."""
    headers: AnswerHeaderChanges = AnswerHeaderChanges()
    vars: Expressions = ()
    """Only answers for which these hold are changed: `[["status", "==", 200]]`."""
    max_resp_body_size: int = Field(default=_MAX_BODY, gt=0)
    """Bytes that `filters` collect; an answer with more is cut off."""

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


class ResponseRewrite(Plugin[ResponseRewriteConfig]):
    """Rewrites answers."""

    name = "response-rewrite"
    order = 899
    Config = ResponseRewriteConfig

    def __init__(self, config: ResponseRewriteConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._takes = compile_expressions(config.vars)
        self._set = [(name, Template(value)) for name, value in config.headers.set.items()]
        self._added = [(name, Template(value)) for name, value in config.headers.add]
        self._body: bytes | None = None
        if config.body is not None:
            self._body = base64.b64decode(config.body) if config.body_base64 else config.body.encode()
        self._substitutions = [
            (
                compile_pattern(one.regex, ignore_case="i" in one.options, captures=True),
                _for_re2(one.replace),
                one.scope == "once",
            )
            for one in config.filters
        ]

    def on_response(self, request: Request, response: Response) -> None:
        """Make the changes to status and headers, and put another body in."""
        if self._takes is not None and not self._takes(request, response):
            return
        request.variables[f"response-rewrite.{id(self)}"] = True
        if self.config.status_code is not None:
            response.status = self.config.status_code
            if response.is_bodiless:
                response.body = b""
        if self._body is not None:
            response.body = self._body
            for name in ("Content-Encoding", "ETag", "Last-Modified"):
                response.headers.remove(name)
        for name in self.config.headers.remove:
            response.headers.remove(name)
        for name, template in self._set:
            value = template.render(request)
            if value:
                response.headers.set(name, value)
            else:
                response.headers.remove(name)
        for name, template in self._added:
            response.headers.add(name, template.render(request))

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Replace within the body."""
        applies = f"response-rewrite.{id(self)}" in request.variables
        if not self._substitutions or not applies or "Content-Encoding" in response.headers:
            return None
        for name in ("ETag", "Last-Modified", "Accept-Ranges", "Content-MD5", "Digest"):
            response.headers.remove(name)
        return _Substitutions(self._substitutions, self.config.max_resp_body_size)


def _for_re2(replacement: str) -> bytes:
    r"""Write `$1` as `\1`, which RE2 takes."""
    return re.sub(r"\$(\d)|\$\{(\d)\}", r"\\\1\2", replacement.replace("\\", "\\\\")).encode()


class _Substitutions(BodyFilter):
    def __init__(self, substitutions: list[tuple[Pattern, bytes, bool]], limit: int) -> None:
        self._substitutions = substitutions
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        self._size += len(data)
        if self._size > self._limit:
            raise BodyTooLarge(f"the answer's body has more than {self._limit} bytes")
        self._parts.append(data)
        return b""

    def finish(self) -> bytes:
        body = b"".join(self._parts)
        for pattern, replacement, once in self._substitutions:
            body, _ = pattern.subn(replacement, body, 1 if once else 0)
        return body
