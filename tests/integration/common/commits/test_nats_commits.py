"""Commits on NATS: by the pointer's message alone, and in two steps."""

import asyncio
import random

import pytest

from fakes.stores.chunks import content_of
from fakes.stores.nats import real_bus
from fakes.stores.nats_commits import (
    POINTER,
    A,
    B,
    C,
    Watched,
    change_of,
    commit_first,
    hosts_chunk,
    keys_of,
    lose_answer,
    manifest,
    only,
    passing,
    read_all,
)
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.errors import Conflict, HistoryBroken, StoreError, StoreUnavailable
from headgate.common.snapshot import Pointer, Version
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.jetstream import Outgoing
from headgate.common.stores.nats.keys import chunk_key, manifest_key
from headgate.common.stores.nats.snapshots import NatsSnapshotStore
from headgate.common.stores.revision_change import RevisionChange
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

# --- by the pointer's message


async def _end_after_pointer(bus: Bus) -> Pointer:
    """Commit a revision 1.2 that is in its pointer's message only."""
    watched = [passing]
    store = NatsSnapshotStore(Watched(bus, lambda message: watched[0](message)))
    first = await commit_first(store)
    watched[0] = only("pointer")
    return await store.commit(manifest(1, 2, B), first, change_of(B))


async def test_a_small_change_is_served_before_it_has_keys_of_its_own(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    second = await _end_after_pointer(bus)
    assert manifest_key("default", second.version) not in await keys_of(bus)
    assert chunk_key(B.digest) not in await keys_of(bus)
    assert await store.read_pointer("default") == second
    assert await store.versions("default") == [Version(1, 1), Version(1, 2)]
    assert await store.get_manifest("default", Version(1, 1)) == manifest(1, 1, A)
    assert await store.get_manifest("default", Version(1, 2)) == manifest(1, 2, B)
    assert await content_of(store, B.name) == B.content
    assert await read_all(bus) == (manifest(1, 2, B), [B.content])


async def test_it_gets_them_at_once(started: tuple[EmbeddedNats, Bus, NatsSnapshotStore]) -> None:
    _, bus, store = started
    first = await commit_first(store)
    second = await store.commit(manifest(1, 2, B), first, change_of(B))
    async with asyncio.timeout(10):
        while not {manifest_key("default", second.version), chunk_key(B.digest)} <= await keys_of(bus):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_crash_of_the_server_does_not_lose_it(started: tuple[EmbeddedNats, Bus, NatsSnapshotStore]) -> None:
    server, bus, _ = started
    await _end_after_pointer(bus)
    await server.kill()
    await server.start()
    async with asyncio.timeout(30):
        while True:
            try:
                assert await read_all(bus) == (manifest(1, 2, B), [B.content])
                break
            except StoreError:
                await asyncio.sleep(0.05)


async def test_the_next_writer_stores_what_the_pointer_carries_before_it_commits(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    second = await _end_after_pointer(bus)
    await store.commit(manifest(1, 3, C), second, change_of(C, B, 2))
    assert {manifest_key("default", second.version), chunk_key(B.digest)} <= await keys_of(bus)
    assert await store.versions("default") == [Version(1, number) for number in (1, 2, 3)]
    assert await store.get_manifest("default", Version(1, 2)) == manifest(1, 2, B)
    assert await read_all(bus) == (manifest(1, 3, C), [C.content])


async def test_its_parent_is_not_collected_before_it_is_stored(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    await _end_after_pointer(bus)
    await store.collect_garbage("default", [Version(1, 1)])
    assert await store.versions("default") == [Version(1, 2)]
    assert await read_all(bus) == (manifest(1, 2, B), [B.content])


async def test_a_commit_whose_answer_was_lost_may_be_repeated(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, _ = started
    answers = [passing]
    store = NatsSnapshotStore(Watched(bus, passing, lambda message: answers[0](message)))
    first = await commit_first(store)
    answers[0] = lose_answer
    with pytest.raises(StoreUnavailable):
        await store.commit(manifest(1, 2, B), first, change_of(B))
    second = await store.commit(manifest(1, 2, B), first, change_of(B))
    assert second.version == Version(1, 2)
    assert {manifest_key("default", second.version), chunk_key(B.digest)} <= await keys_of(bus)


async def test_what_could_not_be_stored_is_stored_before_the_next_commit(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, _ = started
    watched = [passing]
    store = NatsSnapshotStore(Watched(bus, lambda message: watched[0](message)))
    first = await commit_first(store)
    watched[0] = only("pointer")
    second = await store.commit(manifest(1, 2, B), first, change_of(B))
    with pytest.raises(StoreUnavailable):
        await store.commit(manifest(1, 3, C), second, change_of(C, B, 2))
    assert await store.read_pointer("default") == second
    watched[0] = passing
    third = await store.commit(manifest(1, 3, C), second, change_of(C, B, 2))
    assert third.version == Version(1, 3)
    assert await store.versions("default") == [Version(1, number) for number in (1, 2, 3)]


async def test_what_a_writer_left_that_lost_the_race_does_not_stand_in_for_it(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    watched = [passing]
    faster = NatsSnapshotStore(Watched(bus, lambda message: watched[0](message)))
    first = await commit_first(faster)
    with pytest.raises(StoreUnavailable):
        await NatsSnapshotStore(Watched(bus, only("chunk", "manifest"))).commit(manifest(1, 2, C), first)
    watched[0] = only("pointer")
    second = await faster.commit(manifest(1, 2, B), first, change_of(B))
    assert await read_all(bus) == (manifest(1, 2, B), [B.content])
    watched[0] = passing
    await faster.commit(manifest(1, 3, C), second, change_of(C, B, 2))
    assert await store.get_manifest("default", Version(1, 2)) == manifest(1, 2, B)


async def test_who_is_not_the_writer_of_the_pointer_does_not_move_it(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    first = await commit_first(store)
    other = NatsSnapshotStore(Watched(bus, passing))
    second = await other.commit(manifest(1, 2, B), first, change_of(B))
    with pytest.raises(Conflict):
        await store.commit(manifest(1, 2, C), first, change_of(C))
    assert await store.read_pointer("default") == second
    assert await read_all(bus) == (manifest(1, 2, B), [B.content])


async def test_chunks_that_do_not_travel_are_stored_before_the_pointer(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    first = await commit_first(store)
    noise = random.Random(7).randbytes(60_000).hex()
    large = hosts_chunk(noise)
    watched = NatsSnapshotStore(Watched(bus, only("pointer")))
    with pytest.raises(StoreUnavailable):
        await watched.commit(manifest(1, 2, large), first, change_of(large))
    await store.commit(manifest(1, 2, large), first, change_of(large))
    assert manifest_key("default", Version(1, 2)) in await keys_of(bus)
    await store.put_chunks([B])
    second = await store.read_pointer("default")
    stored = RevisionChange(manifest(1, 2, large), [], [B.name])
    await store.commit(manifest(1, 3, B), second, stored)
    assert manifest_key("default", Version(1, 3)) in await keys_of(bus)


# --- in two steps


async def test_a_version_whose_writer_ended_is_left_out_and_its_manifest_goes() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        first = await store.commit(manifest(1, 1, hosts_chunk("a")), None)
        ended = NatsSnapshotStore(Watched(bus, only("chunk", "manifest")))
        with pytest.raises(StoreUnavailable):
            await ended.commit(manifest(1, 2, hosts_chunk("b")), first)
        assert await store.read_pointer("default") == first
        assert await store.versions("default") == [Version(1, 1), Version(1, 2)]
        with pytest.raises(HistoryBroken, match=r"no pointer names it"):
            await store.commit(manifest(1, 2, hosts_chunk("c")), first)
        after = await store.commit(manifest(2, 1, hosts_chunk("c")), first)
        assert await store.read_pointer("default") == after
        assert await store.versions("default") == [Version(1, 1), Version(2, 1)]


async def test_the_same_writer_may_try_again_what_was_not_confirmed() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        with pytest.raises(StoreUnavailable):
            await NatsSnapshotStore(Watched(bus, only("chunk", "manifest"))).commit(
                manifest(1, 1, hosts_chunk("a")), None
            )
        pointer = await store.commit(manifest(1, 1, hosts_chunk("a")), None)
        assert await store.read_pointer("default") == pointer
        assert await store.get_manifest("default", Version(1, 1)) == manifest(1, 1, hosts_chunk("a"))


async def test_a_publisher_that_has_just_started_goes_on_in_another_epoch() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        first = await TablePublisher(store, "default", Retention()).publish(Draft(chunks=[hosts_chunk("a")]))
        assert first is not None
        interrupted = NatsSnapshotStore(Watched(bus, only("chunk", "manifest")))
        next_one = Version(first.epoch, first.revision + 1)
        with pytest.raises(StoreUnavailable):
            await interrupted.commit(manifest(*next_one, hosts_chunk("b")), await store.read_pointer("default"))
        publisher = TablePublisher(NatsSnapshotStore(Watched(bus, passing)), "default", Retention())
        second = await publisher.publish(Draft(chunks=[hosts_chunk("c")]))
        assert second is not None
        assert second.epoch > first.epoch
        assert await store.versions("default") == [first, second]
        third = await publisher.publish(Draft(chunks=[hosts_chunk("d")]))
        assert third == Version(second.epoch, second.revision + 1)


async def test_who_loses_the_race_for_the_pointer_leaves_no_manifest() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        first = await store.commit(manifest(1, 1, hosts_chunk("a")), None)

        async def be_faster(message: Outgoing) -> None:
            if message.subject == POINTER:
                await store.commit(manifest(2, 1, hosts_chunk("c")), first)

        slower = NatsSnapshotStore(Watched(bus, be_faster))
        with pytest.raises(Conflict):
            await slower.commit(manifest(1, 2, hosts_chunk("b")), first)
        assert await store.versions("default") == [Version(1, 1), Version(2, 1)]
        pointer = await store.read_pointer("default")
        assert pointer is not None
        assert pointer.version == Version(2, 1)
