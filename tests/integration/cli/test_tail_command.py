"""`headgate tail` beside workers that heed it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from fakes.gateway.served_history import History, empty_history
from fakes.traffic import summary
from headgate.common.service.tasks import cancel
from headgate.common.traffic import Tap, TappedRequest

REQUEST = TappedRequest(
    *((), 1.0, "GET", "a.example", "/a\x1b[2J", 503, 0.25, 5, "192.0.2.1", "id-1"),
    *("a.example|local/a", "up", "10.0.0.1:80", "no endpoint answered"),
)


@asynccontextmanager
async def heeded() -> AsyncIterator[tuple[History, list[Tap]]]:
    """Answer every wish with one request, and one that another wish is for."""
    wishes: list[Tap] = []

    async def heed(history: History) -> None:
        async for tap in history.stores.traffic.taps("default"):
            wishes.append(tap)
            theirs = msgspec.structs.replace(REQUEST, taps=("other",), path="/theirs")
            ours = msgspec.structs.replace(REQUEST, taps=("other", tap.id))
            await history.stores.traffic.tell(summary(tapped=(theirs, ours), untold=3))

    async with empty_history() as history:
        heeding = asyncio.create_task(heed(history))
        try:
            yield history, wishes
        finally:
            await cancel(heeding)


async def test_requests_are_printed_without_what_would_move_the_cursor() -> None:
    async with heeded() as (history, _):
        said = await history.ask("tail", "--limit=2")
        [line, _] = said.out.splitlines()
        assert "503   250.0 ms GET a.example/a?[2J -> 10.0.0.1:80 of a.example|local/a from 192.0.2.1 id-1" in line
        assert "(no endpoint answered)" in line
        assert "... and 3 more of gw, worker 0" in said.err


async def test_filters_are_what_gateways_are_asked_for() -> None:
    async with heeded() as (history, wishes):
        filters = ("--host=A.example", "--path=/a", "--status=5xx", "--status=404", "--slower=250ms", "--share=0.5")
        said: Any = (await history.ask("tail", "--limit=1", "--json", *filters, "--client=192.0.2.1")).json
        assert (said["status"], said["request_id"], said["at"]) == (503, "id-1", "1970-01-01T00:00:01.000+00:00")
        wish = msgspec.structs.replace(wishes[-1], id="t")
        assert wish == Tap(
            "t", "a.example", path="/a", statuses=(5, 404), client="192.0.2.1", slower_than_s=0.25, share=0.5
        )


async def test_filters_that_cannot_be_read_are_named() -> None:
    async with empty_history() as history:
        said = await history.ask("tail", "--status=6xx", code=2)
        assert "--status '6xx': give a code such as 404" in said.err
        assert "--slower '5': give a time" in (await history.ask("tail", "--slower=5", code=2)).err
