"""What an object's author is told: the object's own mistakes, what it lost to others, and what is wrong behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.status import EventNote, LoadBalancerAddress, StatusUpdate
from headgate.translator.assembly import Assembly
from headgate.translator.fragment import Fragment, Identity, ServicePortRef, UpstreamRef
from headgate.translator.manifest import shown
from headgate.translator.upstreams import BackendFault

NOTE_CHARACTERS = 1024
MAX_EVENTS = 10
"""Of one update: more would only drown the first."""


_LOST = ("PathConflict", "HostTooLarge", "CanaryWithoutMain", "StreamConflict")


@dataclass(frozen=True, slots=True)
class Condition:
    """How one object stands."""

    is_accepted: bool
    """Whether at least one of its routes is in the table, or there is none and no mistake either."""
    problems: tuple[Problem, ...]


def judge(fragment: Fragment, assembly: Assembly) -> Condition:
    """Return how an object stands, from its fragment and from what became of it."""
    lost = tuple(assembly.lost_by(fragment))
    faults = (say_fault(field, ref, fault) for field, ref, fault in assembly.faults_of(fragment))
    claimed = len(fragment.routes) + len(fragment.canaries) + len(fragment.streams)
    claims_lost = sum(problem.reason in _LOST for problem in lost)
    problems = (*fragment.problems, *lost, *faults)
    has_errors = any(problem.severity is Severity.ERROR for problem in problems)
    return Condition(claimed > claims_lost or not has_errors, tuple(dict.fromkeys(problems)))


def say_fault(field: str, ref: UpstreamRef, fault: BackendFault) -> Problem:
    """Return what is wrong with a backend, as the author of the object that refers to it is told."""
    value = _value(field, ref)
    return Problem(severity=fault.severity, reason=fault.reason, field=field, value=value, message=fault.message)


def _value(field: str, ref: UpstreamRef) -> str:
    if isinstance(ref, ServicePortRef):
        return shown(ref.service if field.endswith(("name", "Name")) and ".port" not in field else str(ref.port))
    return shown(f"{ref.kind}/{ref.name}")


class Wanted(NamedTuple):
    """What should stand in an object's status."""

    ref: ObjectRef
    api_version: str
    kind: str
    uid: str
    is_accepted: bool
    addresses: tuple[LoadBalancerAddress, ...] | None
    problems: tuple[Problem, ...]


def wanted_by(update: StatusUpdate) -> Wanted:
    """Return what an update wants, without its Events and times."""
    return Wanted(
        update.ref,
        update.api_version,
        update.kind,
        update.uid,
        update.is_accepted,
        update.addresses,
        update.problems,
    )


def report(
    identity: Identity,
    condition: Condition,
    addresses: tuple[LoadBalancerAddress, ...] | None,
    before: Wanted | None,
) -> Wanted:
    """Return what is wanted for an object that is ours.

    Addresses are for accepted objects; None, not known now, keeps what was wanted before.
    """
    if addresses is None and before is not None:
        addresses = before.addresses or None
    return Wanted(
        identity.ref,
        identity.api_version,
        identity.kind,
        identity.uid,
        condition.is_accepted,
        addresses if condition.is_accepted else (),
        condition.problems,
    )


def disown(before: Wanted) -> Wanted:
    """Return what is wanted for an object that is no longer ours: what we wrote is taken back."""
    return before._replace(is_accepted=False, addresses=(), problems=())


def forget(before: Wanted) -> Wanted:
    """Return what is said of an object that is gone: nothing is wrong with it any more, and nothing is written."""
    return before._replace(is_accepted=False, addresses=None, problems=())


def to_update(wanted: Wanted, before: Wanted | None, at: datetime, traceparent: str | None) -> StatusUpdate:
    """Return the message for watchers; its Events say what is new since `before`."""
    known = before if before and before.uid == wanted.uid else None
    return StatusUpdate(**wanted._asdict(), events=tuple(_events(wanted, known)), at=at, traceparent=traceparent)


def _events(wanted: Wanted, before: Wanted | None) -> Sequence[EventNote]:
    known = set(before.problems) if before else set()
    events = [
        EventNote(type="Warning", reason=problem.reason, note=str(problem)[:NOTE_CHARACTERS])
        for problem in wanted.problems
        if problem not in known
    ][:MAX_EVENTS]
    if wanted.is_accepted and not (before and before.is_accepted):
        errors = sum(problem.severity is Severity.ERROR for problem in wanted.problems)
        note = f"Served in part: {errors} of its fields have errors" if errors else "Served"
        events.insert(0, EventNote(type="Normal", reason="Accepted", note=note))
    return events
