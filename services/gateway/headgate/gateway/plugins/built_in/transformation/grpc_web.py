"""`grpc-web`: let browsers call gRPC services (the gRPC-Web protocol, grpc/doc/PROTOCOL-WEB.md).

The upstream has to speak gRPC (`grpc`, `grpcs`, h2c). On a route that takes all paths below one, that one is taken off:
`/grpc/web/pkg.Service/Method` of a route `/grpc/web/*` is `/pkg.Service/Method`. Messages of an answer go out as they
come, its trailers as a last frame of the body; an answer without messages has them among its headers. Bodies in base64
(`application/grpc-web-text`) are read as a whole, up to 8 MiB.

Pages of all origins may call, unless the route has `cors`, which then decides.
"""

import asyncio
import base64
import binascii
from typing import Any, Final

from headgate.common.plugins.transformation.grpc_web import GrpcWebConfig
from headgate.common.table import PathType
from headgate.gateway.plugins.built_in.security.cors import DECIDES
from headgate.gateway.plugins.interface import BodyFilter, Headers, Plugin, PluginServices, Request, Response

_IS_TEXT: Final = {
    "application/grpc-web": False,
    "application/grpc-web+proto": False,
    "application/grpc-web-text": True,
    "application/grpc-web-text+proto": True,
}
_CALLED_WITH: Final = "grpc-web.type"
_MAX_BODY: Final = 8 << 20
_SHORT: Final = 256 << 10
"""Bytes that are decoded in less than a millisecond."""
_MAX_PADDING: Final = 2048
"""A call has one message, and browsers send it in one piece."""
_QUANTUM: Final = 4
"""Characters of base64 that stand for up to three bytes."""
_TRAILERS: Final = b"\x80"
"""Flag of a frame that has trailers."""


class GrpcWeb(Plugin[GrpcWebConfig]):
    """Translates calls and their answers."""

    name = "grpc-web"
    order = 505
    preview = "yes"
    Config = GrpcWebConfig

    def __init__(self, config: GrpcWebConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        path = services.path
        is_prefix = path is not None and path.type in (PathType.PREFIX, PathType.STRING_PREFIX)
        self._prefix = path.value if path is not None and is_prefix and not config.passes_others else ""

    def on_request(self, request: Request) -> Any:
        """Make a call of gRPC of the request."""
        kind = (request.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if self.config.passes_others and not (kind in _IS_TEXT if request.method == "POST" else _asks_to_call(request)):
            return None
        if not self._is_let_in(request):
            return Response.refusal(403, "the origin may not call")
        if request.method == "OPTIONS":
            return self._preflight(request)
        if request.method != "POST":
            response = Response.refusal(405, "calls of gRPC-Web are POSTs")
            response.headers.set("Allow", "POST, OPTIONS")
            return response
        if kind not in _IS_TEXT:
            return Response.refusal(400, f"Content-Type is none of {', '.join(_IS_TEXT)}")
        request.variables[_CALLED_WITH] = kind
        if self._prefix and request.path.startswith(self._prefix):
            request.path = "/" + request.path[len(self._prefix) :].lstrip("/")
        request.headers.set("Content-Type", "application/grpc")
        return self._decode(request) if _IS_TEXT[kind] else None

    def _is_let_in(self, request: Request) -> bool:
        origins, origin = self.config.allow_origins, request.headers.get("Origin")
        return origins is None or origin is None or "*" in origins or origin in origins

    def _allowed(self, request: Request) -> str:
        return "*" if self.config.allow_origins is None else request.headers.get("Origin") or "*"

    def _preflight(self, request: Request) -> Response:
        response = Response(204, reason="preflight")
        request.variables[_CALLED_WITH] = ""
        if DECIDES not in request.variables:
            response.headers.set("Access-Control-Allow-Origin", self._allowed(request))
            response.headers.set("Access-Control-Allow-Methods", "POST")
            response.headers.set("Access-Control-Allow-Headers", self.config.cors_allow_headers)
        return response

    async def _decode(self, request: Request) -> Response | None:
        text = await request.read_body(_MAX_BODY)
        try:
            request.replace_body(_decoded(text) if len(text) <= _SHORT else await asyncio.to_thread(_decoded, text))
        except binascii.Error:
            return Response.refusal(400, "the body is not in base64")
        return None

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Open the answer to other origins, and put its trailers into its body."""
        headers = response.headers
        if self.config.passes_others and _CALLED_WITH not in request.variables:
            return None
        if DECIDES not in request.variables and "Access-Control-Allow-Origin" not in headers:
            headers.set("Access-Control-Allow-Origin", self._allowed(request))
        headers.add_to_list("Access-Control-Expose-Headers", "grpc-status")
        headers.add_to_list("Access-Control-Expose-Headers", "grpc-message")
        kind = request.variables.get(_CALLED_WITH)
        if not isinstance(kind, str) or not (headers.get("Content-Type") or "").startswith("application/grpc"):
            return None
        headers.set("Content-Type", kind)
        return None if "grpc-status" in headers else _Messages(is_text=_IS_TEXT[kind])


def _asks_to_call(request: Request) -> bool:
    """Whether a request is the preflight of a call."""
    wanted = (request.headers.get("Access-Control-Request-Headers") or "").lower()
    names = [name.strip() for name in wanted.split(",")]
    return request.method == "OPTIONS" and "x-grpc-web" in names and "Origin" in request.headers


def _decoded(text: bytes) -> bytes:
    """Decode base64 of which each piece may have its own padding. Raises binascii.Error."""
    if text.count(b"=") > _MAX_PADDING:
        raise binascii.Error("too many pieces")
    parts = []
    start = 0
    while start < len(text):
        end = text.find(b"=", start) + 1 or len(text)
        end += -end % _QUANTUM
        parts.append(base64.b64decode(text[start:end], validate=True))
        start = end
    return b"".join(parts)


class _Messages(BodyFilter):
    """The frames of gRPC, and behind them one with the trailers."""

    def __init__(self, *, is_text: bool) -> None:
        self._is_text = is_text
        self._trailers = Headers([("grpc-status", "2"), ("grpc-message", "upstream grpc status not received")])

    def feed(self, data: bytes) -> bytes:
        return base64.b64encode(data) if self._is_text else data

    def take_trailers(self, trailers: Headers) -> None:
        if "grpc-status" in trailers:
            self._trailers = trailers.copy()
        for name in dict(trailers):
            trailers.remove(name)

    def finish(self) -> bytes:
        lines = b"".join(f"{name.lower()}:{value}\r\n".encode("latin-1") for name, value in self._trailers)
        return self.feed(_TRAILERS + len(lines).to_bytes(4, "big") + lines)
