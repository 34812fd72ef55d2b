"""A request and its answer as plugins see them: what may be read, and what may be changed.

The proxy makes a `Request` only for routes that have plugins, and takes back what they changed. Text is that of the
bytes on the wire (ISO 8859-1); only bodies are bytes.
"""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import JsonValue

from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.pacing import Pacing
from headgate.gateway.plugins.interface.sources import (
    AnswerSource,
    Asked,
    BodySource,
    BodyStream,
    NoBody,
    Wire,
    collect,
)
from headgate.gateway.proxy.errors import BodyTooLarge
from headgate.gateway.proxy.heads.grammar import HOST, TOKEN, is_visible
from headgate.gateway.proxy.heads.own import error_text, printable
from headgate.gateway.proxy.heads.paths import has_dot_segments

if TYPE_CHECKING:
    from headgate.gateway.plugins.interface.consumers import KnownConsumer
    from headgate.gateway.plugins.interface.targets import Endpoints

_NONE: frozenset[object] = frozenset()
_NO_CLAIMS: Mapping[bytes, bytes] = MappingProxyType({})
DOT_SEGMENTS = "the path has got dot segments by a rewrite"
_METHOD = re.compile(TOKEN.decode() + "++")
_BAD_ID = "the request id is empty, or has characters that are no visible ASCII"
_TARGET = re.compile(r"\*|/[\x21\x22\x24-\x7e]*+")
_NO_BODY = NoBody()


def _is_id(text: str) -> bool:
    """Tell whether a text is visible ASCII, at least a character of it."""
    try:
        return text != "" and is_visible(text.encode("latin-1"))
    except UnicodeEncodeError:
        return False


def _gained_dot_segments(before: str, after: str) -> bool:
    """Tell whether a change made a path lead elsewhere: `/api../x` without its prefix `/api` does."""
    return has_dot_segments(after.encode()) and not has_dot_segments(before.encode())


