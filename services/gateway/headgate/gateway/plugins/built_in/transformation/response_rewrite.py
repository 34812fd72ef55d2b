"""`response-rewrite`: change an answer on its way to the client: status, headers, body."""

import base64
import re
import time
from email.utils import formatdate
from functools import partial
from typing import Final

from headgate.common.patterns import Match, Pattern, compile_pattern
from headgate.common.plugins.transformation.response_rewrite import ResponseRewriteConfig
from headgate.gateway.plugins.interface import (
    BodyFilter,
    BodyTooLarge,
    Plugin,
    PluginServices,
    Request,
    Response,
)
from headgate.gateway.plugins.kit.conditions import compile_expressions
from headgate.gateway.plugins.kit.memory import Allocation, plugin_memory
from headgate.gateway.plugins.kit.patterns import Template

MAX_REPLACED: Final = 50_000
"""Matches that are replaced in one answer, each in about a microsecond."""


class ResponseRewrite(Plugin[ResponseRewriteConfig]):
    """Rewrites answers."""

    name = "response-rewrite"
    order = 899
    Config = ResponseRewriteConfig
    is_shareable = True

    def __init__(self, config: ResponseRewriteConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._memory = plugin_memory(services)
        self._takes = compile_expressions(config.vars)
        self._set = [(name, Template(value)) for name, value in config.headers.set.items()]
        self._added = [(name, Template(value)) for name, value in config.headers.add]
        self._body: bytes | None = None
        if config.body is not None:
            self._body = base64.b64decode(config.body) if config.body_base64 else config.body.encode()
        self._hides_server = any(name.lower() == "server" for name in config.headers.remove)
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
            response.headers.remove_named(name)
        response.names_server = response.names_server and not self._hides_server
        if self.config.expires_s is not None:
            _expire(response, self.config.expires_s)
        for name, template in self._set:
            value = template.render(request)
            if value:
                response.headers.set(name, value)
            else:
                response.headers.remove(name)
        for name, template in self._added:
            value = template.render(request)
            if value:
                response.headers.add(name, value)

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Replace within the body."""
        applies = f"response-rewrite.{id(self)}" in request.variables
        if not self._substitutions or not applies or "Content-Encoding" in response.headers:
            return None
        for name in ("ETag", "Last-Modified", "Accept-Ranges", "Content-MD5", "Digest"):
            response.headers.remove(name)
        return _Substitutions(self._substitutions, self.config.max_searched_body, Allocation(self._memory, self.name))


def _expire(response: Response, seconds: int) -> None:
    """Say until when an answer is good, as nginx's `expires` does."""
    response.headers.set("Expires", formatdate(time.time() + seconds, usegmt=True))
    response.headers.set("Cache-Control", "no-cache" if seconds < 0 else f"max-age={seconds}")


def _for_re2(replacement: str) -> bytes:
    r"""Write `$1` as `\1`, which RE2 takes."""
    return re.sub(r"\$(\d)|\$\{(\d)\}", r"\\\1\2", replacement.replace("\\", "\\\\")).encode()


class _Substitutions(BodyFilter):
    def __init__(self, substitutions: list[tuple[Pattern, bytes, bool]], limit: int, memory: Allocation) -> None:
        self._substitutions = substitutions
        self._limit = limit
        self._memory = memory
        self._parts: list[bytes] = []
        self._size = 0
        self._made = 0
        """Bytes that replaced others."""
        self._replaced = 0

    def feed(self, data: bytes) -> bytes:
        self._size += len(data)
        if self._size > self._limit:
            raise BodyTooLarge(f"the answer's body has more than {self._limit} bytes")
        if not self._memory.grow(len(data)):
            raise BodyTooLarge("the plugins of this worker keep as many bytes as they may")
        self._parts.append(data)
        return b""

    def finish(self) -> bytes:
        body = b"".join(self._parts)
        for pattern, replacement, once in self._substitutions:
            body, _ = pattern.subn(partial(self._expand, replacement), body, 1 if once else 0)
        return body

    def _expand(self, replacement: bytes, found: Match) -> bytes:
        """Return what stands in for a match; few bytes may match often, and become many."""
        text = found.expand(replacement)
        self._made += len(text)
        self._replaced += 1
        if self._made > self._limit:
            raise BodyTooLarge(f"filters put more than {self._limit} bytes into the answer's body")
        if self._replaced > MAX_REPLACED:
            raise BodyTooLarge(f"filters match more than {MAX_REPLACED} times in the answer's body")
        return text
