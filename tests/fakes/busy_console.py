"""A stack with a console, as many routes as a large cluster has, traffic, and changes under way."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.translator.manifests import ingress, service, write
from headgate.common.service.tasks import cancel
from headgate.console.commands import ANSWER_S

HOST = "shop.example"
FAILING = "broken.example"
ROUTES = 10_000
_PER_FILE = 500
_BOUND_S = 60.0


class BusyConsole:
    """What runs, and where its parts are."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.url = f"http://127.0.0.1:{stack.console_port}"
        self.took: dict[str, float] = {}
        """Seconds of each question, by what was asked."""

    async def page(self, path: str) -> str:
        """Return a page, and note how long it took."""

        def read() -> str:
            with urlopen(f"{self.url}{path}", timeout=ANSWER_S) as answer:
                return str(answer.read().decode())

        began = time.perf_counter()
        found = await asyncio.to_thread(read)
        self.took[path] = time.perf_counter() - began
        return found

    def metrics(self) -> str:
        """Return what the gateway says of itself."""
        with urlopen(f"http://127.0.0.1:{self.stack.admin_port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    async def api(self, path: str) -> Any:
        return json.loads(await self.page(f"/api/v1{path}"))

    async def until(self, path: str, check: Any) -> Any:
        async with asyncio.timeout(_BOUND_S):
            while True:
                try:
                    if check(found := await self.api(path)):
                        return found
                except OSError:
                    pass  # the console begins after the gateway
                await asyncio.sleep(0.2)

    async def change(self, number: int) -> None:
        """Change a route, whose revision the console shows."""
        write(self.folder, "changing.yaml", ingress("changing", f"changing-{number}.example", "web"))
        await self.until(f"/routes?q=changing-{number}.example", lambda said: said["total"])


@asynccontextmanager
async def busy_console(folder: Path, routes: int = ROUTES) -> AsyncIterator[BusyConsole]:
    """Serve so many routes, ask two of them again and again, and change another one."""
    async with AsyncExitStack() as stacked:
        web = await stacked.enter_async_context(EchoServer("web"))
        write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", web.port))
        write(folder, "broken.yaml", ingress("broken", FAILING, "gone"), ingress("old", "shop-old.example", "web"))
        for start in range(0, routes, _PER_FILE):
            sites = (ingress(f"site-{at:05}", f"site-{at:05}.example", "web") for at in range(start, start + _PER_FILE))
            write(folder, f"sites-{start:05}.yaml", *sites)
        stack = await stacked.enter_async_context(Stack(manifests=folder, has_console=True, start_within_s=120))
        await stack.wait_for_answer(HOST, "/", name="web")
        made = BusyConsole(stack, folder)
        await made.until("/now", lambda said: said["routes"] > routes)

        async def ask() -> None:
            while True:
                await stack.get(HOST, "/cart", headers={"X-Kind": "a"})
                await stack.get(FAILING, "/")
                await asyncio.sleep(0.02)

        asking = asyncio.create_task(ask())
        try:
            yield made
        finally:
            await cancel(asking)