class Request:
    """A request on its way to an upstream. What plugins change here is what is sent."""

    __slots__ = (
        "_given_id",
        "_given_method",
        "_source",
        "_wire",
        "authority",
        "body",
        "bytes_sent",
        "chain",
        "chooses_again",
        "claims",
        "client",
        "consumer",
        "content_length",
        "endpoints",
        "final_status",
        "forwarded_host",
        "headers",
        "host",
        "http_version",
        "id",
        "is_body_replaced",
        "is_id_given",
        "max_body",
        "method",
        "original_path",
        "original_query",
        "path",
        "port",
        "query",
        "response",
        "route",
        "routings",
        "scheme",
        "unreached",
        "upstream_address",
        "upstream_head",
        "upstream_host",
        "upstream_status",
        "upstreams",
        "variables",
    )

    def __init__(
        self,
        *,
        method: str = "GET",
        scheme: str = "http",
        host: str = "",
        authority: str | None = None,
        port: int = 80,
        path: str = "/",
        query: str = "",
        headers: Headers | None = None,
        client: str = "",
        request_id: str = "-",
        is_id_given: bool = False,
        http_version: str = "1.1",
        route: str = "",
        upstreams: str = "",
        content_length: int | None = 0,
        body: bytes | None = None,
        source: BodySource | None = None,
        claims: Mapping[bytes, bytes] = _NO_CLAIMS,
        forwarded_host: str = "",
        wire: Wire | None = None,
    ) -> None:
        self._wire: Wire = _NO_BODY if wire is None else wire
        self._given_id = request_id
        self.id = request_id
        """Sent as X-Request-ID, and in the access log."""
        self.is_id_given = is_id_given
        """The client sent the id; otherwise the gateway made it."""
        self.http_version = http_version
        """That the client speaks: `1.0`, `1.1` or `2`."""
        self._given_method = method
        """The caller has checked that it is a token."""
        self.method = method
        self.scheme = scheme
        """`http` or `https`: what the client spoke, or what a trusted proxy says that it did."""
        self.host = host
        """Lower case, without port; empty if an HTTP/1.0 client sent none."""
        self.authority = host if authority is None else authority
        """Host as the client sent it, with its port if it named one."""
        self.port = port
        """That the client connected to."""
        self.path = path
        """As sent, not decoded; begins with `/` (or is `*` for OPTIONS)."""
        self.query = query
        """As sent, without its `?`."""
        self.original_path = path
        self.original_query = query
        self.routings = 0
        """How often the route was chosen again."""
        self.chooses_again = False  # See `choose_again`.
        self.unreached: frozenset[object] = _NONE
        """Nested plugins behind the one that has answered it."""
        self.headers = Headers() if headers is None else headers
        """All that goes to the upstream but Host, X-Request-ID and what frames the message."""
        self.client = client
        """Address of the client, the one that trusted proxies name where there are such; a plugin may know better."""
        self.forwarded_host = forwarded_host
        """Host, with its port, that a trusted proxy forwarded and that the upstream gets; empty: it gets `authority`.
        Clients may have written it, so that nothing may be allowed by it."""
        self.claims = claims
        """What the client sent as `x-forwarded-for` and the like, by name: the upstream gets the gateway's own."""
        self.route = route
        """`host|route name`."""
        self.upstreams = upstreams
        """Keys of the upstreams that the route may choose from, with commas between them."""
        self.variables: dict[str, object] = {}
        """What plugins tell each other about this request; text values can be used as `$name` in templates."""
        self.consumer: KnownConsumer | None = None
        """Whose request it is, as far as a plugin has found that out."""
        self.chain: object = None
        """The `PluginChain` that its consumer leads to, if that is not the route's."""
        self.upstream_host: str | None = None
        """Host that is sent instead of the client's."""
        self.endpoints: Endpoints | None = None
        """The upstream to send to instead of the route's backends; from `PluginServices.find_upstream`."""
        self.upstream_status = 0
        """What the upstream answered, or 502 or 504 if it did not; 0 before, and if it was not asked."""
        self.upstream_address = ""
        """`address:port` of the endpoint that was asked last; known when the request has ended."""
        self.upstream_head = b""
        """Header lines of the upstream's answer as they came."""
        self.response: Response | None = None
        """The answer, from when there is one until the request has ended."""
        self.final_status = 0
        """What the client got; known when the request has ended."""
        self.bytes_sent = 0
        """Of the answer's body; known when the request has ended."""
        self.content_length = content_length
        """Bytes of the body; None if it is chunked."""
        self.max_body: int | None = None
        """Set it to refuse a body with more bytes, with 413, as it comes."""
        self.body = body
        """None until it is read. A body that no plugin reads streams."""
        self.is_body_replaced = False
        self._source: BodySource = _NO_BODY if source is None else source

    def fault(self) -> str:
        """Say what is wrong with what plugins made of the request line; empty if it can be sent."""
        if not _METHOD.fullmatch(self.method):
            return "the method is no token"
        if not _TARGET.fullmatch(self.target):
            return (
                "the path does not begin with a slash, or has a space, a `#`, a control character or one beyond ASCII"
            )
        if self.path != self.original_path and _gained_dot_segments(self.original_path, self.path):
            return DOT_SEGMENTS
        if self.upstream_host is not None and not HOST.fullmatch(self.upstream_host.encode("latin-1", "replace")):
            return "the host is no host"
        if not _is_id(self.id):
            return _BAD_ID
        return ""

    def fault_of_changes(self) -> str:
        """Say the same of what plugins have changed since it was made: the rest was checked when it was read."""
        if self.is_line_changed:
            return self.fault()
        return "" if self.id is self._given_id or _is_id(self.id) else _BAD_ID

    def begin_again(self, original_target: str, routings: int, variables: dict[str, object]) -> None:
        """Go on as a request that has had other routes."""
        self.original_path, _, self.original_query = original_target.partition("?")
        self.routings = routings
        self.variables = variables

    def choose_again(self) -> "Response":
        """Have the route chosen again for the changed path; a plugin returns what this gives from `on_request`."""
        self.chooses_again = True
        return Response.refusal(500, "the path was rewritten for another route more than 10 times")

    @property
    def is_line_changed(self) -> bool:
        """Plugins have changed the method, the target or the host."""
        return self.upstream_host is not None or self.method is not self._given_method or self.is_target_changed

    @property
    def is_target_changed(self) -> bool:
        """Plugins have changed the path or the query."""
        return self.path != self.original_path or self.query != self.original_query

    @property
    def target(self) -> str:
        """Path and query as they will be sent."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def original_target(self) -> str:
        """Path and query as the client sent them."""
        return f"{self.original_path}?{self.original_query}" if self.original_query else self.original_path

    @property
    def endpoint(self) -> str:
        """`address:port` of the endpoint that was asked last, or is being asked; empty if none is."""
        return self.upstream_address or self._wire.fact("upstream_addr")

    def fact(self, name: str) -> str:
        """Return what the connection knows; see `Wire`."""
        return self._wire.fact(name)

    @property
    def connection_scheme(self) -> str:
        """`http` or `https`: what the connection speaks, whatever a trusted proxy says of its client."""
        return "https" if self.fact("ssl_protocol") else "http"

    def upstream_headers(self) -> Headers:
        """Return the headers of the upstream's answer as they came."""
        return Headers.from_lines(self.upstream_head)

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body, waiting for it if need be; then it is sent from memory.

        Raises:
            BodyTooLarge: it is longer than `limit` bytes.
        """
        if self.body is None:
            if self.content_length is not None and self.content_length > limit:
                raise BodyTooLarge(f"body of {self.content_length} bytes where {limit} are taken")
            self.body = await self._source.read_body(limit)
        if len(self.body) > limit:
            raise BodyTooLarge(f"body of {len(self.body)} bytes where {limit} are taken")
        return self.body

    async def hold_body(self, limit: int) -> None:
        """Wait for the whole body, so that it can be sent again; one with more than `limit` bytes is not waited for."""
        await self._source.hold_body(limit)

    def forget_source(self) -> None:
        """Let go of the client's connection and of the answer: the request has ended."""
        self._source = self._wire = _NO_BODY
        self.response = None

    def wait_for(self, seconds: float) -> None:
        """Give the hook that is running so long from now on, instead of the gateway's `read_timeout`.

        The time that the route allows for the whole request holds all the same.
        """
        self._wire.wait_for(seconds)

    async def dispatch(self, asked: Asked, *, timeout_s: float, max_body: int) -> "Response":
        """Serve another request as if the client had sent it over the same connection; return the whole answer.

        Raises:
            TimeoutError: there is none in time.
            OSError: the request cannot be sent, comes from such a request itself, or its answer was cut off.
            BodyTooLarge: the answer's body has more than `max_body` bytes.
        """
        status, headers, body = await self._wire.dispatch(asked, timeout_s=timeout_s, max_body=max_body)
        return Response(status, headers, body, from_upstream=True)

    def replace_body(self, body: bytes) -> None:
        """Send this instead of what the client sends."""
        self.body = body
        self.content_length = len(body)
        self.is_body_replaced = True


