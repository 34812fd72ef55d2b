"""`headgate top`, `tail` and `endpoints` on a whole stack with traffic, over both stores."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes.command import headgate
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.stores.redis import real_redis
from fakes.translator.manifests import ingress, service, write
from headgate.common.service.tasks import cancel

HOST = "web.example"


@asynccontextmanager
async def busy_stack(folder: Path, store: str) -> AsyncIterator[Stack]:
    """Serve two hosts, of which one asks again and again and the other is not served."""

    async def ask(stack: Stack) -> None:
        while True:
            await stack.get(HOST, "/cart?token=secret")
            await stack.get("nobody.example", "/")
            await asyncio.sleep(0.02)

    async with AsyncExitStack() as stacked:
        red = await stacked.enter_async_context(EchoServer("red"))
        flags = []
        if store == "redis":
            flags = [f"--store={(await stacked.enter_async_context(real_redis())).url}"]
        write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", red.port))
        stack = await stacked.enter_async_context(Stack(manifests=folder, workers=2, extra=flags))
        await stack.wait_for_answer(HOST, "/", name="red")
        asking = asyncio.create_task(ask(stack))
        try:
            yield stack
        finally:
            await cancel(asking)


async def said(stack: Stack, *words: str) -> Any:
    return (await headgate(*words, f"--data-dir={stack.data_dir}", "--json")).json


@pytest.mark.parametrize("store", ["nats", "redis"])
async def test_what_goes_through_all_workers_is_seen_as_it_happens(tmp_path: Path, store: str) -> None:
    async with busy_stack(tmp_path, store) as stack:
        routes = await said(stack, "top", "--for=2")
        by_name = {line["route"]: line for line in routes["lines"]}
        [name] = [name for name in by_name if name.startswith(f"{HOST}|")]
        assert by_name[name]["answers"]["2xx"] == by_name[name]["requests"] > 0
        assert by_name[""]["answers"]["4xx"] == by_name[""]["requests"] > 0
        assert by_name[name]["p99_ms"] > 0
        [endpoint] = (await said(stack, "top", "--endpoint", "--for=2"))["lines"]
        assert endpoint["endpoint"].startswith("127.0.0.1:")
        tapped = await said(stack, "tail", "--limit=1", f"--host={HOST}")
        assert (tapped["path"], tapped["status"], tapped["route"]) == ("/cart", 200, name)
        endpoints = await said(stack, "endpoints", "--all")
        assert [line["state"] for line in endpoints["endpoints"]] == ["ready"]
