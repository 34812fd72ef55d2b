"""What the translator does for the streams, besides writing to them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from nats.js.errors import NotFoundError

from fakes.stores.nats import real_bus
from headgate.common.service.tasks import cancel
from headgate.common.stores.nats import NatsStores
from headgate.translator.leading import housekeeping
from headgate.translator.leading.housekeeping import keep_in_order

BOUND_S = 30.0


class CountedWriter:
    """Notes which clusters' deletions are forgotten."""

    def __init__(self) -> None:
        self.purged: asyncio.Queue[str] = asyncio.Queue()

    async def purge_tombstones(self, cluster: str) -> int:
        self.purged.put_nowait(cluster)
        return 0


@asynccontextmanager
async def kept(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[NatsStores, CountedWriter]]:
    monkeypatch.setattr(housekeeping, "LOOK_S", 0.02)
    monkeypatch.setattr(housekeeping, "PURGE_S", 0.06)
    async with real_bus() as (_, bus):
        stores, writer = await NatsStores.open(bus), CountedWriter()
        stores.log_writer = writer  # type: ignore[assignment]
        task = asyncio.create_task(keep_in_order(stores, lambda: frozenset({"paris"})))
        try:
            yield stores, writer
        finally:
            await cancel(task)


async def kept_messages(stores: NatsStores, stream: str) -> int | None:
    """How many messages of each subject a stream keeps; None if it is not there."""
    try:
        return (await stores.bus.js.stream_info(stream)).config.max_msgs_per_subject
    except NotFoundError:
        return None


async def test_a_stream_that_was_changed_or_deleted_is_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async with kept(monkeypatch) as (stores, _), asyncio.timeout(BOUND_S):
        js = stores.bus.js
        await js.delete_stream("HEADGATE_STATUS")
        await js.update_stream((await js.stream_info("HEADGATE_DELTAS")).config.evolve(max_msgs_per_subject=2))
        for stream, expected in (("HEADGATE_STATUS", 1), ("HEADGATE_DELTAS", 8)):
            while await kept_messages(stores, stream) != expected:  # noqa: ASYNC110 - a stream has no event
                await asyncio.sleep(0.01)


async def test_old_deletions_of_every_cluster_are_forgotten_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async with kept(monkeypatch) as (_, writer), asyncio.timeout(BOUND_S):
        assert [await writer.purged.get(), await writer.purged.get()] == ["paris", "paris"]


async def test_a_stream_that_was_lost_before_it_was_our_turn_is_made_at_once() -> None:
    async with real_bus() as (_, bus), asyncio.timeout(BOUND_S):
        stores = await NatsStores.open(bus)
        await bus.js.delete_stream("HEADGATE_STATUS")
        task = asyncio.create_task(keep_in_order(stores, lambda: frozenset()))
        try:
            while await kept_messages(stores, "HEADGATE_STATUS") is None:  # noqa: ASYNC110 - a stream has no event
                await asyncio.sleep(0.01)
        finally:
            await cancel(task)