class Response:
    """An answer on its way to the client. What plugins change here is what the client gets."""

    __slots__ = (
        "_source",
        "body",
        "content_length",
        "from_upstream",
        "headers",
        "is_refusal",
        "names_server",
        "pacing",
        "reason",
        "status",
        "stream",
    )

    def __init__(
        self,
        status: int,
        headers: Headers | None = None,
        body: bytes | None = b"",
        *,
        from_upstream: bool = False,
        content_length: int | None = None,
        reason: str = "",
        source: AnswerSource | None = None,
        stream: BodyStream | None = None,
    ) -> None:
        self._source: AnswerSource = _NO_BODY if source is None else source
        self.stream = stream
        """Where the body comes from, for an answer of a plugin whose `body` is None."""
        self.status = status
        self.headers = Headers() if headers is None else headers
        """Without those that frame the message."""
        self.body = body
        """None while it streams from the upstream; set it, and the upstream's is thrown away."""
        self.content_length = content_length
        """Bytes of a body that streams, if the upstream said so."""
        self.from_upstream = from_upstream
        """False for answers of plugins and of the gateway itself."""
        self.reason = reason
        """For the access log: why this is not the upstream's answer."""
        self.is_refusal = False
        """One of the gateway's own errors, whose body says no more than a client may know."""
        self.pacing: Pacing | None = None
        self.names_server = True
        """Whether the gateway says who it is where there is no field `Server`."""

    @classmethod
    def text(cls, status: int, text: str, *, reason: str = "", content_type: str = "text/plain") -> "Response":
        """Make an answer with a short text."""
        headers = Headers([("Content-Type", f"{content_type}; charset=utf-8")])
        return cls(status, headers, text.encode(), reason=reason)

    @classmethod
    def json(cls, status: int, content: JsonValue, *, reason: str = "") -> "Response":
        """Make an answer in JSON."""
        headers = Headers([("Content-Type", "application/json; charset=utf-8")])
        return cls(status, headers, json.dumps(content).encode() + b"\n", reason=reason)

    @classmethod
    def refusal(cls, status: int, reason: str) -> "Response":
        """Make an answer that says why a request is not served, in the form of the gateway's own errors.

        A client reads the reason where the request is at fault (4xx); otherwise `explain` has to be called.
        """
        response = cls.text(status, error_text(status, reason, detailed=False), reason=reason)
        response.is_refusal = True
        return response

    @classmethod
    def busy(cls, reason: str) -> "Response":
        """Make a refusal of a request that the gateway has no room for now."""
        response = cls.refusal(503, reason)
        response.headers.set("Retry-After", "1")
        return response

    def explain(self) -> None:
        """Let the client read the reason of a refusal, whatever its status. What plugins then make of it stays."""
        if self.is_refusal:
            self.is_refusal = False
            self.body = error_text(self.status, self.reason, detailed=True).encode("ascii")
            self.headers.set("x-headgate-reason", printable(self.reason))

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body, waiting for it if need be; then it is sent from memory, without trailers.

        For `on_response`. An answer to HEAD has none to read, and its `Content-Length` would be lost.

        Raises:
            BodyTooLarge: it is longer than `limit` bytes.
        """
        body = self.body
        if body is None:
            if self.content_length is not None and self.content_length > limit:
                raise BodyTooLarge(f"body of {self.content_length} bytes where {limit} are taken")
            stream = self.stream
            body = self.body = await (collect(stream, limit) if stream else self._source.read_answer(limit))
        if len(body) > limit:
            raise BodyTooLarge(f"body of {len(body)} bytes where {limit} are taken")
        return body

    async def peek_body(self, size: int, seconds: float) -> bytes:
        """Return how the body begins, without holding back the rest: what is there once `size` bytes are, or its end,
        or that time has passed.

        For `on_response`. Of a plugin's answer that streams nothing is known.
        """
        body = self.body
        if body is not None:
            return body
        return b"" if self.stream is not None else await self._source.peek_answer(size, seconds)

    @property
    def is_bodiless(self) -> bool:
        """No body whatever the method: 1xx, 204, 304."""
        return self.status < 200 or self.status in (204, 304)

    def replace(self, other: "Response") -> None:
        """Become another answer."""
        self.status = other.status
        self.headers = other.headers
        self.body = other.body
        self.content_length = other.content_length
        self.reason = other.reason or self.reason
        self.is_refusal = other.is_refusal
        self.from_upstream = other.from_upstream
        self.reason = other.reason
        self.stream = other.stream
        self._source = other._source  # noqa: SLF001 - of the same class
