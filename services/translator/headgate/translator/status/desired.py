"""What should stand in an object's status, and what has to be said when that changes.

A status is told when there is something to tell. What is wrong is told at once; that a version is served, when the
gateways serve it, so that an object that is all right is written to once for each of its versions.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headgate.common.deltas import trusted
from headgate.common.problems import Problem, Severity, worst
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Version
from headgate.common.status import (
    NOTE_BYTES,
    ConditionType,
    EventNote,
    ListenerReport,
    LoadBalancerAddress,
    ServedVersion,
    StatusCondition,
    StatusUpdate,
    shorten,
)
from headgate.common.table import DEFAULT_TABLE
from headgate.translator.serving.fleet import Fleet
from headgate.translator.status.conditions import (
    HELD_BACK,
    TEXT_BYTES,
    DesiredCondition,
    Facts,
    accepted,
    as_said,
    of_parts,
    programmed,
    resolved,
)
from headgate.translator.world.last_good import VersionId

MAX_EVENTS = 10
"""New ones of one update: more would only drown the first."""
MAX_PROBLEMS = 50
EVENTS_KEPT = 20
EVENTS_AGE = timedelta(hours=1)
"""API servers keep Events for an hour."""
MAX_WITHDRAWN = 16
_UPDATE_FIELDS = tuple(StatusUpdate.model_fields)


class DesiredStatus(NamedTuple):
    """What should stand in an object's status."""

    ref: ObjectRef
    api_version: str
    kind: str
    uid: str
    generation: int
    is_accepted: bool
    addresses: tuple[LoadBalancerAddress, ...] | None
    withdrawn: tuple[LoadBalancerAddress, ...]
    conditions: tuple[DesiredCondition, ...]
    stand_in: ServedVersion | None
    content: str
    revision: Version | None
    problems: tuple[Problem, ...]
    listeners: tuple[ListenerReport, ...] = ()
    features: tuple[str, ...] = ()
    attached_listener_sets: int = 0

    @property
    def is_programmed(self) -> bool:
        """Whether all live replicas serve it."""
        return any(
            said.type is ConditionType.PROGRAMMED and said.status == "True" and said.part is None
            for said in self.conditions
        )


def wanted_by(update: StatusUpdate) -> DesiredStatus:
    """Return what an update wants, without its Events and times."""
    values = {name: getattr(update, name) for name in DesiredStatus._fields}
    values["conditions"] = tuple(
        DesiredCondition(one.type, one.status, one.reason, one.message, one.part) for one in update.conditions
    )
    return DesiredStatus(**values)


def report(
    facts: Facts, addresses: tuple[LoadBalancerAddress, ...] | None, fleet: Fleet, before: DesiredStatus | None
) -> DesiredStatus:
    """Return what is desired for an object that is ours.

    Addresses, those of the gateways unless the object has its own, are for accepted objects; None, not known now, keeps
    what was desired before.
    """
    identity, condition = facts.identity, facts.condition
    if facts.addresses is not None:
        addresses = facts.addresses
    if before is not None and before.uid != identity.uid:
        before = None
    if addresses is None and before is not None:
        addresses = before.addresses or None
    if not condition.is_accepted:
        addresses = ()
    if facts.leaves_addresses:
        addresses = None
    revision = _revision(facts, before)
    is_known = before is not None and before.revision == revision and before.is_programmed
    served = programmed(facts, revision, fleet, _programmed_of(before) if before is not None and is_known else None)
    return DesiredStatus(
        ref=identity.ref,
        api_version=identity.api_version,
        kind=identity.kind,
        uid=identity.uid,
        generation=identity.generation,
        is_accepted=condition.is_accepted,
        addresses=addresses,
        withdrawn=_withdrawn(addresses, before),
        conditions=(
            *as_said(facts, (accepted(facts), resolved(condition.unresolved), served)),
            *of_parts(facts, served, fleet),
        ),
        listeners=facts.listeners,
        features=facts.features,
        attached_listener_sets=facts.attached_listener_sets,
        stand_in=_stand_in(facts.stand_in),
        content=facts.content if condition.is_accepted else "",
        revision=revision,
        problems=limit(condition.problems),
    )


def _revision(facts: Facts, before: DesiredStatus | None) -> Version | None:
    if not facts.condition.is_accepted:
        return None
    is_as_before = before is not None and before.is_accepted and before.content == facts.content
    return before.revision if before and is_as_before and before.revision else facts.version


def _withdrawn(
    addresses: tuple[LoadBalancerAddress, ...] | None, before: DesiredStatus | None
) -> tuple[LoadBalancerAddress, ...]:
    if before is None:
        return ()
    once = dict.fromkeys((*(before.addresses or ()), *before.withdrawn))
    return tuple(address for address in once if address not in (addresses or ()))[:MAX_WITHDRAWN]


def _stand_in(version: VersionId | None) -> ServedVersion | None:
    return version and ServedVersion(resource_version=version.resource_version, generation=version.generation)


