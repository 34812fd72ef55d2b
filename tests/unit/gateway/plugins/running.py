"""Running chains on requests and answers, as the proxy does."""

import inspect
from collections.abc import Iterable
from typing import Any

from headgate.common.sealing import ClusterValue, Purpose
from headgate.common.secret import Secret
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Headers, PluginServices, Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.registry import PluginRegistry

REGISTRY = PluginRegistry(found=())


def unsealed(sealed: ClusterValue, purpose: Purpose) -> Secret[bytes]:
    """Take the only box for the value itself."""
    return Secret(next(iter(sealed.boxes.values())).encode())


def chain(*uses: tuple[str, dict[str, Any]], services: PluginServices | None = None, scope: str = "a|r") -> PluginChain:
    """Make a chain of built-in plugins."""
    made = REGISTRY.chain(
        [PluginUse(name=name, config=config) for name, config in uses],
        services or PluginServices(),
        unsealed,
        scope=scope,
    )
    assert made is not None
    return made


def request(target: str = "/", headers: Iterable[tuple[str, str]] = (), **given: Any) -> Request:
    """Make a request."""
    path, _, query = target.partition("?")
    given = {"host": "a.example", "client": "192.0.2.1", "request_id": "id-1", "route": "a|r", **given}
    return Request(path=path, query=query, headers=Headers(headers), **given)


async def asked(plugins: PluginChain, asking: Request) -> Response | None:
    """Run the request hooks."""
    outcome = plugins.on_request(asking)
    return await outcome if inspect.isawaitable(outcome) else outcome


async def answered(
    plugins: PluginChain, asking: Request, answer: Response, body: bytes | Iterable[bytes] | None = None
) -> Response:
    """Run the response hooks and filters; with a `body` it streams from an upstream, in the pieces given."""
    if body is not None:
        answer.body = None
        answer.from_upstream = True
    pending = plugins.on_response(asking, answer)
    if pending is not None:
        await pending
    joined = plugins.response_filter(asking, answer)
    if answer.body is None:
        pieces = [body] if isinstance(body, bytes) else list(body or ())
        answer.body = b"".join(pieces if joined is None else [*map(joined.feed, pieces), joined.finish()])
    return answer


async def exchanged(plugins: PluginChain, asking: Request, answer: Response | None = None) -> Response:
    """Run both; without an answer of a plugin the upstream's is the given one, by default `200 OK`."""
    given = await asked(plugins, asking)
    if given is None:
        given = answer or Response(200, Headers([("Content-Type", "text/plain")]), b"fine", from_upstream=True)
    return await answered(plugins, asking, given)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
