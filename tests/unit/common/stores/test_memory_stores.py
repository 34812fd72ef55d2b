"""What only the stores in memory can be asked to do; the rest is in the conformance tests."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime

from headgate.common.deltas import Delta, Operation
from headgate.common.heartbeats import TTL_S, Heartbeat
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores import LogReplay
from headgate.common.stores.memory.log import MemoryDeltaLog
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.common.stores.memory.stores import MemoryStores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def delta(name: str, operation: Operation = Operation.APPLY) -> Delta:
    ref = ObjectRef("c1", "", "services", "default", name)
    return Delta(ref=ref, operation=operation, uid=name, resource_version="1", observed_at=NOW)


async def test_a_worker_that_falls_silent_expires() -> None:
    clock = Clock()
    stores = MemoryStores(clock)
    beat = Heartbeat(replica="gw", worker=0, table="default", version=None, at=NOW)
    await stores.heartbeats.beat(beat)
    clock.now += TTL_S - 1
    assert await stores.heartbeats.live() == [beat]
    clock.now += 2
    assert await stores.heartbeats.live() == []


async def test_a_tombstone_is_purged_when_it_is_old_enough() -> None:
    clock = Clock()
    stores = MemoryStores(clock)
    await stores.log_writer.append(delta("gone", Operation.DELETE))
    clock.now += 3600
    assert await stores.log_writer.purge_tombstones("c1", older_than_s=3601) == 0
    assert await stores.log_writer.purge_tombstones("c1", older_than_s=3599) == 1


async def test_a_lost_log_is_a_replay_with_another_incarnation() -> None:
    log = MemoryDeltaLog()
    await log.append(delta("old"))
    async with asyncio.timeout(5), aclosing(log.follow()) as items:  # type: ignore[type-var]
        first = await anext(items)
        await anext(items)
        log.lose()
        second = await anext(items)
        await log.append(delta("new"))
        [read] = await anext(items)
    assert isinstance(first, LogReplay)
    assert isinstance(second, LogReplay)
    assert first.position.incarnation != second.position.incarnation
    assert isinstance(read, Delta)
    assert (read.ref.name, read.sequence) == ("new", 1)


async def test_a_lost_snapshot_store_is_empty() -> None:
    snapshots = MemorySnapshotStore()
    await snapshots.commit(Manifest(table="default", version=Version(1, 1), created_at=NOW, chunks=()), None)
    snapshots.lose()
    assert await snapshots.read_pointer("default") is None
