"""Manifests of large tables, whose names stand in pages, in each store that keeps them for others."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from fakes.stores.faulty_nats import NOW
from fakes.stores.nats import real_bus
from fakes.stores.nats_commits import Watched, keys_of, only, passing, read_all
from fakes.stores.redis import linked, real_redis
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.errors import NotFound, StoreUnavailable
from headgate.common.snapshot import Chunk, Manifest, Pointer, Version
from headgate.common.stores import SnapshotStore
from headgate.common.stores.name_pages import PAGED_FROM, NamePages
from headgate.common.stores.nats.keys import chunk_key, manifest_key
from headgate.common.stores.nats.snapshots import NatsSnapshotStore
from headgate.common.stores.redis.snapshots import RedisSnapshotStore
from headgate.common.stores.revision_change import RevisionChange
from headgate.common.table_image import TableImage
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

Opener = Callable[[], SnapshotStore]
"""Opens the store as another process does."""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def on_nats(clock: Clock) -> AsyncIterator[Opener]:
    async with real_bus() as (_, bus):
        yield lambda: NatsSnapshotStore(Watched(bus, passing), clock=clock)


@asynccontextmanager
async def on_redis(clock: Clock) -> AsyncIterator[Opener]:
    async with real_redis() as server, linked(server.target) as link:
        yield lambda: RedisSnapshotStore(link, clock=clock)


STORES: dict[str, Callable[[Clock], AbstractAsyncContextManager[Opener]]] = {"nats": on_nats, "redis": on_redis}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=STORES)
async def opener(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Opener]:
    async with STORES[request.param](clock) as opened:
        yield opened


def large_table() -> TableImage:
    made = TableImage()
    for number in range(10_000):
        made.put_encoded("upstreams", str(number), f'{{"key":"{number}"}}'.encode())
    assert len(made.chunks()) > PAGED_FROM
    return made


def changed(image: TableImage, *values: int) -> TableImage:
    made = image.copy()
    for value in values:
        made.put_encoded("upstreams", "7", f'{{"key":"7","value":{value}}}'.encode())
    return made


def manifest(revision: int, chunks: Iterable[Chunk]) -> Manifest:
    names = tuple(chunk.name for chunk in chunks)
    return Manifest(table="default", version=Version(1, revision), created_at=NOW, chunks=names)


def pages_in(image: TableImage) -> set[str]:
    return {page.digest for page in NamePages().split(tuple(chunk.name for chunk in image.chunks()))}


def digests_in(image: TableImage) -> set[str]:
    return {chunk.digest for chunk in image.chunks()}


async def read(store: SnapshotStore) -> Manifest:
    pointer = await store.read_pointer("default")
    assert pointer is not None
    return await store.manifest_of(pointer)


async def commit_first(store: SnapshotStore, image: TableImage) -> Pointer:
    await store.put_chunks(image.chunks())
    return await store.commit(manifest(1, image.chunks()), None)


def change_of(before: TableImage, after: TableImage, revision: int = 1) -> RevisionChange:
    known = digests_in(before)
    new = [chunk for chunk in after.chunks() if chunk.digest not in known]
    return RevisionChange(manifest(revision, before.chunks()), new)


async def test_another_process_reads_revisions_back(opener: Opener) -> None:
    store, first = opener(), large_table()
    second = changed(first, 1)
    pointer = await commit_first(store, first)
    assert await read(opener()) == manifest(1, first.chunks())
    await store.commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    reader = opener()
    assert await read(reader) == manifest(2, second.chunks())
    assert await reader.get_manifest("default", Version(1, 1)) == manifest(1, first.chunks())
    assert await reader.get_manifest("default", Version(1, 2)) == manifest(2, second.chunks())
    assert await reader.versions("default") == [Version(1, 1), Version(1, 2)]
    assert await reader.missing(pages_in(first) | pages_in(second)) == set()


async def test_another_writer_goes_on_and_keeps_every_page(opener: Opener) -> None:
    first = large_table()
    second, third = changed(first, 1), changed(first, 1, 2)
    pointer = await commit_first(opener(), first)
    pointer = await opener().commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    await opener().commit(manifest(3, third.chunks()), pointer, change_of(second, third, 2))
    reader = opener()
    assert await read(reader) == manifest(3, third.chunks())
    assert await reader.missing(pages_in(first) | pages_in(second) | pages_in(third)) == set()


async def test_pages_and_chunks_go_with_the_last_manifest_that_names_them(opener: Opener, clock: Clock) -> None:
    store, first = opener(), large_table()
    second, third = changed(first, 1), changed(first, 1, 2)
    pointer = await commit_first(store, first)
    pointer = await store.commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    await store.commit(manifest(3, third.chunks()), pointer, change_of(second, third, 2))
    collector = opener()
    assert await collector.collect_garbage("default", [Version(1, 1)]) == 1
    clock.now += 1000
    # A page and a chunk of the first revision.
    assert await collector.collect_garbage("default", []) == 2
    reader = opener()
    kept = pages_in(second) | pages_in(third) | digests_in(second) | digests_in(third)
    assert await reader.missing(kept) == set()
    assert await reader.missing(pages_in(first) | digests_in(first)) == (pages_in(first) | digests_in(first)) - kept
    assert await read(reader) == manifest(3, third.chunks())


async def test_what_its_own_commits_named_a_writer_need_not_read_to_collect(opener: Opener, clock: Clock) -> None:
    store, first = opener(), large_table()
    second = changed(first, 1)
    pointer = await commit_first(store, first)
    await store.commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    assert await store.collect_garbage("default", []) == 0
    clock.now += 1000
    assert await store.collect_garbage("default", []) == 0
    assert await store.collect_garbage("default", [Version(1, 1)]) == 1
    clock.now += 1000
    assert await store.collect_garbage("default", []) == 2
    assert await read(opener()) == manifest(2, second.chunks())


async def test_a_page_that_is_named_again_after_it_was_found_unused_stays(opener: Opener, clock: Clock) -> None:
    store, first = opener(), large_table()
    second = changed(first, 1)
    pointer = await commit_first(store, first)
    pointer = await store.commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    await store.collect_garbage("default", [Version(1, 1)])
    clock.now += 1000
    await store.commit(manifest(3, first.chunks()), pointer, change_of(second, first, 2))
    await store.collect_garbage("default", [])
    assert await read(opener()) == manifest(3, first.chunks())


async def test_a_publisher_heals_a_table_that_lost_a_page(started: tuple[EmbeddedNats, Bus, NatsSnapshotStore]) -> None:
    _, bus, store = started
    image = large_table()
    version = await TablePublisher(store, "default", Retention()).publish(Draft(chunks=image.chunks()))
    assert version is not None
    await Watched(bus, passing).purge(chunk_key(min(pages_in(image))))
    with pytest.raises(NotFound, match=r"page \w{12} of a manifest is not in the store"):
        await read_all(bus)
    fresh = NatsSnapshotStore(Watched(bus, passing))
    healed = await TablePublisher(fresh, "default", Retention()).publish(Draft(chunks=image.chunks()))
    assert healed is not None
    assert healed > version
    assert (await read_all(bus))[0].version == healed


async def test_a_page_that_was_lost_for_a_while_keeps_its_chunks_afterwards(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore], clock: Clock
) -> None:
    _, bus, store = started
    first = large_table()
    second = changed(first, 1)
    pointer = await commit_first(store, first)
    lost = min(pages_in(first) & pages_in(second))
    await Watched(bus, passing).purge(chunk_key(lost))
    collector = NatsSnapshotStore(Watched(bus, passing), clock=clock)
    assert await collector.collect_garbage("default", []) == 0
    healing = NatsSnapshotStore(Watched(bus, passing))  # as it did not write the pointer it stores all pages
    await healing.commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    await collector.collect_garbage("default", [Version(1, 1)])
    clock.now += 1000
    await collector.collect_garbage("default", [])
    assert (await read_all(bus))[0] == manifest(2, second.chunks())
    assert await store.missing(digests_in(second)) == set()


async def test_a_revision_that_lost_a_page_is_dropped_when_its_time_comes(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    first = large_table()
    publisher = TablePublisher(store, "default", Retention(revisions=1))
    old = await publisher.publish(Draft(chunks=first.chunks()))
    new = await publisher.publish(Draft(chunks=changed(first, 1).chunks()))
    assert old is not None
    [lost] = pages_in(first) - pages_in(changed(first, 1))
    await Watched(bus, passing).purge(chunk_key(lost))
    fresh = NatsSnapshotStore(Watched(bus, passing))
    with pytest.raises(NotFound):
        await fresh.get_manifest("default", old)
    assert (await fresh.get_manifest_head("default", old)).version == old
    other = TablePublisher(fresh, "default", Retention(revisions=1))
    await other.read()
    await other.collect_garbage()
    assert await fresh.versions("default") == [new]


async def test_a_small_change_of_a_large_table_is_its_pointer_a_chunk_a_page_and_a_small_manifest(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    first = large_table()
    second = changed(first, 1)
    pointer = await commit_first(store, first)
    before = await keys_of(bus)
    watched = [only("pointer")]
    writer = NatsSnapshotStore(Watched(bus, lambda message: watched[0](message)))
    with pytest.raises(StoreUnavailable):  # another writer made the pointer: all pages are stored first
        await writer.commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    pointer = await store.commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    await store.versions("default")  # waits until it is stored
    new = await keys_of(bus) - before
    gone = pages_in(first) | digests_in(first)
    assert new == {manifest_key("default", Version(1, 2))} | {
        chunk_key(digest) for digest in (pages_in(second) | digests_in(second)) - gone
    }
    assert len(new) == 3


async def test_a_large_table_that_is_in_its_pointer_only_is_read_and_stored_by_the_next_writer(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, _ = started
    first = large_table()
    second, third = changed(first, 1), changed(first, 1, 2)
    watched = [passing]
    store = NatsSnapshotStore(Watched(bus, lambda message: watched[0](message)))
    pointer = await commit_first(store, first)
    watched[0] = only("pointer")
    pointer = await store.commit(manifest(2, second.chunks()), pointer, change_of(first, second))
    assert manifest_key("default", Version(1, 2)) not in await keys_of(bus)
    assert (await read_all(bus))[0] == manifest(2, second.chunks())
    other = NatsSnapshotStore(Watched(bus, passing))
    await other.commit(manifest(3, third.chunks()), pointer, change_of(second, third, 2))
    reader = NatsSnapshotStore(Watched(bus, passing))
    assert await reader.get_manifest("default", Version(1, 2)) == manifest(2, second.chunks())
    assert (await read_all(bus))[0] == manifest(3, third.chunks())
