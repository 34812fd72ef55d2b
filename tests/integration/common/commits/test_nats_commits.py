"""Commits on NATS: by the pointer's message alone, in two steps, and by writers that end in the middle of either."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from fakes.stores.faulty_nats import NOW
from fakes.stores.nats import real_bus
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.errors import Conflict, HistoryBroken, StoreError, StoreUnavailable
from headgate.common.snapshot import Chunk, Manifest, Pointer, Version, digest_of
from headgate.common.stores.nats import NatsStores, Upkeep
from headgate.common.stores.nats.answers import Ack
from headgate.common.stores.nats.jetstream import Outgoing, Stream
from headgate.common.stores.nats.keys import TABLES_BUCKET, chunk_key, manifest_key, pointer_key
from headgate.common.stores.nats.snapshots import NatsSnapshotStore, bucket_config
from headgate.common.stores.revision_change import RevisionChange
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

_POINTER = pointer_key("default")


def hosts_chunk(name: str, prefix: str = "") -> Chunk:
    content = f'[{{"host":"{name}"}}]'.encode()
    return Chunk("hosts", prefix, digest_of(content), content)


def manifest(epoch: int, revision: int, *used: Chunk) -> Manifest:
    names = tuple(chunk.name for chunk in used)
    return Manifest(table="default", version=Version(epoch, revision), created_at=NOW, chunks=names)


A, B, C = map(hosts_chunk, "abc")


class _Watched(Stream):
    """A stream of which each message is shown before it goes, and which says afterwards what it had to say."""

    def __init__(
        self,
        bus: Bus,
        before: Callable[[Outgoing], Awaitable[Any]],
        after: Callable[[Outgoing], Awaitable[Any]] | None = None,
    ) -> None:
        super().__init__(bus, bucket_config(TABLES_BUCKET, "Tables"), Upkeep())
        self._before, self._after = before, after

    async def publish(self, message: Outgoing) -> Ack:
        await self._before(message)
        ack = await super().publish(message)
        if self._after is not None:
            await self._after(message)
        return ack

    async def publish_pipelined(self, messages: Sequence[Outgoing]) -> list[Ack]:
        for message in messages:
            await self._before(message)
        return await super().publish_pipelined(messages)


def _only(*parts: str) -> Callable[[Outgoing], Awaitable[None]]:
    """Let messages of these kinds pass: the writer ends before any other."""

    async def check(message: Outgoing) -> None:
        if message.subject.split(".")[2] not in parts:
            raise StoreUnavailable("the writer ends here")

    return check


async def _lose_answer(message: Outgoing) -> None:
    if message.subject == _POINTER:
        raise StoreUnavailable("the answer is lost")


async def _pass(_: Outgoing) -> None:
    """Let everything pass."""


@pytest.fixture
async def started() -> AsyncIterator[tuple[EmbeddedNats, Bus, NatsSnapshotStore]]:
    """A server, a bus, and a store of which nothing is known."""
    async with real_bus() as (server, bus):
        yield server, bus, (await NatsStores.open(bus)).snapshots


async def _commit_first(store: NatsSnapshotStore) -> Pointer:
    await store.put_chunks([A])
    return await store.commit(manifest(1, 1, A), None)


def _change(chunk: Chunk, parent: Chunk = A, revision: int = 1) -> RevisionChange:
    return RevisionChange(manifest(1, revision, parent), [chunk])


async def _keys(bus: Bus) -> set[str]:
    return await _Watched(bus, _pass).subjects(f"$KV.{TABLES_BUCKET}.>")


async def _read_all(bus: Bus) -> tuple[Manifest, list[bytes]]:
    """Read the current revision as a gateway does that has just started."""
    reader = NatsSnapshotStore(_Watched(bus, _pass))
    pointer = await reader.read_pointer("default")
    assert pointer is not None
    found = await reader.manifest_of(pointer)
    assert found.version == pointer.version
    return found, [await reader.get_chunk(name) for name in found.chunks]


# --- by the pointer's message


async def _end_after_pointer(bus: Bus) -> Pointer:
    """Commit a revision 1.2 that is in its pointer's message only."""
    watched = [_pass]
    store = NatsSnapshotStore(_Watched(bus, lambda message: watched[0](message)))
    first = await _commit_first(store)
    watched[0] = _only("pointer")
    return await store.commit(manifest(1, 2, B), first, _change(B))


