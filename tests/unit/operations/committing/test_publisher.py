"""Committing revisions: epochs, races, lost parts of the store."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from headgate.common.errors import Conflict, HistoryBroken
from headgate.common.snapshot import Manifest, Pointer, Rollout, Version
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.common.stores.revision_change import RevisionChange
from headgate.common.table import VirtualHost
from headgate.common.table_image import TableImage
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def draft(*hosts: str) -> Draft:
    return Draft(TableImage(VirtualHost(host=host, routes=()) for host in hosts).chunks())


def publisher(store: MemorySnapshotStore, clock: Clock | None = None) -> TablePublisher:
    return TablePublisher(store, "default", Retention(2), clock=clock or Clock())


async def test_the_first_revision_of_an_empty_store_begins_an_epoch_of_the_clock() -> None:
    assert await publisher(MemorySnapshotStore()).publish(draft("a.example")) == Version(1000, 1)


async def test_the_epoch_goes_past_what_gateways_serve() -> None:
    ours = publisher(MemorySnapshotStore())
    ours.observe(None, Version(5000, 3))
    assert await ours.publish(draft("a.example")) == Version(5001, 1)


async def test_equal_content_is_published_once_whoever_publishes_it() -> None:
    store = MemorySnapshotStore()
    one, other = publisher(store), publisher(store)
    assert await one.publish(draft("a.example")) == Version(1000, 1)
    assert await other.publish(draft("a.example")) is None
    assert await one.publish(draft("a.example")) is None


async def test_a_lost_race_is_a_conflict_and_then_a_greater_revision() -> None:
    store = MemorySnapshotStore()
    one, other = publisher(store), publisher(store)
    await one.publish(draft("a.example"))
    await other.publish(draft("b.example"))
    with pytest.raises(Conflict):
        await one.publish(draft("c.example"))
    assert await one.publish(draft("c.example")) == Version(1000, 3)


async def test_a_store_that_went_back_gets_a_new_epoch_for_equal_content() -> None:
    store = MemorySnapshotStore()
    ours = publisher(store)
    await ours.publish(draft("a.example"))
    old = await store.read_pointer("default")
    await ours.publish(draft("b.example"))
    assert old is not None
    store.pointers["default"] = old
    ours.observe(old, None)
    assert ours.is_behind
    assert await ours.publish(draft("a.example")) == Version(1001, 1)


class BrokenHistory(MemorySnapshotStore):
    """May have lost commits, and so asks for a new epoch once."""

    is_broken = True

    async def commit(
        self, manifest: Manifest, expected: Pointer | None, change: RevisionChange | None = None
    ) -> Pointer:
        if expected and self.is_broken and manifest.version.epoch <= expected.version.epoch:
            raise HistoryBroken("a replica was promoted")
        self.is_broken = expected is None
        return await super().commit(manifest, expected, change)


async def test_a_store_that_may_have_lost_commits_gets_a_new_epoch_once() -> None:
    ours = publisher(BrokenHistory())
    await ours.publish(draft("a.example"))
    assert await ours.publish(draft("b.example")) == Version(1001, 1)
    assert await ours.publish(draft("c.example")) == Version(1001, 2)


async def test_chunks_that_the_store_lost_are_restored_at_the_next_start() -> None:
    store = MemorySnapshotStore()
    await publisher(store).publish(draft("a.example"))
    store.chunks.clear()
    assert await publisher(store).publish(draft("a.example")) is None
    assert len(store.chunks) == 1


async def test_a_lost_manifest_is_healed_by_the_next_revision() -> None:
    store = MemorySnapshotStore()
    await publisher(store).publish(draft("a.example"))
    store.manifests.clear()
    ours = publisher(store)
    await ours.read()
    assert ours.clusters == frozenset()
    assert await ours.publish(draft("a.example")) == Version(1000, 2)


async def test_old_revisions_are_collected() -> None:
    store = MemorySnapshotStore()
    ours = publisher(store)
    for number in range(4):
        await ours.publish(draft(f"{number}.example"))
    assert await ours.collect_garbage() == 4
    assert await store.versions("default") == [Version(1000, 3), Version(1000, 4)]


async def test_what_was_committed_here_is_not_read_to_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemorySnapshotStore()
    await publisher(store).publish(draft("other.example"))
    ours, read = publisher(store), list[Version]()
    for number in range(3):
        await ours.publish(draft(f"{number}.example"))
    get_manifest = store.get_manifest

    async def note(table: str, version: Version) -> Manifest:
        read.append(version)
        return await get_manifest(table, version)

    monkeypatch.setattr(store, "get_manifest", note)
    await ours.collect_garbage()
    assert read == [Version(1000, 1)]


async def test_a_rollout_is_of_the_revision_that_it_is_committed_as_also_after_a_failover() -> None:
    store = BrokenHistory()
    store.is_broken = False
    ours = publisher(store)
    await ours.publish(draft("a.example"))
    store.is_broken = True
    rollout = Rollout(base=Version(1000, 1), shares=(50.0,), since=datetime(2026, 1, 1, tzinfo=UTC), replicas=("g1",))
    begun = replace(draft("a.example"), rollout=rollout, next=draft("b.example").chunks, live=draft("b.example").chunks)
    version = await ours.publish(begun)
    assert version is not None
    assert version.epoch > 1000
    assert ours.manifest is not None
    assert ours.manifest.rollout is not None
    assert (ours.manifest.rollout.target, ours.manifest.rollout.begun) == (version, version)
    assert await store.get_manifest("default", version) == ours.manifest
