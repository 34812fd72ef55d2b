"""Manifests that were stored while their pointer never moved: their writer ended in between, or lost the race."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.stores.nats import real_bus
from headgate.common.bus.connection import Bus
from headgate.common.errors import Conflict, HistoryBroken, StoreUnavailable
from headgate.common.snapshot import Chunk, Manifest, Version, digest_of
from headgate.common.stores.nats import NatsStores, Upkeep
from headgate.common.stores.nats.jetstream import Ack, Outgoing, Stream
from headgate.common.stores.nats.snapshots import TABLES_BUCKET, NatsSnapshotStore, bucket_config
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def chunk(name: str) -> Chunk:
    content = f'[{{"host":"{name}"}}]'.encode()
    return Chunk("hosts", "", digest_of(content), content)


def manifest(epoch: int, revision: int, used: Chunk) -> Manifest:
    return Manifest(table="default", version=Version(epoch, revision), created_at=NOW, chunks=(used.name,))


class _Interrupted(Stream):
    """A stream before whose pointers something happens."""

    def __init__(self, bus: Bus, before: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(bus, bucket_config(TABLES_BUCKET, "Tables"), Upkeep())
        self._before = before

    async def publish(self, message: Outgoing) -> Ack:
        await self._before()
        return await super().publish(message)


async def _end() -> None:
    raise StoreUnavailable("the writer ends here")


async def test_a_version_whose_writer_ended_is_left_out_and_its_manifest_goes() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        first = await store.commit(manifest(1, 1, chunk("a")), None)
        ended = NatsSnapshotStore(_Interrupted(bus, _end))
        with pytest.raises(StoreUnavailable):
            await ended.commit(manifest(1, 2, chunk("b")), first)
        assert await store.read_pointer("default") == first
        assert await store.versions("default") == [Version(1, 1), Version(1, 2)]
        with pytest.raises(HistoryBroken, match=r"no pointer names it"):
            await store.commit(manifest(1, 2, chunk("c")), first)
        after = await store.commit(manifest(2, 1, chunk("c")), first)
        assert await store.read_pointer("default") == after
        assert await store.versions("default") == [Version(1, 1), Version(2, 1)]


async def test_the_same_writer_may_try_again_what_was_not_confirmed() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        with pytest.raises(StoreUnavailable):
            await NatsSnapshotStore(_Interrupted(bus, _end)).commit(manifest(1, 1, chunk("a")), None)
        pointer = await store.commit(manifest(1, 1, chunk("a")), None)
        assert await store.read_pointer("default") == pointer
        assert await store.get_manifest("default", Version(1, 1)) == manifest(1, 1, chunk("a"))


async def test_a_publisher_goes_on_in_another_epoch() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        publisher = TablePublisher(store, "default", Retention())
        first = await publisher.publish(Draft(chunks=[chunk("a")]))
        assert first is not None
        interrupted, next_one = NatsSnapshotStore(_Interrupted(bus, _end)), Version(first.epoch, first.revision + 1)
        with pytest.raises(StoreUnavailable):
            await interrupted.commit(manifest(*next_one, chunk("b")), publisher.pointer)
        second = await publisher.publish(Draft(chunks=[chunk("c")]))
        assert second is not None
        assert second.epoch > first.epoch
        assert await store.versions("default") == [first, second]
        third = await publisher.publish(Draft(chunks=[chunk("d")]))
        assert third == Version(second.epoch, second.revision + 1)


async def test_who_loses_the_race_for_the_pointer_leaves_no_manifest() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        first = await store.commit(manifest(1, 1, chunk("a")), None)

        async def be_faster() -> None:
            await store.commit(manifest(2, 1, chunk("c")), first)

        slower = NatsSnapshotStore(_Interrupted(bus, be_faster))
        with pytest.raises(Conflict):
            await slower.commit(manifest(1, 2, chunk("b")), first)
        assert await store.versions("default") == [Version(1, 1), Version(2, 1)]
        pointer = await store.read_pointer("default")
        assert pointer is not None
        assert pointer.version == Version(2, 1)
