"""What every implementation of the stores does, on each of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

import pytest

from fakes.stores.nats import real_stores
from fakes.stores.redis import real_tables
from headgate.common.deltas import Author, ClusterAnnouncement, Delta, KindName, LogMessage, Operation, SyncMarker
from headgate.common.errors import Conflict, NotFound
from headgate.common.heartbeats import Heartbeat
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pin, Pointer, Version, digest_of
from headgate.common.status import StatusUpdate
from headgate.common.stores import (
    DeltaLogReader,
    DeltaLogWriter,
    DeltaSelection,
    HeartbeatBoard,
    LoggedDelta,
    LogReplay,
    SnapshotStore,
    StatusBoard,
)
from headgate.common.stores.memory.stores import MemoryStores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KIND = KindName(group="", resource="services")


class Tables(Protocol):
    """What gateways need, too."""

    snapshots: SnapshotStore
    heartbeats: HeartbeatBoard


class Stores(Tables, Protocol):
    """What stands between watchers and translators, besides."""

    log_writer: DeltaLogWriter
    log_reader: DeltaLogReader
    statuses: StatusBoard


@asynccontextmanager
async def memory() -> AsyncIterator[Stores]:
    yield MemoryStores()


IMPLEMENTATIONS: dict[str, Callable[[], AbstractAsyncContextManager[Stores]]] = {
    "memory": memory,
    "nats": real_stores,
}
TABLE_STORES: dict[str, Callable[[], AbstractAsyncContextManager[Tables]]] = {**IMPLEMENTATIONS, "redis": real_tables}


@pytest.fixture(params=IMPLEMENTATIONS)
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[Stores]:
    async with IMPLEMENTATIONS[request.param]() as opened:
        yield opened


@pytest.fixture(params=TABLE_STORES)
async def tables(request: pytest.FixtureRequest) -> AsyncIterator[Tables]:
    async with TABLE_STORES[request.param]() as opened:
        yield opened


def delta(name: str, version: str = "1", *, cluster: str = "c1", deleted: bool = False, **extra: Any) -> Delta:
    return Delta(
        ref=ObjectRef(cluster, "", "services", "ns.with=odd", name),
        operation=Operation.DELETE if deleted else Operation.APPLY,
        uid=f"uid-{name}",
        resource_version=version,
        observed_at=NOW,
        object=None if deleted else {"metadata": {"name": name}, "spec": {"version": version, "ports": [1, 2.5, None]}},
        **extra,
    )


async def read_log(stores: Stores, until: Callable[[Sequence[LogMessage]], bool]) -> list[LogMessage]:
    """Follow from the beginning until enough was seen."""
    seen: list[LogMessage] = []
    async with asyncio.timeout(30), aclosing(stores.log_reader.follow()) as log:  # type: ignore[type-var]
        async for item in log:
            if not isinstance(item, LogReplay):
                seen += item
            if until(seen):
                return seen
    raise AssertionError("the log ended")


# --- delta log


async def test_a_delta_comes_back_as_it_was_written(stores: Stores) -> None:
    written = delta("web", traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
    sequence = await stores.log_writer.append(written)
    [read] = await read_log(stores, bool)
    assert read == written.model_copy(update={"sequence": sequence})


async def test_a_deletion_comes_back_without_an_object(stores: Stores) -> None:
    await stores.log_writer.append(delta("web", deleted=True))
    [read] = await read_log(stores, bool)
    assert isinstance(read, Delta)
    assert (read.operation, read.object) == (Operation.DELETE, None)


async def test_replay_has_the_last_delta_of_each_object_in_order(stores: Stores) -> None:
    for item in (delta("a", "1"), delta("b", "1"), delta("a", "2")):
        await stores.log_writer.append(item)
    seen = await read_log(stores, lambda seen: len(seen) == 2)
    assert [(m.ref.name, m.resource_version) for m in seen if isinstance(m, Delta)] == [("b", "1"), ("a", "2")]


async def test_replay_is_complete_at_the_position_that_it_names(stores: Stores) -> None:
    await stores.log_writer.append_all([delta(f"n{number}") for number in range(600)])
    async with asyncio.timeout(30), aclosing(stores.log_reader.follow()) as log:  # type: ignore[type-var]
        first = await anext(log)
        assert isinstance(first, LogReplay)
        assert first.position == await stores.log_reader.position()
        seen: list[LogMessage] = []
        while len(seen) < 600:
            batch = await anext(log)
            assert not isinstance(batch, LogReplay)
            assert len(batch) <= 500
            seen += batch
    assert seen[-1].sequence == first.position.last_sequence  # type: ignore[union-attr]


async def test_an_empty_log_says_that_its_replay_is_complete(stores: Stores) -> None:
    async with asyncio.timeout(30), aclosing(stores.log_reader.follow()) as log:  # type: ignore[type-var]
        first = await anext(log)
    assert isinstance(first, LogReplay)
    assert first.position.last_sequence == 0


async def test_news_follow_the_replay(stores: Stores) -> None:
    async with asyncio.timeout(30), aclosing(stores.log_reader.follow()) as log:  # type: ignore[type-var]
        await anext(log)
        sequence = await stores.log_writer.append(delta("web"))
        [read] = await anext(log)
    assert isinstance(read, Delta)
    assert read.sequence == sequence


async def test_markers_keep_their_place_among_the_deltas(stores: Stores) -> None:
    announcement = ClusterAnnouncement(
        cluster="c1", source="kubernetes", instance="w1", kinds=(KIND,), announced_at=NOW
    )
    marker = SyncMarker(cluster="c1", kind=KIND, at=NOW)
    await stores.log_writer.announce(announcement)
    await stores.log_writer.append(delta("web"))
    await stores.log_writer.mark_synced(marker)
    seen = await read_log(stores, lambda seen: len(seen) == 3)
    sequences = [message.sequence for message in seen]
    assert seen[0] == announcement.model_copy(update={"sequence": sequences[0]})
    assert isinstance(seen[1], Delta)
    assert seen[2] == marker.model_copy(update={"sequence": sequences[2]})
    assert 0 < sequences[0] < sequences[1] < sequences[2]


async def test_what_a_watcher_said_last_of_itself_can_be_asked_for(stores: Stores) -> None:
    assert await stores.log_reader.announcement("c1") is None
    for cluster, instance in (("c1", "w1"), ("c1", "w2"), ("c2", "w3")):
        said = ClusterAnnouncement(
            cluster=cluster, source="kubernetes", instance=instance, kinds=(KIND,), announced_at=NOW
        )
        await stores.log_writer.announce(said)
    found = await stores.log_reader.announcement("c1")
    assert found is not None
    assert (found.instance, found.sequence) == ("w2", 2)
    assert [each.instance for each in await stores.log_reader.announcements()] == ["w2", "w3"]


async def test_the_same_delta_again_is_stored_once(stores: Stores) -> None:
    first = await stores.log_writer.append(delta("web"))
    assert await stores.log_writer.append(delta("web")) == first
    assert (await stores.log_reader.position()).last_sequence == first


async def test_an_object_may_return_to_what_it_was(stores: Stores) -> None:
    await stores.log_writer.append(delta("web", "1"))
    await stores.log_writer.append(delta("web", "2"))
    await stores.log_writer.append(delta("web", "1"))
    [read] = await read_log(stores, bool)
    assert isinstance(read, Delta)
    assert read.resource_version == "1"


async def test_an_object_may_return_to_what_it_was_in_a_bulk_of_deltas(stores: Stores) -> None:
    await stores.log_writer.append_all([delta("web", "1"), delta("other")])
    await stores.log_writer.append(delta("web", deleted=True))
    sequences = await stores.log_writer.append_all([delta("web", "1"), delta("other")])
    state = await stores.log_writer.read_state("c1")
    assert [state[delta(name).ref].is_deleted for name in ("web", "other")] == [False, False]
    assert [state[delta(name).ref].sequence for name in ("web", "other")] == list(sequences)


async def test_append_refuses_when_another_delta_came_in_between(stores: Stores) -> None:
    first = await stores.log_writer.append(delta("web", "1"), expected_last=0)
    await stores.log_writer.append(delta("web", "2"), expected_last=first)
    with pytest.raises(Conflict):
        await stores.log_writer.append(delta("web", "3"), expected_last=first)


async def test_append_refuses_a_first_delta_when_there_is_one(stores: Stores) -> None:
    await stores.log_writer.append(delta("web", "1"))
    with pytest.raises(Conflict):
        await stores.log_writer.append(delta("web", "2"), expected_last=0)


async def test_bulk_appending_returns_each_sequence_in_order(stores: Stores) -> None:
    deltas = [delta(f"n{number}") for number in range(1500)]
    sequences = await stores.log_writer.append_all(deltas)
    state = await stores.log_writer.read_state("c1")
    assert [state[item.ref].sequence for item in deltas] == list(sequences) == sorted(sequences)


async def test_bulk_appending_nothing_is_nothing(stores: Stores) -> None:
    assert list(await stores.log_writer.append_all([])) == []


async def test_state_is_that_of_the_asked_cluster_with_tombstones(stores: Stores) -> None:
    await stores.log_writer.append(delta("a", "7"))
    await stores.log_writer.append(delta("b", "8", deleted=True))
    await stores.log_writer.append(delta("c", cluster="c2"))
    state = await stores.log_writer.read_state("c1")
    facts = {ref.name: (item.uid, item.resource_version, item.is_deleted) for ref, item in state.items()}
    assert facts == {"a": ("uid-a", "7", False), "b": ("uid-b", "8", True)}


async def test_state_of_an_unknown_cluster_is_empty(stores: Stores) -> None:
    assert await stores.log_writer.read_state("nowhere") == {}


async def test_old_tombstones_are_purged_and_nothing_else(stores: Stores) -> None:
    await stores.log_writer.append(delta("gone", "1"))
    await stores.log_writer.append(delta("gone", "2", deleted=True))
    await stores.log_writer.append(delta("there"))
    assert await stores.log_writer.purge_tombstones("c1", older_than_s=3600) == 0
    assert await stores.log_writer.purge_tombstones("c1", older_than_s=-60) == 1
    assert {ref.name for ref in await stores.log_writer.read_state("c1")} == {"there"}


async def test_of_a_cluster_that_is_forgotten_the_objects_stay_and_what_was_said_since(stores: Stores) -> None:
    kinds = tuple(KindName(group="", resource=resource) for resource in ("services", "secrets"))
    marks = [SyncMarker(cluster="c1", kind=kind, at=datetime.now(UTC)) for kind in kinds]
    for cluster in ("c1", "c2"):
        told = ClusterAnnouncement(
            cluster=cluster, source="kubernetes", instance="w", kinds=kinds, announced_at=datetime.now(UTC)
        )
        await stores.log_writer.announce(told)
    await stores.log_writer.mark_synced(marks[0])
    known = await stores.log_writer.append(delta("there"))
    await stores.log_writer.mark_synced(marks[1])
    await stores.log_writer.forget_cluster("c1", known)
    assert [one.cluster for one in await stores.log_reader.announcements()] == ["c2"]
    found = await read_log(stores, lambda seen: isinstance(seen[-1], SyncMarker) if seen else False)
    assert [type(one) for one in found] == [ClusterAnnouncement, Delta, SyncMarker]
    assert found[-1].kind == kinds[1]


async def test_a_replay_is_complete_also_when_the_last_message_was_purged(stores: Stores) -> None:
    there = await stores.log_writer.append(delta("there"))
    await stores.log_writer.append(delta("gone", deleted=True))
    await stores.log_writer.purge_tombstones("c1", older_than_s=-60)
    assert (await stores.log_reader.position()).last_sequence == there


async def read_past(stores: Stores, selection: DeltaSelection, after: int = 0, **options: Any) -> list[LoggedDelta]:
    async with asyncio.timeout(30), aclosing(stores.log_reader.read_after(selection, after, **options)) as batches:
        return [event async for batch in batches for event in batch]


async def test_the_past_is_read_in_order_and_ends(stores: Stores) -> None:
    assert await read_past(stores, DeltaSelection()) == []
    sequences = [await stores.log_writer.append(delta(name)) for name in ("a", "b", "c")]
    found = await read_past(stores, DeltaSelection(), after=sequences[0])
    assert [(event.delta.ref.name, event.delta.sequence) for event in found] == [
        ("b", sequences[1]),
        ("c", sequences[2]),
    ]
    assert abs((found[0].logged_at - datetime.now(UTC)).total_seconds()) < 60
    assert found[0].delta.object == delta("b").object


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (DeltaSelection(cluster="c2"), ["b"]),
        (DeltaSelection(name="a"), ["a"]),
        (DeltaSelection(namespace="ns.with=odd"), ["a", "b"]),
        (DeltaSelection(namespace="other"), []),
        (DeltaSelection(kinds=(("", "services"), ("x.io", "things"))), ["a", "b"]),
        (DeltaSelection(kinds=(("x.io", "services"),)), []),
    ],
)
async def test_the_past_is_read_of_what_is_selected(
    stores: Stores, selection: DeltaSelection, expected: list[str]
) -> None:
    await stores.log_writer.append(delta("a"))
    await stores.log_writer.append(delta("b", cluster="c2"))
    assert [event.delta.ref.name for event in await read_past(stores, selection)] == expected


async def test_the_past_comes_without_objects_where_they_are_not_wanted(stores: Stores) -> None:
    written = delta("a", author=Author("kubectl", NOW))
    await stores.log_writer.append(written)
    [event] = await read_past(stores, DeltaSelection(), with_objects=False)
    assert event.delta == written.model_copy(update={"object": None, "sequence": event.delta.sequence})


async def test_a_tail_goes_on_with_what_comes(stores: Stores) -> None:
    first = await stores.log_writer.append(delta("a"))
    await stores.log_writer.append(delta("b"))
    async with asyncio.timeout(30), aclosing(stores.log_reader.tail(DeltaSelection(), first)) as batches:
        assert [event.delta.ref.name for event in await anext(batches)] == ["b"]
        await stores.log_writer.append(delta("c"))
        assert [event.delta.ref.name for event in await anext(batches)] == ["c"]


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


async def test_a_table_that_was_never_committed_has_no_pointer(tables: Tables) -> None:
    assert await tables.snapshots.read_pointer("default") is None
    assert await tables.snapshots.versions("default") == []


async def test_a_commit_can_be_read_back(tables: Tables) -> None:
    committed = await commit(tables, [1], lambda _: chunk("a"))
    assert await tables.snapshots.read_pointer("default") == committed
    read = await tables.snapshots.get_manifest("default", committed.version)
    assert read == manifest(1, chunk("a"))
    assert digest_of(read.encode()) == committed.manifest_digest
    assert await tables.snapshots.get_chunk(read.chunks[0]) == b'["a"]'


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
    assert await tables.snapshots.get_chunk(name_of(chunk("a"))) == chunk("a").content


async def test_what_is_not_there_is_not_found(tables: Tables) -> None:
    with pytest.raises(NotFound):
        await tables.snapshots.get_chunk(name_of(chunk("never")))
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
    read = await asyncio.gather(*(tables.snapshots.get_chunk(name_of(item)) for item in chunks))
    assert read == [item.content for item in chunks]


# --- boards


def status(name: str, uid: str = "u", cluster: str = "c1") -> StatusUpdate:
    ref = ObjectRef(cluster, "networking.k8s.io", "ingresses", "default", name)
    return StatusUpdate(ref=ref, api_version="networking.k8s.io/v1", kind="Ingress", uid=uid, is_accepted=True, at=NOW)


async def test_wanted_statuses_come_once_each_then_at_every_change(stores: Stores) -> None:
    for update in (status("a", "1"), status("b"), status("a", "2"), status("c", cluster="c2")):
        await stores.statuses.post(update)
    async with asyncio.timeout(30), aclosing(stores.statuses.follow("c1")) as updates:  # type: ignore[type-var]
        assert [await anext(updates), await anext(updates)] == [status("b"), status("a", "2")]
        await stores.statuses.post(status("b", "3"))
        assert await anext(updates) == status("b", "3")


async def test_all_statuses_of_a_cluster_can_be_read_at_once(stores: Stores) -> None:
    assert not await stores.statuses.read("c1")
    theirs = status("a").model_copy(update={"table": "theirs"})
    for update in (status("b"), status("a", "1"), theirs, status("a", "2"), status("c", cluster="c2")):
        await stores.statuses.post(update)
    assert [*await stores.statuses.read("c1")] == [status("a", "2"), theirs, status("b")]
    assert [*await stores.statuses.read("c1", "theirs")] == [theirs]


async def test_each_table_has_its_own_word_on_an_object(stores: Stores) -> None:
    ours, theirs = status("a"), status("a").model_copy(update={"table": "theirs"})
    for update in (ours, theirs):
        await stores.statuses.post(update)
    async with asyncio.timeout(10), aclosing(stores.statuses.follow("c1")) as updates:  # type: ignore[type-var]
        assert [await anext(updates), await anext(updates)] == [ours, theirs]
    async with asyncio.timeout(10), aclosing(stores.statuses.follow("c1", "theirs")) as updates:  # type: ignore[type-var]
        assert await anext(updates) == theirs
        await stores.statuses.post(status("b"))
        await stores.statuses.forget(theirs.model_copy(update={"uid": "gone"}))
        assert (await anext(updates)).uid == "gone"


async def test_the_last_word_on_an_object_that_is_gone_reaches_followers(stores: Stores) -> None:
    await stores.statuses.post(status("a"))
    async with asyncio.timeout(30), aclosing(stores.statuses.follow("c1")) as updates:  # type: ignore[type-var]
        assert await anext(updates) == status("a")
        await stores.statuses.forget(status("a", "gone"))
        assert await anext(updates) == status("a", "gone")
        await stores.statuses.post(status("a", "again"))
        assert await anext(updates) == status("a", "again")


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