def limit(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return problems as a status holds them: neither too many nor too long for the bus, whatever a user wrote."""
    shown = tuple(_shortened(problem) for problem in problems[:MAX_PROBLEMS])
    rest = problems[MAX_PROBLEMS:]
    if not rest:
        return shown
    return (*shown, Problem(severity=worst(rest), reason="MoreProblems", message=f"and {len(rest)} more problems"))


def _shortened(problem: Problem) -> Problem:
    if len(problem.message) + len(problem.field) < TEXT_BYTES // 4:
        return problem
    texts = {"message": shorten(problem.message, TEXT_BYTES), "field": shorten(problem.field, TEXT_BYTES)}
    return problem.model_copy(update=texts)


def _programmed_of(desired: DesiredStatus) -> DesiredCondition:
    return next(said for said in desired.conditions if said.type is ConditionType.PROGRAMMED and said.part is None)


# What is told


def disown(before: DesiredStatus) -> DesiredStatus:
    """Return what is desired for an object that is no longer ours: what we wrote is taken back."""
    return _emptied(before)._replace(addresses=(), withdrawn=_withdrawn((), before))


def forget(before: DesiredStatus) -> DesiredStatus:
    """Return what is said of an object that is gone: nothing is wrong with it any more, and nothing is written."""
    return _emptied(before)._replace(addresses=None)


def _emptied(before: DesiredStatus) -> DesiredStatus:
    return before._replace(
        is_accepted=False,
        conditions=(),
        listeners=(),
        features=(),
        attached_listener_sets=0,
        stand_in=None,
        content="",
        revision=None,
        problems=(),
        generation=0,
    )


def has_news(desired: DesiredStatus, before: DesiredStatus | None) -> bool:
    """Whether something is wrong that was not told yet."""
    known = set(before.problems) if before and before.uid == desired.uid else set()
    return any(problem not in known for problem in _wrong(desired))


def _wrong(desired: DesiredStatus) -> list[Problem]:
    return [problem for problem in desired.problems if problem.severity is not Severity.INFO]


def to_update(
    desired: DesiredStatus,
    before: StatusUpdate | None,
    at: datetime,
    traceparent: str | None,
    table: str = DEFAULT_TABLE,
) -> StatusUpdate:
    """Return the message for watchers; its Events say what is new since `before`."""
    known = before if before and before.uid == desired.uid else None
    notes = _new_notes(desired, wanted_by(known) if known else None, at)
    kept = [note for note in known.events if at - note.at < EVENTS_AGE] if known else []
    values: dict[str, Any] = desired._asdict() | {
        "table": table,
        "conditions": tuple(_conditions(desired, known, at)),
        "events": tuple([*kept, *notes][-EVENTS_KEPT:]),
        "last_error": _last_error(desired, known, at),
        "at": at,
        "traceparent": traceparent,
    }
    return trusted(StatusUpdate, {name: values[name] for name in _UPDATE_FIELDS})


def _conditions(desired: DesiredStatus, before: StatusUpdate | None, at: datetime) -> Iterable[StatusCondition]:
    known = {(one.part, one.type): one for one in before.conditions} if before else {}
    for said in desired.conditions:
        last = known.get((said.part, said.type))
        since = last.since if last and last.status == said.status else at
        yield StatusCondition.of(
            said.part, type=said.type, status=said.status, reason=said.reason, message=said.message, since=since
        )


def _new_notes(desired: DesiredStatus, before: DesiredStatus | None, at: datetime) -> list[EventNote]:
    known = set(before.problems) if before else set()
    new = [problem for problem in _wrong(desired) if problem not in known][:MAX_EVENTS]
    notes = [_note("Warning", problem.reason, str(problem), at) for problem in new]
    if not desired.is_accepted:
        return notes
    if not (before and before.is_accepted):
        return [_note("Normal", "Accepted", _served(desired), at), *notes]
    if desired.is_programmed and before.revision != desired.revision:
        return [_note("Normal", "Programmed", _served(desired), at), *notes]
    said = _programmed_of(desired)
    if said.reason == HELD_BACK and said != _programmed_of(before):
        return [_note("Warning", HELD_BACK, said.message, at), *notes]
    return notes


def _served(desired: DesiredStatus) -> str:
    errors = sum(problem.severity is Severity.ERROR for problem in desired.problems)
    how = f"Served in part: {errors} of its fields have errors" if errors else "Served"
    if desired.stand_in is not None:
        how = "Served as it was last good"
    programmed = _programmed_of(desired)
    return f"{how}; {programmed.message}" if programmed.status == "True" else how


def _note(kind: str, reason: str, text: str, at: datetime) -> EventNote:
    return trusted(EventNote, {"type": kind, "reason": reason, "note": shorten(text, NOTE_BYTES), "at": at})


def _last_error(desired: DesiredStatus, before: StatusUpdate | None, at: datetime) -> EventNote | None:
    known = set(before.problems) if before else set()
    errors = [problem for problem in desired.problems if problem.severity is Severity.ERROR and problem not in known]
    if errors:
        return _note("Warning", errors[0].reason, str(errors[0]), at)
    return before.last_error if before else None
