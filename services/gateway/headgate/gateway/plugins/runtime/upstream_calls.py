"""Requests of the gateway's own to an upstream of the table, with the answer as a whole: for plugins.

A call is a client's side without a client. It goes the way of every request from the choice of an endpoint on, with the
same pools, retries, health and bounds.
"""

import asyncio
import math
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.interface.targets import Endpoints as ChosenEndpoints
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.errors import BodyTooLarge
from headgate.gateway.proxy.exchange.exchange import Exchange
from headgate.gateway.proxy.heads.head import AnswerHead, RequestFields
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.request_source import RequestSource
from headgate.gateway.proxy.seam import Endpoints
from headgate.gateway.proxy.sides import ClientSide
from headgate.gateway.proxy.traffic import RouteTraffic

_NOBODY: Final = Peer(b"-", b"http", b"0")


class CallTarget:
    """The route of a call: one upstream, and nothing else."""

    __slots__ = (
        "_endpoints",
        "connect_timeout_s",
        "name",
        "policies",
        "read_timeout_s",
        "send_timeout_s",
        "traffic",
        "upstream_label",
    )

    def __init__(self, upstream: str, endpoints: Endpoints, timeout_s: float) -> None:
        self.name = "plugin call"
        self.upstream_label = upstream
        self.connect_timeout_s: float | None = None
        self.send_timeout_s: float | None = None
        self.read_timeout_s: float | None = timeout_s
        self.policies: RoutePolicies | None = None
        self.traffic: RouteTraffic | None = None
        self._endpoints = endpoints

    def choose(self, tried: Collection[EndpointPool], source: RequestSource) -> EndpointPool | None:
        """Choose an endpoint."""
        return self._endpoints.choose(tried, source)

    def answer_lines(self, source: RequestSource, pool: EndpointPool) -> bytes:
        """Add nothing."""
        return b""

    @property
    def unavailable(self) -> str:
        """Why there is no endpoint."""
        return self._endpoints.unavailable


class Call(ClientSide):
    """Takes an answer for the one who waits for it."""

    __slots__ = ("_answer", "_max_body", "_pieces", "_size", "_trailers", "exchange", "outcome")

    def __init__(self, context: ProxyContext, max_body: int, outcome: "asyncio.Future[Response]") -> None:
        super().__init__()
        self.peer = _NOBODY
        self.deadline = math.inf
        self.outcome = outcome
        self.exchange = Exchange(self, context)
        self._max_body = max_body
        self._answer: AnswerHead | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._trailers = b""

    @property
    def version(self) -> bytes:
        """As the access log writes it."""
        return b"1.1"

    def send_answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Take head and first bytes."""
        self._answer = answer
        self.send_data(payload, done=done, trailers=trailers)

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Take more of the body."""
        self._trailers += trailers
        self._pieces.append(payload)
        self._size += len(payload)
        if self._size > self._max_body:
            self._fail(BodyTooLarge(f"answer of more than {self._max_body} bytes"))
            self.exchange.abandon()
        elif done:
            self._finish()

    def _finish(self) -> None:
        exchange, answer = self.exchange, self._answer
        reason = exchange.reason
        exchange.finish()
        if self.outcome.done() or answer is None:
            return
        if reason:
            # What the proxy says by itself is no answer of the upstream's.
            self._fail(TimeoutError(reason) if answer.status == 504 else ConnectionError(reason))
            return
        headers = Headers.from_lines(answer.lines)
        if self._trailers:
            _add_status(headers, Headers.from_lines(self._trailers))
        self.outcome.set_result(Response(answer.status, headers, b"".join(self._pieces), from_upstream=True))

    def _fail(self, error: Exception) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(error)

    def send_informational(self, answer: AnswerHead) -> None:
        """Pass over."""

    def send_continue(self) -> None:
        """Pass over: the body is there."""

    def cut_off(self) -> None:
        """Fail, as the answer will never be whole."""
        self._fail(ConnectionError("the answer was cut off"))

    def taken(self) -> int:
        """Count all that came."""
        return self._size

    def unsent(self) -> int:
        """Count nothing: all is taken at once."""
        return 0

    def abort(self) -> None:
        """Fail."""
        self._fail(ConnectionError("the call was given up"))

    def update_reading(self) -> None:
        """Do nothing: the body is there."""


def _add_status(headers: Headers, trailers: Headers) -> None:
    """Take over how a call of gRPC has ended; other trailers are no headers (RFC 9110 section 6.5.1)."""
    for name in ("grpc-status", "grpc-message"):
        value = trailers.get(name)
        if value is not None:
            headers.set(name, value)


class Calls:
    """Sends calls.

    Args:
        context: of the proxy.
        find: gives the endpoints of an upstream key; None: it is not in the table.
    """

    def __init__(self, context: ProxyContext, find: Callable[[str], Endpoints | None]) -> None:
        self._context = replace(context, access_log=None)
        """Calls are a part of the requests that are logged."""
        self._find = find

    async def send_to(
        self, upstream: "str | ChosenEndpoints", request: Request, *, timeout_s: float, max_body: int
    ) -> Response:
        """Send a plugin's request to an endpoint of an upstream, or to one of these; the `SendTo` of plugins.

        Raises:
            OSError: there is no answer.
            TimeoutError: none in time.
            BodyTooLarge: its body has more than `max_body` bytes.
        """
        fault = request.fault()
        if fault:
            raise ConnectionRefusedError(f"a request that cannot be sent: {fault}")
        key, endpoints = (upstream, self._find(upstream)) if isinstance(upstream, str) else (upstream.key, upstream)
        if endpoints is None:
            raise ConnectionRefusedError(f"there is no upstream {upstream}")
        call = Call(self._context, max_body, asyncio.get_running_loop().create_future())
        exchange = call.exchange
        body = request.body or b""
        fields = RequestFields()
        fields.host = request.host.encode("latin-1")
        fields.host_line = (request.upstream_host or request.authority).encode("latin-1")
        fields.content_length = len(body) if body else -1
        exchange.begin(request.method.encode("latin-1"), request.target.encode("latin-1"), fields)
        exchange.lines = request.headers.to_lines()
        try:
            async with asyncio.timeout(timeout_s):
                exchange.call(CallTarget(key, endpoints, timeout_s), body)
                return await call.outcome
        finally:
            exchange.abandon()
