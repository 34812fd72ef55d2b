"""Two translators on one log: one commits and posts, the other is ready to go on where that one ends."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import pytest

from fakes.translator.deltas import applied, deleted, endpoint_slice, ingress, service
from fakes.translator.late_log import behind
from fakes.translator.leadership import Seat
from fakes.translator.loop import NOW, fill, idle, manifest_of, running, snapshots_of, table_of, version_of
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.errors import StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Chunk, Pin, Version
from headgate.common.status import StatusUpdate
from headgate.common.stores.memory.log import MemoryDeltaLog
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.common.stores.memory.stores import MemoryStores
from headgate.operations.committing import publisher
from headgate.translator.leading import feeds
from headgate.translator.leading.leadership import PATIENCE, CatchUp
from headgate.translator.leading.output import Output
from headgate.translator.loop import TranslatorLoop
from headgate.translator.status import poster as status_poster


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


class Pair(NamedTuple):
    stores: MemoryStores
    one: TranslatorLoop
    other: TranslatorLoop
    seat: Seat
    """Of `one`, which leads at first."""
    other_seat: Seat

    def hand_over(self) -> None:
        self.seat.lose()
        self.other_seat.take()


@asynccontextmanager
async def pair(stores: MemoryStores) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        seats = Seat(is_leader=True), Seat()
        one, other = [await stack.enter_async_context(running(stores, leadership=seat)) for seat in seats]
        yield Pair(stores, one, other, *seats)


async def filled() -> MemoryStores:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), service(), endpoint_slice("web", "10.0.0.1"))
    return stores


def posts(stores: MemoryStores) -> int:
    return stores.statuses.sequence  # type: ignore[attr-defined,no-any-return]


@in_virtual_time
async def test_one_that_follows_is_ready_and_writes_nothing() -> None:
    stores = await filled()
    async with running(stores, leadership=Seat()) as translator:
        await until(lambda: translator.readiness() is None)
        await stores.log_writer.append(applied(ingress("new", host="new.example")))
        await asyncio.sleep(0.1)
        assert version_of(stores) is None
        assert posts(stores) == 0


async def test_one_that_begins_to_lead_publishes_and_posts() -> None:
    stores, seat = await filled(), Seat()
    async with running(stores, leadership=seat) as translator:
        await until(lambda: translator.readiness() is None)
        seat.take()
        await until(lambda: version_of(stores) and posts(stores))
        assert "a.example" in await table_of(stores)


@in_virtual_time
async def test_a_takeover_finds_its_own_table_and_statuses_and_writes_neither_again() -> None:
    stores = await filled()
    async with pair(stores) as both:
        await until(lambda: version_of(stores) and posts(stores))
        await stores.log_writer.append(applied(ingress("new", host="new.example")))
        await until(lambda: posts(stores) == 2)
        await idle(stores, both.one, both.other)
        before, posted = version_of(stores), posts(stores)
        both.hand_over()
        await until(lambda: both.other.leads)
        await idle(stores, both.other)
        await asyncio.sleep(0.1)
        assert (version_of(stores), posts(stores)) == (before, posted)


@in_virtual_time
async def test_a_takeover_goes_on_with_what_came_meanwhile_and_names_only_that() -> None:
    stores = await filled()
    async with pair(stores) as both:
        first = await until(lambda: version_of(stores))
        await idle(stores, both.one, both.other)
        both.seat.lose()
        await stores.log_writer.append(applied(endpoint_slice("web", "10.0.0.9")))
        await asyncio.sleep(0.05)
        assert version_of(stores) == first
        both.other_seat.take()
        await until(lambda: version_of(stores) != first)
        manifest = await manifest_of(stores)
        assert [(cause.kind, cause.name) for cause in manifest.causes] == [("EndpointSlice", "web-1")]
        assert (manifest.cause_count, manifest.parent) == (1, first)


async def test_changes_of_a_long_wait_are_not_counted_among_the_causes() -> None:
    stores = await filled()
    async with pair(stores) as both:
        for number in range(150):
            await stores.log_writer.append(applied(ingress(f"i{number}", host=f"h{number}.example")))
        await idle(stores, both.one, both.other)
        both.hand_over()
        await stores.log_writer.append(applied(ingress("last", host="last.example")))
        before = version_of(stores)
        await until(lambda: version_of(stores) != before)
        assert (await manifest_of(stores)).cause_count == 1


async def test_changes_that_changed_nothing_are_not_counted_among_the_causes() -> None:
    stores = await filled()
    async with pair(stores) as both:
        await until(lambda: version_of(stores))
        for number in range(5):
            await stores.log_writer.append(applied(service(f"unused-{number}")))
        await idle(stores, both.one, both.other)
        both.seat.lose()
        await stores.log_writer.append(applied(ingress("last", host="last.example")))
        before = version_of(stores)
        both.other_seat.take()
        await until(lambda: version_of(stores) != before)
        assert [cause.name for cause in (await manifest_of(stores)).causes] == ["last"]


async def test_leading_goes_back_and_forth_without_a_revision_going_back() -> None:
    stores = await filled()
    async with pair(stores) as both:
        versions = [await until(lambda: version_of(stores))]
        translators = {both.seat: both.one, both.other_seat: both.other}
        for number in range(6):
            leader, follower = [both.seat, both.other_seat][:: 1 if number % 2 else -1]
            follower.lose()
            await stores.log_writer.append(applied(ingress("web", host=f"h{number}.example")))
            leader.take()
            await until(lambda seen=versions[-1]: version_of(stores) != seen)  # type: ignore[misc]
            await idle(stores, translators[leader])
            versions.append(version_of(stores))
            assert f"h{number}.example" in await table_of(stores)
    assert versions == sorted(versions)


class SlowStore(MemorySnapshotStore):
    """A store in which a writer can be stopped before its commit, while it stores chunks."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.waiting = 0

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        self.waiting += 1
        await self.is_open.wait()
        self.waiting -= 1
        await super().put_chunks(chunks)


