"""Two watchers of one cluster on one log in memory: one publishes, the other is ready to."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.translator.leadership import Seat
from fakes.translator.publishing import ObservedLog, Publishing, publishing, service
from fakes.waiting import until
from headgate.common.deltas import ClusterAnnouncement, Delta, Operation, SyncMarker
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


class Cluster:
    """What is true, and how it became so; versions count on over all objects."""

    def __init__(self) -> None:
        self.present: dict[str, Any] = {}
        self.events: list[tuple[str, Any]] = []

    def change(self, name: str, *, is_deletion: bool) -> None:
        version = str(len(self.events) + 1)
        if is_deletion and name in self.present:
            gone = self.present.pop(name)
            last = {**gone, "metadata": {**gone["metadata"], "resourceVersion": version}}
            self.events.append(("delete", last))
        else:
            self.present[name] = service(name, version, port=int(version))
            self.events.append(("apply", self.present[name]))

    def deletion_of(self, name: str) -> int:
        """Return the version of an object's last deletion; 0 if it never was deleted."""
        deletions = (last["metadata"] for what, last in self.events if what == "delete")
        return max((int(one["resourceVersion"]) for one in deletions if one["name"] == name), default=0)


class Seer:
    """One of two watchers, whose watch brings the events when a test wants it to."""

    def __init__(self, log: ObservedLog, cluster: Cluster) -> None:
        self.seat = Seat()
        self._cluster = cluster
        self._seen = 0
        self._publishing = publishing(log, leadership=self.seat, relist=self._relist)

    async def __aenter__(self) -> Self:
        self.one = await self._publishing.__aenter__()
        self._relist(SERVICE)
        return self

    async def __aexit__(self, *reason: Any) -> None:
        await self._publishing.__aexit__(*reason)

    def _relist(self, kind: ResourceKind) -> bool:
        self._seen = len(self._cluster.events)
        self.one.source.list(*self._cluster.present.values())
        return True

    def see(self, count: int) -> None:
        for what, manifest in self._cluster.events[self._seen : self._seen + count]:
            self.one.source.apply(manifest) if what == "apply" else self.one.source.delete(manifest)
        self._seen = min(self._seen + count, len(self._cluster.events))


class Step(NamedTuple):
    """What happens between two moments of rest."""

    name: str
    is_deletion: bool
    seen: tuple[int, int]
    """How many events come to each of the two."""
    turn: str
    """Who leads from now on; `expire` and `both` are those that a lease alone does not rule out."""


_steps = st.lists(
    st.builds(
        Step,
        st.sampled_from("xy"),
        st.sampled_from([False, False, True]),
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
        st.sampled_from(["stay", "stay", "one", "other", "both", "none", "expire"]),
    ),
    max_size=25,
)


@given(_steps)
def test_whoever_publishes_and_whenever_the_log_ends_as_the_cluster_and_never_goes_back(steps: list[Step]) -> None:
    asyncio.run(_publish_by_turns(steps))


async def _publish_by_turns(steps: list[Step]) -> None:
    log, cluster = ObservedLog(), Cluster()
    async with Seer(log, cluster) as one, Seer(log, cluster) as other:
        for step in steps:
            cluster.change(step.name, is_deletion=step.is_deletion)
            for each, count in zip((one, other), step.seen, strict=True):
                each.see(count)
            _turn(step.turn, one.seat, other.seat)
            await asyncio.sleep(0.001)
        for each in (one, other):
            each.see(len(cluster.events))
            each.seat.lose()
        await asyncio.sleep(0.001)
        other.seat.take()
        expected = {name: manifest["spec"]["ports"][0]["port"] for name, manifest in cluster.present.items()}
        await until(lambda: _ports(log) == expected, within_s=5)
    _check_history(log.appended, cluster)


def _turn(turn: str, one: Seat, other: Seat) -> None:
    match turn:
        case "expire":
            one.expire()
            other.expire()
        case "one" | "other" | "both" | "none":
            for seat, wanted in ((one, ("one", "both")), (other, ("other", "both"))):
                if turn in wanted and not seat.is_leader:
                    seat.lose()
                    seat.take()
                elif turn not in wanted:
                    seat.lose()


def _check_history(appended: list[Delta], cluster: Cluster) -> None:
    said: dict[str, int] = {}
    for delta in appended:
        name, version, before = delta.ref.name, int(delta.resource_version), said.get(delta.ref.name, 0)
        assert version >= before, f"{name} went back from {before} to {version}"
        if delta.operation is Operation.DELETE:
            assert cluster.deletion_of(name) >= before, f"{name} was deleted although it was there"
        said[name] = version


def _ports(log: ObservedLog) -> dict[str, int]:
    """Name to port of what is there, as far as the log says."""
    deltas = [message for _, message, _ in log.messages.values() if isinstance(message, Delta) and message.object]
    return {delta.ref.name: delta.object["spec"]["ports"][0]["port"] for delta in deltas if delta.object}


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
        await until(lambda: (len(ledger._gone), ledger.pending) == (0, 1))


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
