"""A real HTTP server in the test that stands for a provider of models; it answers as the test says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.kit.calls import make_client

CHAT = {
    "choices": [{"message": {"role": "assistant", "content": "1 + 1 = 2."}}],
    "usage": {"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10},
}


@dataclass
class Asked:
    """One request that reached the provider."""

    method: str
    target: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class FakeProvider:
    """A running one."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    services: PluginServices = field(default_factory=PluginServices)


Answer = Callable[[Asked, web.BaseRequest], Awaitable[web.StreamResponse]]


def says(content: Any, status: int = 200, **headers: str) -> Answer:
    async def answer(asked: Asked, request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response(content, status=status, headers=headers)

    return answer


def in_events(*events: str | float, status: int = 200) -> Answer:
    """Answer with pieces of events, and pauses in seconds between them."""

    async def answer(asked: Asked, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for each in events:
                if isinstance(each, str):
                    await response.write(each.encode())
                else:
                    await asyncio.sleep(each)
        return response

    return answer


@asynccontextmanager
async def fake_provider(answer: Answer) -> AsyncIterator[FakeProvider]:
    provider = FakeProvider()

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        asked = Asked(request.method, request.raw_path, dict(request.headers), await request.read())
        provider.asked.append(asked)
        return await answer(asked, request)

    runner = web.ServerRunner(web.Server(serve), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    client = make_client()
    host, port = runner.addresses[0][:2]
    provider.url = f"http://{host}:{port}"
    provider.services = PluginServices(http=lambda: client)
    try:
        yield provider
    finally:
        await client.close()
        await runner.cleanup()
