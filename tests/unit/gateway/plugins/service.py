"""A service that plugins ask: a real server on loopback, and the client that the gateway gives them."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from headgate.gateway.plugins.interface import PluginServices, Request, Response, SendTo
from headgate.gateway.plugins.kit.calls import make_client


@dataclass
class Seen:
    """One request that reached the service."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Service:
    """A running service."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    services: PluginServices = field(default_factory=PluginServices)


Handler = Callable[[Seen], web.StreamResponse]


@asynccontextmanager
async def running(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Service]:
    """Serve, with `handler` called for each request."""
    service = Service()

    async def serve(asked: web.BaseRequest) -> web.StreamResponse:
        seen = Seen(asked.method, asked.raw_path, dict(asked.headers), await asked.read())
        service.seen.append(seen)
        return handler(seen)

    runner = web.ServerRunner(web.Server(serve))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    client = make_client()
    host, port = runner.addresses[0][:2]
    service.url = f"{'http' if tls is None else 'https'}://{host}:{port}"
    service.services = PluginServices(http=lambda: client)
    try:
        yield service
    finally:
        await client.close()
        await runner.cleanup()


def sending(answer: Callable[[str, Request], Response]) -> SendTo:
    """Stand for the table's upstreams."""

    async def send_to(upstream: str, request: Request, *, timeout_s: float, max_body: int) -> Response:
        return answer(upstream, request)

    return send_to