async def test_a_small_change_is_served_before_it_has_keys_of_its_own(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    second = await _end_after_pointer(bus)
    assert manifest_key("default", second.version) not in await _keys(bus)
    assert chunk_key(B.digest) not in await _keys(bus)
    assert await store.read_pointer("default") == second
    assert await store.versions("default") == [Version(1, 1), Version(1, 2)]
    assert await store.get_manifest("default", Version(1, 1)) == manifest(1, 1, A)
    assert await store.get_manifest("default", Version(1, 2)) == manifest(1, 2, B)
    assert await store.get_chunk(B.name) == B.content
    assert await _read_all(bus) == (manifest(1, 2, B), [B.content])


async def test_it_gets_them_at_once(started: tuple[EmbeddedNats, Bus, NatsSnapshotStore]) -> None:
    _, bus, store = started
    first = await _commit_first(store)
    second = await store.commit(manifest(1, 2, B), first, _change(B))
    async with asyncio.timeout(10):
        while not {manifest_key("default", second.version), chunk_key(B.digest)} <= await _keys(bus):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_crash_of_the_server_does_not_lose_it(started: tuple[EmbeddedNats, Bus, NatsSnapshotStore]) -> None:
    server, bus, _ = started
    await _end_after_pointer(bus)
    await server.kill()
    await server.start()
    async with asyncio.timeout(30):
        while True:
            try:
                assert await _read_all(bus) == (manifest(1, 2, B), [B.content])
                break
            except StoreError:
                await asyncio.sleep(0.05)


async def test_the_next_writer_stores_what_the_pointer_carries_before_it_commits(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    second = await _end_after_pointer(bus)
    await store.commit(manifest(1, 3, C), second, _change(C, B, 2))
    assert {manifest_key("default", second.version), chunk_key(B.digest)} <= await _keys(bus)
    assert await store.versions("default") == [Version(1, number) for number in (1, 2, 3)]
    assert await store.get_manifest("default", Version(1, 2)) == manifest(1, 2, B)
    assert await _read_all(bus) == (manifest(1, 3, C), [C.content])


async def test_its_parent_is_not_collected_before_it_is_stored(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    await _end_after_pointer(bus)
    await store.collect_garbage("default", [Version(1, 1)])
    assert await store.versions("default") == [Version(1, 2)]
    assert await _read_all(bus) == (manifest(1, 2, B), [B.content])


async def test_a_commit_whose_answer_was_lost_may_be_repeated(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, _ = started
    answers = [_pass]
    store = NatsSnapshotStore(_Watched(bus, _pass, lambda message: answers[0](message)))
    first = await _commit_first(store)
    answers[0] = _lose_answer
    with pytest.raises(StoreUnavailable):
        await store.commit(manifest(1, 2, B), first, _change(B))
    second = await store.commit(manifest(1, 2, B), first, _change(B))
    assert second.version == Version(1, 2)
    assert {manifest_key("default", second.version), chunk_key(B.digest)} <= await _keys(bus)


async def test_what_could_not_be_stored_is_stored_before_the_next_commit(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, _ = started
    watched = [_pass]
    store = NatsSnapshotStore(_Watched(bus, lambda message: watched[0](message)))
    first = await _commit_first(store)
    watched[0] = _only("pointer")
    second = await store.commit(manifest(1, 2, B), first, _change(B))
    with pytest.raises(StoreUnavailable):
        await store.commit(manifest(1, 3, C), second, _change(C, B, 2))
    assert await store.read_pointer("default") == second
    watched[0] = _pass
    third = await store.commit(manifest(1, 3, C), second, _change(C, B, 2))
    assert third.version == Version(1, 3)
    assert await store.versions("default") == [Version(1, number) for number in (1, 2, 3)]


async def test_what_a_writer_left_that_lost_the_race_does_not_stand_in_for_it(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    watched = [_pass]
    faster = NatsSnapshotStore(_Watched(bus, lambda message: watched[0](message)))
    first = await _commit_first(faster)
    with pytest.raises(StoreUnavailable):
        await NatsSnapshotStore(_Watched(bus, _only("chunk", "manifest"))).commit(manifest(1, 2, C), first)
    watched[0] = _only("pointer")
    second = await faster.commit(manifest(1, 2, B), first, _change(B))
    assert await _read_all(bus) == (manifest(1, 2, B), [B.content])
    watched[0] = _pass
    await faster.commit(manifest(1, 3, C), second, _change(C, B, 2))
    assert await store.get_manifest("default", Version(1, 2)) == manifest(1, 2, B)


async def test_who_is_not_the_writer_of_the_pointer_does_not_move_it(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    first = await _commit_first(store)
    other = NatsSnapshotStore(_Watched(bus, _pass))
    second = await other.commit(manifest(1, 2, B), first, _change(B))
    with pytest.raises(Conflict):
        await store.commit(manifest(1, 2, C), first, _change(C))
    assert await store.read_pointer("default") == second
    assert await _read_all(bus) == (manifest(1, 2, B), [B.content])


async def test_chunks_that_do_not_travel_are_stored_before_the_pointer(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    first = await _commit_first(store)
    noise = random.Random(7).randbytes(60_000).hex()
    large = hosts_chunk(noise)
    watched = NatsSnapshotStore(_Watched(bus, _only("pointer")))
    with pytest.raises(StoreUnavailable):
        await watched.commit(manifest(1, 2, large), first, _change(large))
    await store.commit(manifest(1, 2, large), first, _change(large))
    assert manifest_key("default", Version(1, 2)) in await _keys(bus)
    await store.put_chunks([B])
    second = await store.read_pointer("default")
    stored = RevisionChange(manifest(1, 2, large), [], [B.name])
    await store.commit(manifest(1, 3, B), second, stored)
    assert manifest_key("default", Version(1, 3)) in await _keys(bus)


@pytest.mark.parametrize("seed", range(3))
async def test_whoever_ends_where_ever_the_table_is_there(
    seed: int, started: tuple[EmbeddedNats, Bus, NatsSnapshotStore]
) -> None:
    """Two publishers take turns, and half of the time messages of one stop at one of them."""
    _, bus, _ = started
    draw = random.Random(seed)
    left = [1_000, 1_000]

    def count(number: int) -> Callable[[Outgoing], Awaitable[None]]:
        async def check(_: Outgoing) -> None:
            left[number] -= 1
            if left[number] < 0:
                raise StoreUnavailable("the writer ends here")

        return check

    def publisher(number: int) -> TablePublisher:
        return TablePublisher(NatsSnapshotStore(_Watched(bus, count(number))), "default", Retention())

    writers = [publisher(0), publisher(1)]
    image = {f"{number:02x}": hosts_chunk(f"h{number}", f"{number:02x}") for number in range(8)}
    await writers[0].publish(Draft(chunks=[*image.values()]))
    for step in range(60):
        number = draw.randrange(2)
        prefix = draw.choice(sorted(image))
        image[prefix] = hosts_chunk(f"h{step}", prefix)
        left[number] = draw.choice((1_000, draw.randrange(4)))
        is_confirmed = False
        writers[number].distrust()
        with suppress(StoreUnavailable):
            await writers[number].publish(Draft(chunks=[*image.values()]))
            is_confirmed = True
        await asyncio.sleep(0.02)  # for what is stored afterwards
        if left[number] < 0 and draw.random() < 0.5:  # the process ends, and another one begins
            writers[number] = publisher(number)
        left[number] = 1_000
        served, contents = await _read_all(bus)
        assert not is_confirmed or contents == [chunk.content for chunk in image.values()]
        assert served.version in await NatsSnapshotStore(_Watched(bus, _pass)).versions("default")


# --- in two steps


async def test_a_version_whose_writer_ended_is_left_out_and_its_manifest_goes() -> None:
    async with real_bus() as (_, bus):
        store = (await NatsStores.open(bus)).snapshots
        first = await store.commit(manifest(1, 1, hosts_chunk("a")), None)
        ended = NatsSnapshotStore(_Watched(bus, _only("chunk", "manifest")))
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
            await NatsSnapshotStore(_Watched(bus, _only("chunk", "manifest"))).commit(
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
        interrupted = NatsSnapshotStore(_Watched(bus, _only("chunk", "manifest")))
        next_one = Version(first.epoch, first.revision + 1)
        with pytest.raises(StoreUnavailable):
            await interrupted.commit(manifest(*next_one, hosts_chunk("b")), await store.read_pointer("default"))
        publisher = TablePublisher(NatsSnapshotStore(_Watched(bus, _pass)), "default", Retention())
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
            if message.subject == _POINTER:
                await store.commit(manifest(2, 1, hosts_chunk("c")), first)

        slower = NatsSnapshotStore(_Watched(bus, be_faster))
        with pytest.raises(Conflict):
            await slower.commit(manifest(1, 2, hosts_chunk("b")), first)
        assert await store.versions("default") == [Version(1, 1), Version(2, 1)]
        pointer = await store.read_pointer("default")
        assert pointer is not None
        assert pointer.version == Version(2, 1)
