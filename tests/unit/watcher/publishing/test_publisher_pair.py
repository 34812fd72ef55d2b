"""Two watchers of one cluster on one log in memory: one publishes, the other is ready to."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from fakes.translator.leadership import Seat
from fakes.translator.publishing import ObservedLog, Publishing, publishing, service
from fakes.waiting import until
from headgate.common.deltas import ClusterAnnouncement, SyncMarker
from headgate.common.resources import SERVICE, ObjectRef, ResourceKind
from headgate.watcher.publishing import publisher as publisher_module


def log_ref(name: str) -> ObjectRef:
    return ObjectRef("a", SERVICE.group, SERVICE.resource, "default", name)


class Watcher(NamedTuple):
    """One of the two, the cluster as it sees it, and the lists that it was asked for."""

    publishing: Publishing
    seat: Seat
    asked: list[ResourceKind]

    def sees(self, *services: Any) -> None:
        self.publishing.source.list(*services)

    async def until_taken_in(self, *names: str, gone: Sequence[str] = ()) -> None:
        """Wait until it knows that these Services are there, and that others are gone."""
        wanted = self.publishing.publisher.ledger.wanted
        await until(lambda: all(wanted(log_ref(name)) for name in names))
        await until(lambda: not any(wanted(log_ref(name)) for name in gone))


@asynccontextmanager
async def watcher(log: ObservedLog, *, is_leader: bool = False) -> AsyncIterator[Watcher]:
    seat, asked = Seat(is_leader=is_leader), list[ResourceKind]()

    def relist(kind: ResourceKind) -> bool:
        asked.append(kind)
        return True

    async with publishing(log, leadership=seat, relist=relist) as one:
        yield Watcher(one, seat, asked)


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[ObservedLog, Watcher, Watcher]]:
    log = ObservedLog()
    async with AsyncExitStack() as stack:
        yield (
            log,
            await stack.enter_async_context(watcher(log, is_leader=True)),
            await stack.enter_async_context(watcher(log)),
        )


async def contents(log: ObservedLog) -> dict[str, str]:
    """Name to version of what is there, as far as the log says."""
    state = await log.read_state("a")
    return {ref.name: one.resource_version for ref, one in state.items() if not one.is_deleted}


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)


async def test_one_that_follows_is_ready_once_it_has_listed_and_says_nothing() -> None:
    log = ObservedLog()
    async with watcher(log) as one:
        assert "not listed yet" in (one.publishing.publisher.readiness() or "")
        one.sees(service("x", "1"))
        await until(lambda: one.publishing.publisher.readiness() is None)
        one.publishing.source.apply(service("z", "2"))
        await one.until_taken_in("x", "z")
        await settle()
        assert (log.shown(), log.said, log.reads) == ([], [], 0)


async def test_a_takeover_publishes_the_difference_only() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees(service("same", "1"), service("old", "1"))
        await until(lambda: len(log.appended) == 2)
        await other.until_taken_in("same", "old")
        one.seat.lose()
        other.publishing.source.apply(service("old", "5", port=81))
        other.publishing.source.apply(service("new", "6"))
        await other.until_taken_in("same", "old", "new")
        other.seat.take()
        await until(lambda: len(log.appended) == 4)
        await settle()
        assert sorted(log.shown()[2:]) == ["apply new 6", "apply old 5"]
        assert other.asked == []
        announcements = [said.instance for said in log.said if isinstance(said, ClusterAnnouncement)]
        assert len(announcements) == 2


async def test_a_takeover_deletes_at_once_what_it_saw_deleted() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees(service("x", "1"))
        await until(lambda: len(log.appended) == 1)
        await other.until_taken_in("x")
        one.seat.lose()
        other.publishing.source.delete(service("x", "7"))
        await other.until_taken_in(gone=["x"])
        other.seat.take()
        await until(lambda: log.shown()[1:] == ["delete x 7"])
        assert other.asked == []


async def test_one_whose_watch_is_behind_does_not_go_back_to_an_older_state() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees(service("x", "1"))
        await other.until_taken_in("x")
        one.publishing.source.apply(service("x", "9", port=81))
        await until(lambda: log.shown() == ["apply x 1", "apply x 9"])
        one.seat.lose()
        other.seat.take()
        await until(lambda: other.asked == [SERVICE])
        await settle()
        assert await contents(log) == {"x": "9"}
        other.publishing.source.apply(service("x", "9", port=81))
        other.publishing.source.apply(service("x", "12", port=82))
        await until(lambda: log.shown()[2:] == ["apply x 12"])


async def test_one_whose_watch_is_behind_does_not_delete_what_is_new() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees()
        await until(lambda: other.publishing.publisher.is_listed)
        one.publishing.source.apply(service("new", "9"))
        await until(lambda: len(log.appended) == 1)
        one.seat.lose()
        other.seat.take()
        await until(lambda: other.asked == [SERVICE])
        await settle()
        assert await contents(log) == {"new": "9"}
        other.sees(service("new", "9"))
        await settle()
        assert await contents(log) == {"new": "9"}
        assert len(log.appended) == 1


async def test_one_whose_watch_is_behind_does_not_bring_back_what_is_deleted() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees(service("x", "1"))
        await other.until_taken_in("x")
        one.publishing.source.delete(service("x", "9"))
        await until(lambda: log.shown() == ["apply x 1", "delete x 9"])
        one.seat.lose()
        other.seat.take()
        await until(lambda: other.asked == [SERVICE])
        await settle()
        assert await contents(log) == {}


async def test_one_whose_watch_is_behind_does_not_bring_back_what_came_and_went_unseen() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees()
        one.publishing.source.apply(service("x", "3"))
        await until(lambda: len(log.appended) == 1)
        one.publishing.source.delete(service("x", "4"))
        await until(lambda: log.shown() == ["apply x 3", "delete x 4"])
        one.seat.lose()
        other.seat.take()
        await until(lambda: other.publishing.publisher.readiness() is None)
        other.publishing.source.apply(service("x", "3"))
        await until(lambda: other.asked == [SERVICE])
        await settle()
        assert await contents(log) == {}
        other.publishing.source.delete(service("x", "4"))
        other.sees()
        await settle()
        assert log.shown() == ["apply x 3", "delete x 4"]


async def test_events_that_are_older_than_the_log_wait_for_the_list_that_was_asked_for() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees(service("x", "1"))
        await until(lambda: len(log.appended) == 1)
        one.publishing.source.apply(service("x", "6", port=81))
        await until(lambda: len(log.appended) == 2)
        one.seat.lose()
        other.seat.take()
        await until(lambda: other.asked == [SERVICE])
        other.publishing.source.apply(service("x", "4", port=82))
        other.publishing.source.apply(service("new", "5"))
        await until(lambda: len(log.appended) == 3)
        await settle()
        assert (log.shown()[1:], other.asked) == (["apply x 6", "apply new 5"], [SERVICE])
        other.sees(service("x", "7", port=83), service("new", "5"))
        await until(lambda: log.shown()[3:] == ["apply x 7"])


async def test_one_whose_watch_is_behind_does_not_publish_what_was_undone_unseen() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees(service("x", "1"))
        await until(lambda: len(log.appended) == 1)
        one.publishing.source.apply(service("x", "3", port=81))
        await until(lambda: len(log.appended) == 2)
        one.publishing.source.apply(service("x", "4"))
        await until(lambda: len(log.appended) == 3)
        one.seat.lose()
        other.seat.take()
        await until(lambda: other.publishing.publisher.readiness() is None)
        other.publishing.source.apply(service("x", "3", port=81))
        await until(lambda: other.asked == [SERVICE])
        await settle()
        assert log.shown() == ["apply x 1", "apply x 3", "apply x 4"]


async def test_a_list_decides_what_was_in_doubt_even_if_versions_went_back() -> None:
    """As after an API server was restored from a backup while nobody watched."""
    async with pair() as (log, one, other):
        one.sees(service("x", "100"), service("gone", "101"))
        await until(lambda: len(log.appended) == 2)
        one.seat.lose()
        other.sees(service("x", "50", port=81))
        await other.until_taken_in("x")
        other.seat.take()
        await until(lambda: other.asked == [SERVICE])
        assert await contents(log) == {"x": "100", "gone": "101"}
        other.sees(service("x", "50", port=81))
        await until(lambda: len(log.appended) == 4)
        assert await contents(log) == {"x": "50"}


def marks(log: ObservedLog, resource: str) -> int:
    """How often a kind was said to be complete."""
    return sum(isinstance(one, SyncMarker) and one.kind.resource == resource for one in log.said)


async def test_a_kind_in_doubt_is_not_said_to_be_complete_before_it_is_listed_anew() -> None:
    """As when the log comes back as an older copy, with what was deleted since."""
    log = ObservedLog()
    async with watcher(log, is_leader=True) as one:
        one.sees(service("x", "1"))
        await until(lambda: one.publishing.publisher.readiness() is None)
        await log.append(log.appended[0].model_copy(update={"ref": log.appended[0].ref._replace(name="old")}))
        log.said.clear()
        one.publishing.publisher.compare_with_log()
        await until(lambda: one.asked == [SERVICE] and marks(log, "ingresses") == 1)
        await settle()
        assert marks(log, "services") == 0
        assert await contents(log) == {"x": "1", "old": "1"}
        one.sees(service("x", "1"))
        await until(lambda: marks(log, "services") == 1)
        assert await contents(log) == {"x": "1"}
        assert isinstance(log.said[-1], SyncMarker)


async def test_a_kind_that_is_not_read_any_more_is_in_no_doubt() -> None:
    log = ObservedLog()
    async with watcher(log, is_leader=True) as one:
        one.sees(service("x", "1"))
        await until(lambda: len(log.appended) == 1)
    seat = Seat()
    async with publishing(log, leadership=seat, relist=lambda _: False) as again:
        again.source.list()
        await until(lambda: again.publisher.is_listed)
        seat.take()
        await until(lambda: log.shown()[1:] == ["delete x 1"])


async def test_one_that_stood_still_publishes_nothing_when_it_goes_on() -> None:
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees(service("x", "1"))
        await until(lambda: len(log.appended) == 1)
        one.seat.expire()
        one.publishing.source.apply(service("x", "5", port=81))
        await settle()
        assert log.shown() == ["apply x 1"]
        one.seat.lose()
        one.seat.take()
        await until(lambda: log.shown()[1:] == ["apply x 5"])


async def test_one_that_follows_does_not_remember_deletions_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "KEEP_DELETIONS", timedelta(0))
    monkeypatch.setattr(publisher_module, "FOLLOW_S", 0.01)
    log = ObservedLog()
    async with watcher(log) as one:
        one.sees()
        for number in range(100):
            one.publishing.source.apply(service(f"s{number}", "1"))
            one.publishing.source.delete(service(f"s{number}", "2"))
        one.publishing.source.apply(service("last", "3"))
        await one.until_taken_in("last")
        ledger = one.publishing.publisher.ledger
        await until(lambda: (ledger.remembered_deletions, ledger.pending) == (0, 1))


async def test_one_that_follows_counts_what_it_saw_until_the_other_published_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publisher_module, "FOLLOW_S", 0.01)
    async with pair() as (log, one, other):
        for each in (one, other):
            each.sees(service("x", "1"))
        await until(lambda: len(log.appended) == 1)
        await until(lambda: other.publishing.publisher.unpublished_since is None)
        other.publishing.source.apply(service("x", "2", port=81))
        await until(lambda: other.publishing.publisher.ledger.pending == 1)
        await settle()
        assert other.publishing.publisher.unpublished_since is not None
        one.publishing.source.apply(service("x", "2", port=81))
        await until(lambda: other.publishing.publisher.ledger.pending == 0)


async def test_changes_are_counted_from_when_they_are_seen_and_while_the_log_is_away() -> None:
    log = ObservedLog()
    log.is_away = True
    async with watcher(log, is_leader=True) as one:
        one.sees(service("x", "1"), service("z", "1"))
        await one.until_taken_in("x", "z")
        publisher = one.publishing.publisher
        since = publisher.unpublished_since
        one.publishing.source.apply(service("x", "2", port=81))  # newer, and waiting since the first change
        await until(lambda: publisher.ledger.wanted(log_ref("x")).version == "2")
        assert (publisher.ledger.pending, publisher.unpublished_since) == (2, since)
        log.is_away = False
        await until(lambda: publisher.unpublished_since is None)
