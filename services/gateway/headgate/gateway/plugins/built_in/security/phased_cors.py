"""What `cors` says by phase (Traefik): a preflight is always answered, and has other headers than an answer."""

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.security.cors import CorsConfig
from headgate.gateway.plugins.interface import Headers, Request, Response

_ANSWERED = "cors.preflight"


class PhasedCors:
    """The headers of preflights, and those of answers."""

    def __init__(self, config: CorsConfig) -> None:
        self._config = config
        self._origins = [origin for origin in config.allow_origins.split(",") if origin]
        self._patterns = [compile_pattern(text) for text in config.allow_origins_by_regex]

    def preflight(self, request: Request) -> Response | None:
        """Answer a preflight."""
        method = request.headers.get("Access-Control-Request-Method")
        origin = request.headers.get("Origin")
        if request.method != "OPTIONS" or not method or not origin:
            return None
        config = self._config
        response = Response(config.preflight_status, reason="preflight")
        wanted = request.headers.get("Access-Control-Request-Headers") or ""
        self._set_allowed(response.headers, "Access-Control-Allow-Headers", config.allow_headers, wanted)
        self._set_allowed(response.headers, "Access-Control-Allow-Methods", config.allow_methods, method)
        if config.max_age is not None:
            response.headers.set("Access-Control-Max-Age", str(config.max_age))
        self._mark(response.headers, origin)
        request.variables[_ANSWERED] = self
        return response

    def answer(self, request: Request, response: Response) -> None:
        """Say what the origin may read of an answer."""
        if request.variables.get(_ANSWERED) is self:
            return
        self._mark(response.headers, request.headers.get("Origin") or "")
        if self._config.vary:
            vary = response.headers.get("Vary")
            if vary != "Origin":
                response.headers.set("Vary", f"{vary},Origin" if vary else "Origin")

    def _set_allowed(self, headers: Headers, name: str, allowed: str, wanted: str) -> None:
        if "*" in allowed.split(",") and self._config.allow_credential:
            allowed = wanted
        if allowed:
            headers.set(name, allowed)

    def _mark(self, headers: Headers, origin: str) -> None:
        config = self._config
        allowed = self._match(origin)
        if allowed:
            headers.set("Access-Control-Allow-Origin", allowed)
        if config.allow_credential:
            headers.set("Access-Control-Allow-Credentials", "true")
        exposed = config.expose_headers
        if exposed and not ("*" in exposed.split(",") and config.allow_credential):
            headers.set("Access-Control-Expose-Headers", exposed)

    def _match(self, origin: str) -> str:
        for one in self._origins:
            if one == origin:
                return origin
            if one == "*":
                return origin if self._config.allow_credential else "*"
        raw = origin.encode("latin-1")
        return origin if any(pattern.search(raw) for pattern in self._patterns) else ""