@in_virtual_time
async def test_one_that_stood_still_before_its_commit_does_not_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "COMMITTED_ALONG", -1)  # chunks are stored before, as large ones are
    stores, slow = await filled(), SlowStore()
    stores.snapshots = slow
    async with pair(stores) as both:
        first = await until(lambda: version_of(stores))
        await idle(stores, both.one, both.other)
        slow.is_open.clear()
        await stores.log_writer.append(applied(ingress("b", host="b.example")))
        await until(lambda: slow.waiting)
        both.seat.expire()
        await stores.log_writer.append(deleted(ingress("b", host="b.example")))
        slow.is_open.set()
        await asyncio.sleep(0.1)
        both.seat.lose()
        both.other_seat.take()
        await until(lambda: both.other.leads)
        await idle(stores, both.other)
        assert version_of(stores) == first
        assert "b.example" not in await table_of(stores)


async def test_one_that_has_read_less_of_the_log_waits_with_its_first_commit() -> None:
    stores = await filled()
    seats = Seat(is_leader=True), Seat()
    async with running(stores, leadership=seats[0]) as one:
        first = await until(lambda: version_of(stores))
        late = behind(stores)
        async with running(stores, leadership=seats[1]) as other:
            await until(lambda: other.readiness() is None)
            late.flows.clear()
            sequence = await stores.log_writer.append(applied(ingress("new", host="new.example")))
            await until(lambda: version_of(stores) != first)
            await idle(stores, one)
            second = version_of(stores)
            seats[0].lose()
            seats[1].take()
            await until(lambda: "read more of the log" in (other.inputs.obstacle(leads=other.leads) or ""))
            assert version_of(stores) == second
            late.flows.set()
            await until(lambda: other.inputs.intake.sequence == sequence and other.schedule.is_empty)
            assert version_of(stores) == second


@in_virtual_time
async def test_statuses_that_wait_are_not_posted_by_one_that_leads_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = await filled()
    post, opened, tried = stores.statuses.post, asyncio.Event(), 0

    async def slow_post(*updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        nonlocal tried
        tried += len(updates)
        await opened.wait()
        return await post(*updates)

    monkeypatch.setattr(status_poster, "BATCH", 1)
    async with pair(stores) as both:
        await until(lambda: posts(stores))
        await idle(stores, both.one, both.other)
        before = posts(stores)
        monkeypatch.setattr(stores.statuses, "post", slow_post)
        for number in range(10):
            await stores.log_writer.append(applied(ingress(f"i{number}", host=f"h{number}.example")))
        await until(lambda: tried)
        both.seat.expire()
        opened.set()
        await asyncio.sleep(0.1)
        assert posts(stores) - before == tried == 1


async def test_a_pin_is_kept_over_a_takeover() -> None:
    stores = await filled()
    async with pair(stores) as both:
        first = await until(lambda: version_of(stores))
        await idle(stores, both.one, both.other)
        current = await manifest_of(stores)
        pin = Pin(version=first, by="somebody", since=current.created_at, is_frozen=True, live=current.chunks)
        pinned = current.model_copy(
            update={"version": first._replace(revision=first.revision + 1), "parent": first, "pin": pin}
        )
        await snapshots_of(stores).commit(pinned, await stores.snapshots.read_pointer("default"))
        both.hand_over()
        await stores.log_writer.append(applied(ingress("new", host="new.example")))
        await until(lambda: version_of(stores) not in (first, pinned.version))
        assert "new.example" not in await table_of(stores)
        assert (await manifest_of(stores)).pin is not None


async def test_what_cannot_be_read_is_gone_on_without_after_some_looks() -> None:
    log = MemoryDeltaLog()
    await log.append(applied(service()))
    catch_up = CatchUp(log)
    catch_up.begin()
    assert not catch_up.is_done(10**9)
    await catch_up.ask((await log.position()).incarnation)
    assert not catch_up.is_done(0)
    assert catch_up.is_done(1)
    for _ in range(PATIENCE):
        assert catch_up.is_waiting
        catch_up.look()
    assert catch_up.is_done(0)


async def test_a_log_that_was_made_anew_is_waited_for() -> None:
    log = MemoryDeltaLog()
    catch_up = CatchUp(log)
    catch_up.begin()
    await catch_up.ask("another")
    assert not catch_up.is_done(10**9)


async def test_whoever_begins_to_lead_looks_what_gateways_serve_before_it_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def rest(self: feeds.Feeds, output: Output) -> None:
        """It is not yet time to look around again."""

    stores = await filled()
    async with pair(stores) as both:
        await idle(stores, both.one, both.other)
        monkeypatch.setattr(feeds.Feeds, "look", rest)
        before = version_of(stores)
        assert before is not None
        # Committed by one that is gone, to a store that was set back since.
        served = Version(before.epoch, before.revision + 1)
        await stores.heartbeats.beat(Heartbeat(replica="gw", worker=0, table="default", version=served, at=NOW))
        both.hand_over()
        await stores.log_writer.append(applied(endpoint_slice("web", "10.0.0.2")))
        await until(lambda: version_of(stores) != before)
        after = version_of(stores)
        assert after is not None
        assert after.epoch > before.epoch
