"""Chunks that several tables share, each with a translator of its own that collects what nobody names."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.stores.chunks import content_of
from fakes.stores.nats import real_bus
from fakes.stores.redis import linked, real_redis
from headgate.common.snapshot import Chunk, Version
from headgate.common.stores import SnapshotStore
from headgate.common.stores.collecting import CHUNK_GRACE_S
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.jetstream import OURS
from headgate.common.stores.nats.snapshots import NatsSnapshotStore, tables_stream
from headgate.common.stores.redis.snapshots import RedisSnapshotStore
from headgate.common.stores.redis.stores import tables_on
from headgate.common.stores.redis.target import parse_redis_url
from headgate.common.table import VirtualHost
from headgate.common.table_image import TableImage
from headgate.operations.changing.pinning import TablePins
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

Pair = tuple[SnapshotStore, SnapshotStore]


class Clock:
    """What a collector takes for the time."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def on_memory(clock: Clock) -> AsyncIterator[Pair]:
    store = MemorySnapshotStore()
    yield store, store


@asynccontextmanager
async def on_nats(clock: Clock) -> AsyncIterator[Pair]:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        yield NatsSnapshotStore(tables_stream(bus, OURS), clock=clock), stores.snapshots


@asynccontextmanager
async def on_redis(clock: Clock) -> AsyncIterator[Pair]:
    async with real_redis() as server:
        target = parse_redis_url(server.url)
        async with linked(target) as one, linked(target) as other:
            yield RedisSnapshotStore(one, clock=clock), tables_on(other).snapshots


STORES: dict[str, Callable[[Clock], AbstractAsyncContextManager[Pair]]] = {
    "memory": on_memory,
    "nats": on_nats,
    "redis": on_redis,
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=STORES)
async def pair(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Pair]:
    """Two processes' views of one store; the first collects by the clock."""
    async with STORES[request.param](clock) as opened:
        yield opened


def chunk(host: str) -> Chunk:
    [made] = TableImage([VirtualHost(host=host, routes=())]).chunks()
    return made


def publisher(store: SnapshotStore, table: str, kept: int = 1) -> TablePublisher:
    return TablePublisher(store, table, Retention(kept))


async def read(store: SnapshotStore, table: str, version: Version | None = None) -> list[bytes]:
    pointer = await store.read_pointer(table)
    assert pointer is not None
    manifest = await store.get_manifest(table, version or pointer.version)
    return [await content_of(store, name) for name in manifest.chunks]


async def test_what_one_table_drops_another_keeps(pair: Pair, clock: Clock) -> None:
    ours, theirs = publisher(pair[0], "ours"), publisher(pair[1], "theirs", kept=9)
    for number in range(4):
        draft = Draft([chunk(f"{number}.example")])
        await ours.publish(draft)
        await theirs.publish(draft)
    for _ in range(3):
        await ours.collect_garbage()
        clock.now += CHUNK_GRACE_S
    assert len(await pair[0].versions("ours")) == 1
    for version in await pair[1].versions("theirs"):
        assert await read(pair[1], "theirs", version)


async def test_what_no_table_names_any_more_goes(pair: Pair, clock: Clock) -> None:
    ours, theirs = publisher(pair[0], "ours"), publisher(pair[1], "theirs")
    for host in ("old.example", "new.example"):
        await ours.publish(Draft([chunk(host)]))
        await theirs.publish(Draft([chunk(host)]))
    digests = [chunk("old.example").digest, chunk("new.example").digest]

    async def collect() -> None:
        for _ in range(3):
            await ours.collect_garbage()
            clock.now += CHUNK_GRACE_S

    await collect()
    assert await pair[0].missing(digests) == set()
    await theirs.collect_garbage()
    await collect()
    assert await pair[0].missing(digests) == {digests[0]}


async def test_a_chunk_that_was_found_unused_for_long_can_be_named_by_another_table(
    pair: Pair, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector, ours = pair[0], publisher(pair[1], "ours")
    shared, commit = chunk("shared.example"), pair[1].commit
    await collector.put_chunks([shared])

    async def collected_meanwhile(*arguments: Any) -> Any:
        await collector.collect_garbage("theirs", [])
        return await commit(*arguments)

    if not isinstance(collector, MemorySnapshotStore):  # which collects at once what it finds
        await collector.collect_garbage("theirs", [])
        clock.now += CHUNK_GRACE_S
        monkeypatch.setattr(pair[1], "commit", collected_meanwhile)
    for _ in range(2):
        try:
            await ours.publish(Draft([shared]))
        except Exception as error:  # a store may refuse it once: the translator tries again
            assert "not in the store" in str(error)  # noqa: PT017
    assert await read(pair[1], "ours") == [shared.content]
    await collector.collect_garbage("theirs", [])
    clock.now += CHUNK_GRACE_S
    await collector.collect_garbage("theirs", [])
    assert await read(pair[1], "ours") == [shared.content]


async def test_pins_of_one_table_are_no_business_of_another(pair: Pair) -> None:
    ours, theirs = publisher(pair[0], "ours"), publisher(pair[1], "theirs")
    for number in range(2):
        for each in (ours, theirs):
            await each.publish(Draft([chunk(f"{number}.example")]))
    [old, _] = await pair[0].versions("ours")
    target = await pair[0].get_manifest("ours", old)
    await TablePins(pair[0], "ours", None).pin(target, ChangeRequest("ada", datetime.now(UTC)))
    assert await read(pair[0], "ours") == [chunk("0.example").content]
    assert await read(pair[1], "theirs") == [chunk("1.example").content]
    pointer = await pair[1].read_pointer("theirs")
    assert pointer is not None
    assert (await pair[1].get_manifest("theirs", pointer.version)).pin is None
