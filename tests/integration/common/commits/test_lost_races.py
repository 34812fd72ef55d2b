"""Commits on NATS of several writers, of which some end in the middle, and at the limits of what a message takes."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from fakes.stores.nats_commits import (
    B,
    C,
    Watched,
    change_of,
    commit_first,
    hosts_chunk,
    keys_of,
    manifest,
    only,
    passing,
    read_all,
)
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.errors import Conflict, NotFound, StoreUnavailable, TooLarge
from headgate.common.snapshot import Chunk, Version
from headgate.common.stores.nats.answers import Ack
from headgate.common.stores.nats.jetstream import Outgoing
from headgate.common.stores.nats.keys import chunk_key, manifest_key
from headgate.common.stores.nats.snapshots import NatsSnapshotStore
from headgate.common.stores.revision_change import RevisionChange
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention


@pytest.mark.parametrize("changed", [1, 20, 40, 60, 100, 200])
async def test_changes_of_any_size_are_committed(
    changed: int, started: tuple[EmbeddedNats, Bus, NatsSnapshotStore]
) -> None:
    """A header of NATS takes 64 KB: what is larger does not travel."""
    _, bus, store = started
    draw = random.Random(changed)

    def noise(place: int) -> Chunk:
        return hosts_chunk(draw.randbytes(550).hex(), f"{place:02x}")

    publisher = TablePublisher(store, "default", Retention())
    image = {place: noise(place) for place in range(200)}
    await publisher.publish(Draft(chunks=[*image.values()]))
    for _ in range(2):
        image |= {place: noise(place) for place in range(changed)}
        assert await publisher.publish(Draft(chunks=[*image.values()])) is not None
        assert (await read_all(bus))[1] == [chunk.content for chunk in image.values()]
    assert len(await store.versions("default")) == 3


@pytest.mark.parametrize("size", range(19_000, 26_000, 500))
async def test_a_chunk_of_any_size_is_committed(
    size: int, started: tuple[EmbeddedNats, Bus, NatsSnapshotStore]
) -> None:
    _, bus, store = started
    first = await commit_first(store)
    large = hosts_chunk(random.Random(size).randbytes(size * 2).hex())
    await store.commit(manifest(1, 2, large), first, change_of(large))
    assert await read_all(bus) == (manifest(1, 2, large), [large.content])


class _Overtaken(Watched):
    """A stream in which the manifest of a loser stands in our way once, and is gone when it is looked at."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus, passing)
        self.is_overtaken = False

    async def publish(self, message: Outgoing) -> Ack:
        if message.subject.split(".")[2] == "manifest" and not self.is_overtaken:
            self.is_overtaken = True
            raise Conflict("a manifest that is removed by now")
        return await super().publish(message)


async def test_a_manifest_that_is_gone_again_does_not_count_as_ours(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, _ = started
    stream = _Overtaken(bus)
    store = NatsSnapshotStore(stream)
    first = await commit_first(store)
    second = await store.commit(manifest(1, 2, B), first, change_of(B))
    await store.commit(manifest(1, 3, C), second, change_of(C, B, 2))
    assert stream.is_overtaken
    assert manifest_key("default", Version(1, 2)) in await keys_of(bus)


async def test_a_writer_does_not_take_a_losers_manifest_for_what_is_published(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, _ = started
    watched = [passing]
    store = NatsSnapshotStore(Watched(bus, lambda message: watched[0](message)))
    first = await commit_first(store)
    with pytest.raises(StoreUnavailable):
        await NatsSnapshotStore(Watched(bus, only("chunk", "manifest"))).commit(manifest(1, 2, C), first, change_of(C))
    watched[0] = only("pointer")
    await store.commit(manifest(1, 2, B), first, change_of(B))
    third = TablePublisher(NatsSnapshotStore(Watched(bus, passing)), "default", Retention())
    assert await third.publish(Draft(chunks=[C])) == Version(1, 3)
    assert (await read_all(bus))[1] == [C.content]


async def test_chunks_of_a_manifest_that_was_replaced_are_kept(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    first = await commit_first(store)
    with pytest.raises(StoreUnavailable):
        await NatsSnapshotStore(Watched(bus, only("chunk", "manifest"))).commit(manifest(1, 2, C), first, change_of(C))
    collector = NatsSnapshotStore(Watched(bus, passing), chunk_grace_s=0.0)
    await collector.collect_garbage("other", [])
    second = await store.commit(manifest(1, 2, B), first, change_of(B))
    await store.versions("default")  # it is stored
    for _ in range(2):
        await collector.collect_garbage("other", [])
    assert (await read_all(bus))[1] == [B.content]
    await store.commit(manifest(1, 3, B, C), second, RevisionChange(manifest(1, 2, B), [hosts_chunk("c", "1")]))
    await collector.collect_garbage("other", [])
    assert chunk_key(B.digest) in await keys_of(bus)


async def test_a_reader_that_is_late_does_not_get_a_losers_manifest(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, store = started
    first = await commit_first(store)
    second = await store.commit(manifest(1, 2, B), first, change_of(B))
    assert await NatsSnapshotStore(Watched(bus, passing)).manifest_of(second) == manifest(1, 2, B)
    await store.commit(manifest(1, 3, C), second, change_of(C, B, 2))
    with pytest.raises(NotFound, match="moved on"):
        await store.manifest_of(second.model_copy(update={"manifest_digest": "0" * 64}))


class _Narrow(Watched):
    """A stream that takes no manifest of more than so many bytes."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus, passing)
        self.limit = 1_000_000

    def check_size(self, message: Outgoing) -> None:
        if message.subject.split(".")[2] == "manifest" and len(message.payload) > self.limit:
            raise TooLarge(f"{message.subject} is too large")
        super().check_size(message)


async def test_a_manifest_that_is_too_large_is_refused_before_the_pointer_is_moved(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    _, bus, _ = started
    stream = _Narrow(bus)
    store = NatsSnapshotStore(stream)
    first = await commit_first(store)
    stream.limit = 10
    with pytest.raises(TooLarge):
        await store.commit(manifest(1, 2, B), first, change_of(B))
    assert await store.read_pointer("default") == first
    stream.limit = 1_000_000
    second = await store.commit(manifest(1, 2, C), first, change_of(C))
    assert second.version == Version(1, 2)
    assert await read_all(bus) == (manifest(1, 2, C), [C.content])


async def test_a_store_that_lost_what_came_behind_the_pointer_gets_it_again(
    started: tuple[EmbeddedNats, Bus, NatsSnapshotStore],
) -> None:
    server, bus, store = started
    first = await commit_first(store)
    second = await store.commit(manifest(1, 2, B), first, change_of(B))
    await store.versions("default")  # it is stored
    for key in (manifest_key("default", second.version), chunk_key(B.digest)):
        await Watched(bus, passing).purge(key)
    await server.kill()
    await server.start()
    two = manifest(1, 3, B, hosts_chunk("c", "1"))
    change = RevisionChange(manifest(1, 2, B), [hosts_chunk("c", "1")])
    async with asyncio.timeout(30):
        while True:
            try:
                await store.commit(two, second, change)
                break
            except StoreUnavailable:
                await asyncio.sleep(0.05)
    assert await read_all(bus) == (two, [B.content, hosts_chunk("c", "1").content])


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
        return TablePublisher(NatsSnapshotStore(Watched(bus, count(number))), "default", Retention())

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
        served, contents = await read_all(bus)
        assert not is_confirmed or contents == [chunk.content for chunk in image.values()]
        assert served.version in await NatsSnapshotStore(Watched(bus, passing)).versions("default")
