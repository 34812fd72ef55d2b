"""A console beside a table with a history, and a client that asks it.

async with console(ingress("web", host="a.example")) as made:
    answer = await made.api("/routes")
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from fakes.gateway.ports import free_port
from fakes.gateway.served_history import History, served_history
from headgate.common.service.settings import load_settings
from headgate.common.service.tasks import cancel
from headgate.common.stores.opening import combine, tables_of
from headgate.common.traffic import TrafficSummary
from headgate.console.commands import Commands
from headgate.console.live.gateway_site import GatewaySite
from headgate.console.live.view import LiveView
from headgate.console.settings import ConsoleSettings
from headgate.console.site import make_site

BOUND_S = 30.0
VIEWER, OPERATOR = "a viewer's token", "an operator's token"


class Got(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    headers: Any

    @property
    def text(self) -> str:
        return self.body.decode()


class Console:
    """A running console."""

    def __init__(self, history: History, view: LiveView, port: int, session: aiohttp.ClientSession) -> None:
        self.history, self.view, self.session = history, view, session
        self.url = f"http://127.0.0.1:{port}"

    async def get(self, path: str, token: str = "", **headers: str) -> Got:
        return await self.ask("GET", path, token, **headers)

    async def ask(
        self, method: str, path: str, token: str = "", json: Any = None, data: Any = None, **headers: str
    ) -> Got:
        """Ask once; header names have `_` for `-`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        async with self.session.request(
            method, self.url + path, headers=sent, json=json, data=data, allow_redirects=False
        ) as answer:
            return Got(answer.status, await answer.read(), answer.headers)

    async def api(self, path: str, token: str = "") -> Any:
        """Return the answer to a question, which has one."""
        async with self.session.get(
            f"{self.url}/api/v1{path}", headers={"Authorization": f"Bearer {token}"} if token else {}
        ) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def until(self, path: str, check: Any) -> Any:
        """Return the first answer that satisfies a check."""
        async with asyncio.timeout(BOUND_S):
            while True:
                found = await self.api(path)
                if check(found):
                    return found
                await asyncio.sleep(0.05)

    async def events(self, path: str, count: int, **headers: str) -> list[str]:
        """Return the first lines of a stream of events."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        lines: list[str] = []
        async with asyncio.timeout(BOUND_S), self.session.get(f"{self.url}{path}", headers=sent) as answer:
            async for line in answer.content:
                if text := line.decode().rstrip():
                    lines.append(text)
                if len(lines) >= count:
                    return lines
        return lines


@asynccontextmanager
async def console(
    *manifests: Any,
    summaries: Sequence[TrafficSummary] = (),
    flags: Sequence[str] = (),
    gateway_url: str = "http://127.0.0.1:9",
    port: int = 0,
) -> AsyncIterator[Console]:
    """Run a console beside the table that some objects make, and traffic that is told again and again."""
    port = port or free_port()
    settings = load_settings(
        ConsoleSettings, [f"--console-port={port}", *flags], program="headgate console", summary=""
    )

    async def tell(history: History) -> None:
        while summaries:
            for each in summaries:
                await history.stores.traffic.tell(each)
            await asyncio.sleep(0.1)

    async with served_history(*manifests) as history:
        gateway = GatewaySite(gateway_url)
        commands = Commands(settings.model_copy(update={"nats_url": history.url}), "default")
        view = LiveView(combine(history.stores, tables_of(history.stores)), "default", gateway, commands)
        runner = web.AppRunner(make_site(view, settings), access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        tasks = [asyncio.create_task(view.run()), asyncio.create_task(tell(history))]
        try:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                made = Console(history, view, port, session)
                async with asyncio.timeout(BOUND_S):
                    while view.served is None or view.report is None:  # noqa: ASYNC110 - followed in the background
                        await asyncio.sleep(0.02)
                yield made
        finally:
            with suppress(asyncio.CancelledError):
                await cancel(*tasks)
            await runner.cleanup()
            await gateway.close()


def people_file(folder: Path) -> Path:
    """Write a file with a viewer and an operator."""
    path = folder / "people.toml"
    path.write_text(
        "".join(
            f'[[people]]\nname = "{name}"\nrole = "{role}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n'
            for name, role, token in (("bob", "viewer", VIEWER), ("ada", "operator", OPERATOR))
        )
    )
    return path
