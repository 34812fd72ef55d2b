"""What every implementation of tables and boards does, on each of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing

import pytest

from fakes.stores.chunks import content_of
from fakes.stores.implementations import IMPLEMENTATIONS, NOW, Tables
from fakes.stores.redis import real_tables
from fakes.traffic import of_endpoint, of_route, summary
from headgate.common.errors import Conflict, NotFound
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pin, Pointer, Version, digest_of, open_chunk
from headgate.common.stores.revision_change import RevisionChange
from headgate.common.traffic import Tap

TABLE_STORES: dict[str, Callable[[], AbstractAsyncContextManager[Tables]]] = {**IMPLEMENTATIONS, "redis": real_tables}


@pytest.fixture(params=TABLE_STORES)
async def tables(request: pytest.FixtureRequest) -> AsyncIterator[Tables]:
    async with TABLE_STORES[request.param]() as opened:
        yield opened


# --- snapshots


def chunk(text: str) -> Chunk:
    content = f'["{text}"]'.encode()
    return Chunk("hosts", "", digest_of(content), content)


def name_of(item: Chunk) -> ChunkName:
    return ChunkName(kind=item.kind, prefix=item.prefix, digest=item.digest)


def manifest(revision: int, *chunks: Chunk, epoch: int = 1, table: str = "default") -> Manifest:
    names = tuple(map(name_of, chunks))
    return Manifest(table=table, version=Version(epoch, revision), created_at=NOW, chunks=names)


async def commit(tables: Tables, revisions: Sequence[int], chunks: Callable[[int], Chunk] | None = None) -> Pointer:
    pointer = await tables.snapshots.read_pointer("default")
    for revision in revisions:
        used = [chunks(revision)] if chunks else []
        await tables.snapshots.put_chunks(used)
        pointer = await tables.snapshots.commit(manifest(revision, *used), pointer)
    assert pointer is not None
    return pointer


async def test_a_change_is_stored_with_its_revision_and_read_by_followers_and_others(tables: Tables) -> None:
    first = await commit(tables, [1], lambda _: chunk("a"))
    before = await tables.snapshots.manifest_of(first)
    async with asyncio.timeout(30), aclosing(tables.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
        assert await anext(pointers) == first
        change = RevisionChange(before, [chunk("b")])
        second = await tables.snapshots.commit(manifest(2, chunk("b")), first, change)
        assert await anext(pointers) == second
        followed = await tables.snapshots.manifest_of(second)
    read = await tables.snapshots.get_manifest("default", Version(1, 2))
    assert followed == read == manifest(2, chunk("b"))
    assert await tables.snapshots.missing([chunk("a").digest, chunk("b").digest]) == set()
    assert await content_of(tables.snapshots, name_of(chunk("b"))) == b'["b"]'


async def test_a_change_too_large_to_be_stored_with_its_revision_is_announced_by_name(tables: Tables) -> None:
    first = await commit(tables, [1], lambda _: chunk("a"))
    before = await tables.snapshots.manifest_of(first)
    async with asyncio.timeout(30), aclosing(tables.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
        assert await anext(pointers) == first
        await tables.snapshots.put_chunks([chunk("b")])
        change = RevisionChange(before, [], [name_of(chunk("b"))])
        second = await tables.snapshots.commit(manifest(2, chunk("b")), first, change)
        assert await anext(pointers) == second
        assert await tables.snapshots.manifest_of(second) == manifest(2, chunk("b"))
    assert await content_of(tables.snapshots, name_of(chunk("b"))) == b'["b"]'


async def test_a_table_that_was_never_committed_has_no_pointer(tables: Tables) -> None:
    assert await tables.snapshots.read_pointer("default") is None
    assert await tables.snapshots.versions("default") == []


async def test_a_commit_can_be_read_back(tables: Tables) -> None:
    committed = await commit(tables, [1], lambda _: chunk("a"))
    assert await tables.snapshots.read_pointer("default") == committed
    read = await tables.snapshots.get_manifest("default", committed.version)
    assert read == manifest(1, chunk("a"))
    assert digest_of(read.encode()) == committed.manifest_digest
    assert await content_of(tables.snapshots, read.chunks[0]) == b'["a"]'


async def test_a_commit_on_another_pointer_than_expected_changes_nothing(tables: Tables) -> None:
    first = await commit(tables, [1])
    await tables.snapshots.put_chunks([chunk("winner"), chunk("loser")])
    second = await tables.snapshots.commit(manifest(2, chunk("winner")), first)
    with pytest.raises(Conflict):
        await tables.snapshots.commit(manifest(2, chunk("loser")), first)
    with pytest.raises(Conflict):
        await tables.snapshots.commit(manifest(3), None)
    assert await tables.snapshots.read_pointer("default") == second
    assert await tables.snapshots.get_manifest("default", Version(1, 2)) == manifest(2, chunk("winner"))


async def test_of_many_commits_at_once_one_wins(tables: Tables) -> None:
    first = await commit(tables, [1])
    await tables.snapshots.put_chunks([chunk(f"{n}") for n in range(8)])
    contenders = [tables.snapshots.commit(manifest(2, chunk(f"{n}")), first) for n in range(8)]
    outcomes = await asyncio.gather(*contenders, return_exceptions=True)
    [winner] = [item for item in outcomes if isinstance(item, Pointer)]
    assert all(isinstance(item, Pointer | Conflict) for item in outcomes)
    kept = await tables.snapshots.get_manifest("default", Version(1, 2))
    assert digest_of(kept.encode()) == winner.manifest_digest


async def test_a_commit_that_was_not_confirmed_may_be_repeated(tables: Tables) -> None:
    first = await commit(tables, [1])
    second = await tables.snapshots.commit(manifest(2), first)
    assert await tables.snapshots.commit(manifest(2), first) == second


async def test_tables_do_not_see_each_other(tables: Tables) -> None:
    await commit(tables, [1])
    assert await tables.snapshots.read_pointer("other.table") is None
    await tables.snapshots.commit(manifest(1, table="other.table"), None)
    assert await tables.snapshots.versions("other.table") == [Version(1, 1)]


@pytest.mark.parametrize("count", [3, 40])
async def test_missing_chunks_are_named(tables: Tables, count: int) -> None:
    chunks = [chunk(f"{number}") for number in range(count)]
    await tables.snapshots.put_chunks(chunks[1:])
    assert await tables.snapshots.missing([item.digest for item in chunks]) == {chunks[0].digest}
    assert await tables.snapshots.missing([]) == set()


async def test_storing_a_chunk_twice_does_no_harm(tables: Tables) -> None:
    await tables.snapshots.put_chunks([chunk("a")])
    await tables.snapshots.put_chunks([chunk("a")])
    assert await content_of(tables.snapshots, name_of(chunk("a"))) == chunk("a").content


async def test_what_is_not_there_is_not_found(tables: Tables) -> None:
    with pytest.raises(NotFound):
        await content_of(tables.snapshots, name_of(chunk("never")))
    with pytest.raises(NotFound):
        await tables.snapshots.get_manifest("default", Version(1, 1))


async def test_versions_are_sorted_as_numbers(tables: Tables) -> None:
    await commit(tables, [9, 10, 11])
    assert await tables.snapshots.versions("default") == [Version(1, 9), Version(1, 10), Version(1, 11)]


async def test_garbage_is_old_manifests_and_what_only_they_name(tables: Tables) -> None:
    await commit(tables, [1, 2, 3], lambda revision: chunk(f"{revision}"))
    assert await tables.snapshots.collect_garbage("default", [Version(1, 1)]) == 2
    assert await tables.snapshots.versions("default") == [Version(1, 2), Version(1, 3)]
    digests = {number: chunk(f"{number}").digest for number in (1, 2, 3)}
    assert await tables.snapshots.missing(list(digests.values())) == {digests[1]}
    assert await tables.snapshots.collect_garbage("default", []) == 0


async def test_garbage_of_one_table_spares_the_chunks_of_another(tables: Tables) -> None:
    shared = chunk("shared")
    await commit(tables, [1, 2], lambda revision: shared if revision == 1 else chunk("own"))
    await tables.snapshots.commit(manifest(1, shared, table="other"), None)
    assert await tables.snapshots.collect_garbage("default", [Version(1, 1)]) == 1
    assert await tables.snapshots.missing([shared.digest]) == set()


async def test_the_live_table_of_a_pinned_one_is_spared(tables: Tables) -> None:
    served, live = chunk("served"), chunk("live")
    await tables.snapshots.put_chunks([served, live])
    pin = Pin(version=Version(1, 1), since=NOW, live=(name_of(live),))
    await tables.snapshots.commit(manifest(2, served).model_copy(update={"pin": pin}), None)
    await tables.snapshots.collect_garbage("default", [])
    assert await tables.snapshots.missing([served.digest, live.digest]) == set()


async def test_the_manifest_in_force_is_never_garbage(tables: Tables) -> None:
    pointer = await commit(tables, [1], lambda _: chunk("a"))
    await tables.snapshots.collect_garbage("default", [pointer.version])
    assert await tables.snapshots.get_manifest("default", pointer.version)


async def test_followers_get_the_pointer_now_and_at_every_change(tables: Tables) -> None:
    first = await commit(tables, [1])
    async with asyncio.timeout(30), aclosing(tables.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
        assert await anext(pointers) == first
        second = await commit(tables, [2])
        assert await anext(pointers) == second


async def test_a_follower_may_come_before_the_first_commit(tables: Tables) -> None:
    async with asyncio.timeout(30), aclosing(tables.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
        waiting = asyncio.ensure_future(anext(pointers))
        await asyncio.sleep(0)
        first = await commit(tables, [1])
        assert await waiting == first


async def test_many_chunks_are_read_at_once(tables: Tables) -> None:
    chunks = [chunk(f"{number}") for number in range(300)]
    await tables.snapshots.put_chunks(chunks)
    names = [name_of(item) for item in chunks]
    stored = await tables.snapshots.get_chunks(names)
    assert list(map(open_chunk, names, stored)) == [item.content for item in chunks]
    assert list(await tables.snapshots.get_chunks(names[::-1])) == list(stored)[::-1]
    assert list(await tables.snapshots.get_chunks([])) == []


async def test_one_missing_chunk_of_many_is_named(tables: Tables) -> None:
    chunks = [chunk(f"{number}") for number in range(50)]
    await tables.snapshots.put_chunks([each for each in chunks if each != chunks[20]])
    with pytest.raises(NotFound, match=f"chunk {chunks[20].digest[:12]} is not in the store"):
        await tables.snapshots.get_chunks([name_of(item) for item in chunks])


async def test_chunks_of_a_notice_come_in_their_places_among_those_of_the_store(tables: Tables) -> None:
    first = await commit(tables, [1], lambda _: chunk("a"))
    before = await tables.snapshots.manifest_of(first)
    async with asyncio.timeout(30), aclosing(tables.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
        await anext(pointers)
        change = RevisionChange(before, [chunk("b")])
        await tables.snapshots.commit(manifest(2, chunk("a"), chunk("b")), first, change)
        await tables.snapshots.put_chunks([chunk("c")])
        await tables.snapshots.manifest_of(await anext(pointers))
    names = [name_of(chunk(text)) for text in "cbab"]
    stored = await tables.snapshots.get_chunks(names)
    assert list(map(open_chunk, names, stored)) == [chunk(text).content for text in "cbab"]


def heartbeat(replica: str, worker: int = 0, revision: int = 1) -> Heartbeat:
    return Heartbeat(replica=replica, worker=worker, table="default", version=Version(1, revision), at=NOW)


async def test_live_workers_are_those_that_announced_themselves_last(tables: Tables) -> None:
    for beat in (heartbeat("gw.1", revision=1), heartbeat("gw.1", 1), heartbeat("gw.0"), heartbeat("gw.1", revision=2)):
        await tables.heartbeats.beat(beat)
    assert await tables.heartbeats.live() == [heartbeat("gw.0"), heartbeat("gw.1", revision=2), heartbeat("gw.1", 1)]


async def test_workers_that_announce_themselves_meanwhile_are_there_once(tables: Tables) -> None:
    async def announce() -> None:
        while True:
            for worker in range(20):
                await tables.heartbeats.beat(heartbeat("gw", worker))
                await asyncio.sleep(0)

    for worker in range(20):
        await tables.heartbeats.beat(heartbeat("gw", worker))
    async with asyncio.TaskGroup() as group:
        announcing = [group.create_task(announce()) for _ in range(8)]
        for _ in range(100):
            assert [beat.worker for beat in await tables.heartbeats.live()] == list(range(20))
        for task in announcing:
            task.cancel()


async def test_gateways_of_two_tables_may_have_one_name(tables: Tables) -> None:
    ours, theirs = heartbeat("gw"), heartbeat("gw").model_copy(update={"table": "theirs"})
    await tables.heartbeats.beat(ours)
    await tables.heartbeats.beat(theirs)
    assert {beat.table for beat in await tables.heartbeats.live()} == {"default", "theirs"}
    await tables.heartbeats.remove(theirs)
    assert await tables.heartbeats.live() == [ours]


async def test_a_worker_that_takes_its_announcement_back_is_gone(tables: Tables) -> None:
    await tables.heartbeats.beat(heartbeat("gw"))
    await tables.heartbeats.remove(heartbeat("gw"))
    await tables.heartbeats.remove(heartbeat("never there"))
    assert await tables.heartbeats.live() == []


# --- traffic


async def test_who_listens_hears_what_is_told_of_a_table(tables: Tables) -> None:
    told = summary(of_route("a|r"), of_endpoint("10.0.0.1:80"), table="a.b")
    async with aclosing(tables.traffic.listen("a.b")) as heard:
        listening = asyncio.ensure_future(anext(heard))
        async with asyncio.timeout(20):
            while not listening.done():
                await tables.traffic.tell(summary(of_route("b|r")))
                await tables.traffic.tell(told)
                await asyncio.sleep(0.02)
        assert listening.result() == told


async def test_traffic_is_told_without_a_listener(tables: Tables) -> None:
    await tables.traffic.tell(summary(of_route("a|r")))


async def test_wishes_for_requests_reach_the_workers_of_a_table(tables: Tables) -> None:
    wish = Tap("t", host="a.example", statuses=(5, 404))
    async with aclosing(tables.traffic.taps("a.b")) as taps:
        hearing = asyncio.ensure_future(anext(taps))
        async with asyncio.timeout(20):
            while not hearing.done():
                await tables.traffic.tap("other", Tap("o"))
                await tables.traffic.tap("a.b", wish)
                await asyncio.sleep(0.02)
        assert hearing.result() == wish
