"""`cors`: which pages of other origins may read answers (the CORS protocol of the Fetch standard).

A preflight of an allowed origin is answered here; an origin that is not allowed gets no header, and its requests go on
to the upstream, as with nginx.
"""

from functools import lru_cache
from typing import ClassVar, Final, Literal

import re2

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.fields import checked_value
from headgate.common.plugins.security.cors import CorsConfig
from headgate.gateway.plugins.built_in.security.phased_cors import PhasedCors
from headgate.gateway.plugins.interface import Headers, Plugin, PluginConfig, PluginServices, Request, Response

_ALL_METHODS: Final = "GET,POST,PUT,DELETE,PATCH,HEAD,OPTIONS,CONNECT,TRACE"
_REMEMBERED: Final = 256
"""Configurations: thousands of routes have the same few."""


DECIDES: Final = "cors.decides"
"""Variable of requests on whose answers no other plugin may let origins in."""


class _Origins:
    """Which origins are allowed."""

    def __init__(self, listed: str, patterns: tuple[str, ...]) -> None:
        members = [member.strip() for member in listed.split(",") if member.strip()]
        self.any = "*" in members
        self.reflected = "**" in members
        self._exact = frozenset(member.lower() for member in members)
        wild = [member.lower() for member in members if "*" in member.strip("*")]
        texts = ["^" + "[^./:]+".join(re2.escape(part) for part in member.split("*")) + "$" for member in wild]
        self._patterns = [compile_pattern(text, ignore_case=True) for text in texts]
        self._patterns += [compile_pattern(text) for text in patterns]

    def allow(self, origin: str) -> str | None:
        """Return what the header says to an origin; None if it is not allowed."""
        if self.any:
            return "*"
        if self.reflected or origin.lower() in self._exact:
            return origin
        raw = origin.encode("latin-1")
        return origin if any(pattern.search(raw) for pattern in self._patterns) else None


@lru_cache(_REMEMBERED)
def _origins(listed: str, patterns: tuple[str, ...]) -> _Origins:
    return _Origins(listed, patterns)


@lru_cache(_REMEMBERED)
def _constant_headers(config: CorsConfig) -> Headers:
    """Return what is said to every origin that is allowed, but for what depends on request or answer."""
    headers = Headers()
    headers.add("Access-Control-Allow-Methods", _ALL_METHODS if config.allow_methods == "**" else config.allow_methods)
    if config.max_age is not None:
        headers.add("Access-Control-Max-Age", str(config.max_age))
    if config.expose_headers not in ("", "**"):
        headers.add("Access-Control-Expose-Headers", config.expose_headers)
    if config.allow_credential:
        headers.add("Access-Control-Allow-Credentials", "true")
    if config.allow_headers not in ("", "**"):
        headers.add("Access-Control-Allow-Headers", config.allow_headers)
    return headers


class Cors(Plugin[CorsConfig]):
    """Answers preflights and marks answers."""

    name: ClassVar[str] = "cors"
    order: ClassVar[int] = 4000
    Config: ClassVar[type[PluginConfig]] = CorsConfig
    preview: ClassVar[Literal["no", "yes", "with-client", "passes"]] = "yes"
    is_shareable: ClassVar[bool] = True

    def __init__(self, config: CorsConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        only_patterns = config.allow_origins_by_regex and "allow_origins" not in config.model_fields_set
        self._origins = _origins("" if only_patterns else config.allow_origins, config.allow_origins_by_regex)
        others = _constant_headers(config)
        self._names = ("Access-Control-Allow-Origin", *(name for name, _ in others))
        self._other_lines = others.to_lines()
        self._lines = b"Access-Control-Allow-Origin: *\r\n%b" % self._other_lines
        """What most answers get, written once."""
        self._timing = None
        if config.timing_allow_origins or config.timing_allow_origins_by_regex:
            self._timing = _origins(config.timing_allow_origins, config.timing_allow_origins_by_regex)
        depends = self._timing is not None or "**" in (config.expose_headers, config.allow_headers)
        self._is_same_for_all = config.unconditional and self._origins.any and not depends
        """Whether answers get the same whatever the request says, which need not be searched then."""
        self._phased = PhasedCors(config) if config.by_phase else None

    def on_request(self, request: Request) -> Response | None:
        """Answer a preflight."""
        request.variables[DECIDES] = True
        if self._phased is not None:
            return self._phased.preflight(request)
        if request.method != "OPTIONS":
            return None
        if not self.config.unconditional and "Access-Control-Request-Method" not in request.headers:
            return None
        origin = self._origin(request)
        if origin is None or (self._origins.allow(origin) is None and not self.config.every_preflight):
            return None
        return Response(self.config.preflight_status, reason="preflight")

    def on_response(self, request: Request, response: Response) -> None:
        """Say what the origin may do."""
        request.variables[DECIDES] = True
        if self._phased is not None:
            self._phased.answer(request, response)
            return
        headers = response.headers
        if self._is_same_for_all:
            headers.set_lines(self._names, b"access-control-", self._lines)
            return
        if not self._origins.any:
            headers.add_to_list("Vary", "Origin")
        origin = self._origin(request)
        if origin is None:
            return
        timing = None if self._timing is None else self._timing.allow(origin)
        if timing is not None:
            headers.set("Timing-Allow-Origin", timing)
        allowed = self._origins.allow(origin)
        if allowed is None:
            return
        config = self.config
        exposed = ",".join(dict(headers)) if config.expose_headers == "**" else ""
        lines = (
            self._lines
            if allowed == "*"
            else b"Access-Control-Allow-Origin: %b\r\n%b"
            % (
                checked_value(allowed).encode("latin-1"),
                self._other_lines,
            )
        )
        headers.set_lines(self._names, b"access-control-", lines)
        if exposed:
            headers.set("Access-Control-Expose-Headers", exposed)
        method = request.headers.get("Access-Control-Request-Method")
        if method and config.every_preflight and config.allow_methods == "**":
            headers.set("Access-Control-Allow-Methods", checked_value(method))
        if config.allow_headers == "**":
            headers.add_to_list("Vary", "Access-Control-Request-Headers")
            asked = request.headers.get("Access-Control-Request-Headers")
            if asked:
                headers.set("Access-Control-Allow-Headers", asked)

    def _origin(self, request: Request) -> str | None:
        """Return the origin that a request is of; empty for one of none that is treated as if it had one."""
        return request.headers.get("Origin", "" if self.config.unconditional else None)
