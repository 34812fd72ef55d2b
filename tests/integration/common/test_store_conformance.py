"""What every implementation of the log and of the board of statuses does, on each of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.stores.implementations import IMPLEMENTATIONS, NOW, Stores
from headgate.common.deltas import Author, ClusterAnnouncement, Delta, KindName, LogMessage, Operation, SyncMarker
from headgate.common.errors import Conflict
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.status import StatusUpdate
from headgate.common.stores import (
    DeltaSelection,
    LoggedDelta,
    LogReplay,
)

KIND = KindName(group="", resource="services")


@pytest.fixture(params=IMPLEMENTATIONS)
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[Stores]:
    async with IMPLEMENTATIONS[request.param]() as opened:
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


async def test_many_statuses_are_posted_at_once_each_with_its_encoding(stores: Stores) -> None:
    updates = [status(f"i{number:02}") for number in range(50)]
    answers = await stores.statuses.post(*updates)
    assert [
        StatusUpdate.decode(answer, each.ref, "default") for each, answer in zip(updates, answers, strict=True)
    ] == updates  # type: ignore[arg-type]
    assert [*await stores.statuses.read("c1")] == updates
    found: dict[ObjectRef, bytes] = {}
    async with asyncio.timeout(30), aclosing(stores.statuses.follow_encoded("c1", "default")) as groups:  # type: ignore[type-var]
        while len(found) < len(updates):
            found |= dict(await anext(groups))
    assert [found[update.ref] for update in updates] == answers


async def test_all_statuses_of_a_cluster_can_be_read_at_once(stores: Stores) -> None:
    assert not await stores.statuses.read("c1")
    theirs = status("a").model_copy(update={"table": "theirs"})
    for update in (status("b"), status("a", "1"), theirs, status("a", "2"), status("c", cluster="c2")):
        await stores.statuses.post(update)
    assert [*await stores.statuses.read("c1")] == [status("a", "2"), theirs, status("b")]
    assert [*await stores.statuses.read("c1", "theirs")] == [theirs]


async def test_statuses_with_problems_can_be_read_alone(stores: Stores) -> None:
    problem = Problem(reason="Gone", message='says "problems":[]')
    troubled = status("a").model_copy(update={"problems": (problem,)})
    mended = status("b").model_copy(update={"content": '"problems":[{', "last_error": None})
    for update in (troubled, mended, status("c")):
        await stores.statuses.post(update)
    assert [*await stores.statuses.read("c1", with_problems=True)] == [troubled]
    assert len(await stores.statuses.read("c1")) == 3


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
