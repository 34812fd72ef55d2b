"""Requests that a plugin makes in the name of a client: they go the way of all requests, from the choice of a route on.

Who the client is they have from the request that they belong to: its connection, and what proxies in front have said.
"""

import asyncio
import re
from typing import TYPE_CHECKING, Final

from headgate.common.plugins.fields import HEADER_NAME, BadHeader, checked_value
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Response
from headgate.gateway.plugins.interface.sources import Answered, Asked
from headgate.gateway.plugins.runtime.upstream_calls import Call
from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.heads.grammar import TOKEN
from headgate.gateway.proxy.heads.reading import read_request_fields

if TYPE_CHECKING:
    from headgate.gateway.proxy.exchange.exchange import Exchange

_METHOD: Final = re.compile(TOKEN + rb"++")
_TARGET: Final = re.compile(rb"/[\x21\x22\x24-\x7e]*+")
_NOT_TAKEN: Final = frozenset(
    (
        "connection",
        "content-length",
        "expect",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)


class SubRequest(Call):
    """Takes the answer to one of them."""

    __slots__ = ()

    def _finish(self) -> None:
        exchange, answer = self.exchange, self._answer
        exchange.finish()
        if self.outcome.done() or answer is None:
            return
        headers = Headers.from_lines(answer.lines)
        self.outcome.set_result(Response(answer.status, headers, b"".join(self._pieces), from_upstream=True))


async def dispatch(outer: "Exchange", asked: Asked, *, timeout_s: float, max_body: int) -> Answered:
    """Serve a request that belongs to another one; see `Request.dispatch`."""
    if isinstance(outer.client, SubRequest):
        raise ConnectionRefusedError("a request that a plugin has made makes no further ones")
    context = outer.context
    target = asked.target.encode("latin-1", "replace")
    method = asked.method.encode("latin-1", "replace")
    if not _METHOD.fullmatch(method):
        raise ConnectionRefusedError("a request that cannot be sent: its method is none")
    if not _TARGET.fullmatch(target) or len(target) > context.config.max_target:
        raise ConnectionRefusedError("a request that cannot be sent: its target is none, or too long")
    if context.config.max_body is not None and len(asked.body) > context.config.max_body:
        raise ConnectionRefusedError("a request that cannot be sent: its body is too long")
    names, values = _fields(asked)
    if sum(map(len, names)) + sum(map(len, values)) > context.config.max_head:
        raise ConnectionRefusedError("a request that cannot be sent: its headers are too long")
    try:
        fields = read_request_fields((names, values), context.config.max_header_count, context.rules)
    except BadMessage as error:
        raise ConnectionRefusedError(f"a request that cannot be sent: {error}") from error
    # What its maker says of the client counts for nothing.
    fields.forwarded = dict(outer.fields.forwarded)
    body = asked.body
    fields.content_length = len(body) if body else -1
    call = SubRequest(context, max_body, asyncio.get_running_loop().create_future())
    call.peer = outer.client.peer
    exchange = call.exchange
    try:
        async with asyncio.timeout(timeout_s):
            exchange.begin(method, target, fields)
            exchange.dispatch(target.partition(b"?")[0], body, done=True)
            answer = await call.outcome
            return Answered(answer.status, answer.headers, answer.body or b"")
    finally:
        exchange.abandon()


def _fields(asked: Asked) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return names and values as a parser finds them. Raises ConnectionRefusedError."""
    names: list[bytes] = []
    values: list[bytes] = []
    for name, value in asked.headers:
        if name.lower() in _NOT_TAKEN:
            continue
        try:
            if not HEADER_NAME.fullmatch(name):
                raise BadHeader(f"{name[:80]!r} is not the name of a header")
            values.append(checked_value(value).encode("latin-1"))
        except BadHeader as error:
            raise ConnectionRefusedError(str(error)) from error
        names.append(name.encode("latin-1"))
    return tuple(names), tuple(values)
