"""Whatever a follower waits for, one cancellation ends it: services stop by cancelling, and none may hang."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from itertools import count

import pytest
from nats.aio import transport

from fakes.stores.cancelling import Moment, cancelled_at
from fakes.stores.nats import real_bus
from headgate.common.bus.connection import Bus
from headgate.common.service import tasks
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Pointer, Version
from headgate.common.stores.nats import NatsStores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOUND_S = 30.0
AWAITS = 24
"""Opening a consumer takes about ten; behind them comes what is waited for again and again."""


async def follow_pointer(stores: NatsStores) -> None:
    async with aclosing(stores.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
        async for _ in pointers:
            pass


async def follow_log(stores: NatsStores) -> None:
    async with aclosing(stores.log_reader.follow()) as log:  # type: ignore[type-var]
        async for _ in log:
            pass


async def read_the_live_workers(stores: NatsStores) -> None:
    while True:
        await stores.heartbeats.live()


@asynccontextmanager
async def busy_stores() -> AsyncIterator[NatsStores]:
    """Stores in which something happens every few milliseconds, so that followers never rest."""

    async def write(stores: NatsStores) -> None:
        for revision in count(1):
            pointer = Pointer(table="default", version=Version(1, revision), manifest_digest="0" * 64, committed_at=NOW)
            await stores.bus.publish("$KV.HEADGATE_TABLES.pointer.default", pointer.model_dump_json().encode())
            await stores.bus.publish("headgate.cluster.c1", b"not read")
            await asyncio.sleep(0.002)

    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        writing = asyncio.create_task(write(stores))
        try:
            yield stores
        finally:
            await cancel(writing)


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("follow", [follow_pointer, follow_log, read_the_live_workers])
async def test_a_cancellation_at_any_await_ends_a_follower(
    follow: Callable[[NatsStores], Awaitable[None]], moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "ASK_AGAIN_S", 10 * BOUND_S)  # nobody helps by asking twice
    async with busy_stores() as stores:
        for number in range(1, AWAITS):
            task = asyncio.create_task(cancelled_at(number, moment, follow(stores)))  # type: ignore[arg-type]
            await asyncio.wait([task], timeout=BOUND_S)
            assert task.cancelled(), f"await {number}: {task}"


def reconnection(bus: Bus) -> asyncio.Task[None] | None:
    """Return the client's task that reconnects."""
    return bus.nc._reconnection_task  # noqa: SLF001 - which it shows nowhere else


async def test_reconnecting_ends_when_it_is_cancelled_in_the_turn_in_which_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with real_bus() as (server, bus):
        refused = asyncio.Event()

        async def refuse(**_: object) -> None:
            reconnecting = reconnection(bus)
            if reconnecting is not None and not refused.is_set():
                refused.set()
                reconnecting.cancel()  # as closing the client does
            raise ConnectionRefusedError

        with monkeypatch.context() as patch:
            patch.setattr(transport.asyncio, "open_connection", refuse)
            await server.kill()
            async with asyncio.timeout(BOUND_S):
                await refused.wait()
                ended = reconnection(bus)
                assert ended is not None
                await asyncio.wait([ended])
