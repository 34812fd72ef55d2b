"""What an object's author is told: the object's own mistakes, what it lost to others, and what is wrong behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate.common.problems import Problem, Severity
from headgate.common.status import EventNote, LoadBalancerAddress, StatusUpdate
from headgate.translator.assembly import Assembly
from headgate.translator.fragment import Fragment, Identity, ServicePortRef, UpstreamRef
from headgate.translator.manifest import shown

NOTE_CHARACTERS = 1024
MAX_EVENTS = 10
"""Of one update: more would only drown the first."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How one object stands."""

    is_accepted: bool
    """Whether at least one of its routes is in the table."""
    problems: tuple[Problem, ...]


def judge(fragment: Fragment, assembly: Assembly) -> Condition:
    """Return how an object stands, from its fragment and from what became of it."""
    lost = tuple(assembly.lost_by(fragment))
    faults = (
        Problem(
            severity=fault.severity, reason=fault.reason, field=field, value=_value(field, ref), message=fault.message
        )
        for field, ref, fault in assembly.faults_of(fragment)
    )
    paths_lost = sum(problem.reason == "PathConflict" for problem in lost)
    problems = (*fragment.problems, *lost, *faults)
    return Condition(len(fragment.routes) > paths_lost, tuple(dict.fromkeys(problems)))


def _value(field: str, ref: UpstreamRef) -> str:
    if isinstance(ref, ServicePortRef):
        return shown(ref.service if field.endswith(("name", "Name")) and ".port" not in field else str(ref.port))
    return shown(f"{ref.kind}/{ref.name}")


def is_same(one: StatusUpdate, other: StatusUpdate) -> bool:
    """Whether two updates want the same written; Events and times do not count."""
    return _wanted(one) == _wanted(other)


def _wanted(update: StatusUpdate) -> tuple[object, ...]:
    return update.uid, update.api_version, update.is_accepted, update.addresses, update.problems


def accept_or_refuse(
    identity: Identity,
    condition: Condition,
    addresses: Sequence[LoadBalancerAddress] | None,
    before: StatusUpdate | None,
    at: datetime,
    traceparent: str | None,
) -> StatusUpdate:
    """Return the status wanted for an object that is ours; Events say what is new since `before`.

    Addresses are written to accepted objects only; None leaves what is there.
    """
    wanted = None if addresses is None else tuple(addresses)
    return StatusUpdate(
        ref=identity.ref,
        api_version=identity.api_version,
        kind=identity.kind,
        uid=identity.uid,
        is_accepted=condition.is_accepted,
        addresses=wanted if condition.is_accepted else (),
        problems=condition.problems,
        events=tuple(_events(condition, before if before and before.uid == identity.uid else None)),
        at=at,
        traceparent=traceparent,
    )


def disown(before: StatusUpdate, at: datetime, traceparent: str | None) -> StatusUpdate:
    """Return the status wanted for an object that is no longer ours: what we wrote is taken back."""
    return StatusUpdate(
        ref=before.ref,
        api_version=before.api_version,
        kind=before.kind,
        uid=before.uid,
        is_accepted=False,
        addresses=(),
        at=at,
        traceparent=traceparent,
    )


def _events(condition: Condition, before: StatusUpdate | None) -> Sequence[EventNote]:
    known = set(before.problems) if before else set()
    events = [
        EventNote(type="Warning", reason=problem.reason, note=str(problem)[:NOTE_CHARACTERS])
        for problem in condition.problems
        if problem not in known
    ]
    errors = sum(problem.severity is Severity.ERROR for problem in condition.problems)
    if condition.is_accepted and not (before and before.is_accepted):
        note = f"Served, except for {errors} errors" if errors else "Served"
        return [EventNote(type="Normal", reason="Accepted", note=note), *events[:MAX_EVENTS]]
    return events[:MAX_EVENTS]
