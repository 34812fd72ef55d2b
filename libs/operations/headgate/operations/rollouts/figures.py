"""The figures of a rollout, from what gateways say in their heartbeats; pure.

Each worker sums up its own requests since it took the step, so every reader of the heartbeats has the figures, without
having watched.
"""

from collections.abc import Iterable
from typing import NamedTuple

from headgate.common.heartbeats import Heartbeat, TrafficCounts
from headgate.common.snapshot import Rollout
from headgate.operations.rollouts.analysis import RolloutVerdict, Thresholds, describe_errors, judge, total

NAMED = 3


class Side(NamedTuple):
    """Replicas that serve the same table."""

    replicas: tuple[str, ...]
    changed: TrafficCounts
    """Requests to what the rollout changes."""
    all: TrafficCounts


class Comparison(NamedTuple):
    """Those that serve the next table, and the others."""

    chosen: Side
    others: Side


def compare(rollout: Rollout, beats: Iterable[Heartbeat]) -> Comparison:
    """Add up what the workers of both sides say of the present step."""
    reports = [
        (beat.replica, beat.rollout)
        for beat in beats
        if beat.rollout is not None and beat.rollout.step == rollout.begun
    ]

    def side(is_next: bool) -> Side:
        found = [(name, report) for name, report in reports if report.is_next is is_next]
        return Side(
            tuple(sorted({name for name, _ in found})),
            total(report.changed for _, report in found),
            total(report.all for _, report in found),
        )

    return Comparison(side(is_next=True), side(is_next=False))


def judge_rollout(rollout: Rollout, found: Comparison, thresholds: Thresholds) -> RolloutVerdict:
    """Say whether the next table does harm: to requests for what it changes, or to all."""
    changed = judge(found.chosen.changed, found.others.changed, thresholds)
    everything = judge(found.chosen.all, found.others.all, thresholds)
    for verdict, what in ((changed, what_changes(rollout)), (everything, "all requests")):
        if verdict.worse:
            count = len(found.others.replicas)
            whom = f"{name_some(found.chosen.replicas)} against {count} {'other' if count == 1 else 'others'}"
            return RolloutVerdict(True, f"{verdict.worse} ({what}; {whom})")
    return changed if _names_what_changes(rollout) else everything


def describe(rollout: Rollout, found: Comparison, verdict: RolloutVerdict) -> str:
    """Say in a few words how the chosen replicas did."""
    is_of_all = not _names_what_changes(rollout)
    mine, theirs = [side.all if is_of_all else side.changed for side in found]
    if not verdict.is_judged:
        return f"too few requests to judge by, {mine.requests:,} and {theirs.requests:,}"
    return f"errors {describe_errors(mine)} requests, against {describe_errors(theirs)}"


def what_changes(rollout: Rollout) -> str:
    """Say what a rollout changes: `a.example, b.example`, or how many hosts."""
    hosts = rollout.changed.get("hosts")
    if hosts is None:
        return "what it changes"
    return ", ".join(hosts.names) if hosts.count <= NAMED else f"the {hosts.count} changed hosts"


def name_some(names: Iterable[str]) -> str:
    """Name replicas, the first few of many."""
    every = list(names)
    return ", ".join(every[:NAMED]) + (f" and {len(every) - NAMED} more" if len(every) > NAMED else "")


def _names_what_changes(rollout: Rollout) -> bool:
    return not {"hosts", "upstreams"}.isdisjoint(rollout.changed)
