"""`headgate explain` with a real log and real tables: broken objects that want the host, and tables of the past."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from fakes.gateway.served_history import History, served_history
from fakes.translator.apisix import route, rule
from fakes.translator.deltas import applied, endpoint_slice, ingress, service

BASE = (
    service(),
    service("old"),
    endpoint_slice("web", "10.0.0.1"),
    endpoint_slice("old", "10.0.0.2"),
    ingress("web", host="a.example", service="old"),
)
NOTHING = {"version": "1.7", "method": "GET", "virtual_host": None, "winner": None, "candidates": []}


@asynccontextmanager
async def gateway(url: str) -> AsyncIterator[str]:
    """An admin site whose gateway has nothing for a URL."""
    host, _, path = url.partition("/")

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({**NOTHING, "host": host, "path": f"/{path}", "verdict": "404: nothing"})

    app = web.Application()
    app.router.add_get("/explain", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ask(history: History, url: str, *flags: str) -> str:
    async with gateway(url) as admin:
        return (await history.ask("explain", "GET", url, f"--admin-url={admin}", *flags, code=1)).out


async def ask_until_told(history: History, url: str, expected: str) -> str:
    """Ask until the board has a status, which is posted after the revision."""
    async with asyncio.timeout(20):
        while expected not in (told := await ask(history, url)):
            pass
    return told


async def test_a_broken_object_is_named_at_the_hosts_that_it_asks_for() -> None:
    async with served_history(*BASE) as history:
        await history.say(ingress("broken", host="broken.example", path="no-slash"))
        told = await ask_until_told(history, "broken.example", "InvalidPath")
        assert "error: Ingress default/broken in a: its route broken.example is not served: spec.rules[0].http" in told
        assert "[InvalidPath]" in told
        assert "InvalidPath" not in await ask(history, "other.example")
        assert '"reason": "InvalidPath"' in await ask(history, "broken.example", "--json")


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (ingress("b", host="b.example", path="/api", port="none"), "Ingress default/b in a: "),
        (
            route(rule("r", "/api*", hosts=["b.example"], match_methods=["FETCH"])),
            "ApisixRoute default/route in a: its route b.example/api* is not served: spec.http[0].match.methods[0]",
        ),
    ],
)
async def test_a_broken_object_is_named_at_the_paths_that_it_asks_for(broken: Any, named: str) -> None:
    async with served_history(*BASE, watch_without_class=True) as history:
        await history.append(applied(broken))  # perhaps without a revision
        await ask_until_told(history, "b.example/api", f"error: {named}")
        assert named not in await ask(history, "b.example/other")


async def test_an_object_that_lost_a_host_to_another_namespace_is_named() -> None:
    async with served_history(*BASE) as history:
        guest = ingress("guest", host="a.example", namespace="other", created="2026-01-01T00:00:00Z")
        await history.say(service(namespace="other"), guest)
        assert "[HostNotOwned]" in await ask_until_told(history, "a.example", "Ingress other/guest in a: ")


async def test_a_table_of_the_past_decides() -> None:
    async with served_history(*BASE) as history:
        before = (await history.until(lambda _: True)).version
        await history.say(ingress("web", host="a.example", service="web"))
        for flag, backend in ((f"--revision={before}", "old"), ("--revision=HEAD", "web"), ("--at=0s", "web")):
            told = (await history.ask("explain", "GET", "a.example/", flag)).out
            assert f"a/default/{backend}:80 (100%): 1 of 1 endpoint" in told


@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        (["--revision=99"], 1, "there is no revision 99 yet"),
        (["--at=2000-01-01"], 1, "no revision is kept that is as old as '2000-01-01'"),
        (["--at=soon"], 2, "'soon' is no time"),
        (["--at=1h", "--revision=HEAD"], 2, "exclude each other"),
    ],
)
async def test_a_past_that_is_not_there_is_one_line(flags: list[str], code: int, told: str) -> None:
    async with served_history(*BASE) as history:
        answer = await history.ask("explain", "GET", "a.example/", *flags, code=code)
        assert told in answer.err
