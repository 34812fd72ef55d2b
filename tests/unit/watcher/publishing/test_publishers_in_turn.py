"""Two watchers of one cluster that see its events at different times, and publish by turns, at once, or not at all."""

import asyncio
from typing import Any, NamedTuple, Self

from hypothesis import given
from hypothesis import strategies as st

from fakes.translator.leadership import Seat
from fakes.translator.publishing import ObservedLog, publishing, service
from fakes.waiting import until
from headgate.common.deltas import Delta, Operation
from headgate.common.resources import SERVICE, ResourceKind


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
