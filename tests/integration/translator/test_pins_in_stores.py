"""Pinning, rolling out and what is kept meanwhile, on every kind of store."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fakes.stores.nats import real_stores
from fakes.stores.redis import real_tables
from headgate.common.snapshot import Manifest, Pointer, Rollout, Version
from headgate.common.stores import SnapshotStore
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.common.stores.reading import read_entries
from headgate.common.stores.revision_change import RevisionChange
from headgate.common.table import Endpoint, Provenance, Upstream, VirtualHost
from headgate.common.table_image import TableImage
from headgate.operations.changing.pinning import TablePins
from headgate.operations.changing.rollout_control import RolloutControl
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

WISH = ChangeRequest("ann", datetime(2026, 1, 1, tzinfo=UTC))
SERVICE = Provenance(cluster="a", kind="Service", namespace="default", name="web")


@asynccontextmanager
async def memory() -> AsyncIterator[SnapshotStore]:
    yield MemorySnapshotStore()


@asynccontextmanager
async def nats() -> AsyncIterator[SnapshotStore]:
    async with real_stores(chunk_grace_s=0) as stores:
        yield stores.snapshots


@asynccontextmanager
async def redis() -> AsyncIterator[SnapshotStore]:
    async with real_tables(chunk_grace_s=0) as tables:
        yield tables.snapshots


STORES: dict[str, Callable[[], AbstractAsyncContextManager[SnapshotStore]]] = {
    "memory": memory,
    "nats": nats,
    "redis": redis,
}


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[SnapshotStore]:
    async with STORES[request.param]() as opened:
        yield opened


def draft(host: str, address: str) -> Draft:
    endpoints = (Endpoint(address=address, port=80),)
    upstream = Upstream(key="a/default/web:80", endpoints=endpoints, provenance=SERVICE)
    return Draft(TableImage([VirtualHost(host=host, routes=()), upstream]).chunks())


async def publish(store: SnapshotStore, *drafts: Draft) -> list[Version]:
    publisher = TablePublisher(store, "default", Retention())
    return [version for each in drafts if (version := await publisher.publish(each))]


async def shown(store: SnapshotStore, manifest: Manifest) -> tuple[str, str]:
    """Host and address of a table."""
    entries = await read_entries(store, manifest.chunks)
    [host] = [entry.host for entry in entries if isinstance(entry, VirtualHost)]
    [address] = [entry.endpoints[0].address for entry in entries if isinstance(entry, Upstream)]
    return host, address


async def test_a_table_goes_back_and_forward(store: SnapshotStore) -> None:
    first, _ = await publish(store, draft("old.example", "10.0.0.1"), draft("new.example", "10.0.0.2"))
    pins = TablePins(store, "default", None)
    pinned = (await pins.pin(await store.get_manifest("default", first), WISH)).manifest
    assert await shown(store, pinned) == ("old.example", "10.0.0.2")
    assert pinned.changed["hosts"].names == ("new.example", "old.example")
    assert await shown(store, await pins.unpin(WISH)) == ("new.example", "10.0.0.2")


async def test_chunks_of_the_live_table_outlive_every_revision_that_served_them(store: SnapshotStore) -> None:
    first, second = await publish(store, draft("old.example", "10.0.0.1"), draft("new.example", "10.0.0.2"))
    pins = TablePins(store, "default", None)
    await pins.pin(await store.get_manifest("default", first), WISH)
    for _ in range(2):  # what is unused goes when it is found so for the second time
        await store.collect_garbage("default", [first, second])
    assert await store.versions("default") == [Version(first.epoch, 3)]
    assert await shown(store, await pins.unpin(WISH)) == ("new.example", "10.0.0.2")


async def test_chunks_of_what_is_rolled_out_outlive_every_revision_that_served_them(store: SnapshotStore) -> None:
    old, new = draft("old.example", "10.0.0.1"), draft("new.example", "10.0.0.2")
    [first] = await publish(store, old)
    publisher = TablePublisher(store, "default", Retention())
    rollout = Rollout(base=first, shares=(50.0,), since=WISH.at, replicas=("g1",))
    begun = await publisher.publish(replace(old, rollout=rollout, next=new.chunks, live=new.chunks))
    assert begun is not None
    current = await store.get_manifest("default", begun)
    assert current.rollout is not None
    assert (current.rollout.target, current.rollout.begun) == (begun, begun)
    for _ in range(2):  # what is unused goes when it is found so for the second time
        await store.collect_garbage("default", [first])
    control = RolloutControl(store, "default", None)
    held = await control.go_back(WISH)
    assert await shown(store, held) == ("old.example", "10.0.0.1")
    assert await shown(store, await control.promote(WISH)) == ("new.example", "10.0.0.2")


async def test_a_pin_wins_against_a_commit_at_the_same_time(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = await publish(store, draft("old.example", "10.0.0.1"), draft("new.example", "10.0.0.2"))
    target = await store.get_manifest("default", first)
    publisher = TablePublisher(store, "default", Retention())
    await publisher.read()
    commit, is_late = store.commit, False

    async def commit_late(
        manifest: Manifest, expected: Pointer | None, change: RevisionChange | None = None
    ) -> Pointer:
        nonlocal is_late
        if not is_late:
            is_late = True
            await publisher.publish(draft("newer.example", "10.0.0.3"))
        return await commit(manifest, expected, change)

    monkeypatch.setattr(store, "commit", commit_late)
    pins = TablePins(store, "default", None)
    pinned = (await pins.pin(target, WISH)).manifest
    assert pinned.version == Version(first.epoch, 4)
    assert await shown(store, pinned) == ("old.example", "10.0.0.3")
    assert [name.digest for name in pinned.live if name.kind == "hosts"] == [
        chunk.digest for chunk in draft("newer.example", "10.0.0.3").chunks if chunk.kind == "hosts"
    ]
