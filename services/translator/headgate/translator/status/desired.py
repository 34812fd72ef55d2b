"""What should stand in an object's status, and what has to be said when that changes.

A status is told when there is something to tell. What is wrong is told at once; that a version is served, when the
gateways serve it, so that an object that is all right is written to once for each of its versions.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headgate.common.problems import Problem, Severity, worst
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Rollout, RolloutPhase, Version
from headgate.common.status import (
    CONDITION_CHARACTERS,
    NOTE_BYTES,
    AncestorRef,
    ConditionType,
    EventNote,
    LoadBalancerAddress,
    ServedVersion,
    StatusCondition,
    StatusUpdate,
    shorten,
)
from headgate.common.table import DEFAULT_TABLE
from headgate.translator.assembly.conditions import Condition
from headgate.translator.assembly.namesakes import SERVED_BY_NAMESAKE
from headgate.translator.fragments.fragment import TARGETS_NOT_SERVED, Ancestor, Identity
from headgate.translator.serving.fleet import Fleet
from headgate.translator.world.last_good import VersionId

MAX_EVENTS = 10
"""New ones of one update: more would only drown the first."""
MAX_PROBLEMS = 50
TEXT_BYTES = 1000
"""Of one problem's message: what users write is repeated in some."""
EVENTS_KEPT = 20
EVENTS_AGE = timedelta(hours=1)
"""API servers keep Events for an hour."""
MAX_WITHDRAWN = 16
_NAMED = 3
HELD_BACK = "HeldBack"
"""Reason of an object that waits because the fleet went back from a table with it."""


class DesiredCondition(NamedTuple):
    """A condition without the time since when it holds."""

    type: ConditionType
    status: str
    reason: str
    message: str
    ancestor: AncestorRef | None = None
    """With respect to which object; None: as a whole."""


class Facts(NamedTuple):
    """What is known of an object that is ours, as of one revision of the table."""

    identity: Identity
    condition: Condition
    stand_in: VersionId | None
    content: str
    """Digest of what is served of it."""
    version: Version | None
    """Of the table."""
    pinned: Version | None
    """Old revision that the table is pinned to."""
    rollout: Rollout | None = None
    """Of the table."""
    ancestors: tuple[Ancestor, ...] = ()
    """Of a policy."""
    addresses: tuple[LoadBalancerAddress, ...] | None = None
    """Its own; None: those of the table's gateways."""


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

    @property
    def is_programmed(self) -> bool:
        """Whether all live replicas serve it."""
        return any(said.type is ConditionType.PROGRAMMED and said.status == "True" for said in self.conditions)


def wanted_by(update: StatusUpdate) -> DesiredStatus:
    """Return what an update wants, without its Events and times."""
    values = {name: getattr(update, name) for name in DesiredStatus._fields}
    values["conditions"] = tuple(
        DesiredCondition(one.type, one.status, one.reason, one.message, one.ancestor) for one in update.conditions
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
    revision = _revision(facts, before)
    programmed = _programmed(facts, revision, fleet, before)
    return DesiredStatus(
        ref=identity.ref,
        api_version=identity.api_version,
        kind=identity.kind,
        uid=identity.uid,
        generation=identity.generation,
        is_accepted=condition.is_accepted,
        addresses=addresses,
        withdrawn=_withdrawn(addresses, before),
        conditions=(_accepted(facts), _resolved(condition), programmed, *_for_ancestors(facts, programmed)),
        stand_in=_stand_in(facts.stand_in),
        content=facts.content if condition.is_accepted else "",
        revision=revision,
        problems=limit(condition.problems),
    )


def _revision(facts: Facts, before: DesiredStatus | None) -> Version | None:
    if not facts.condition.is_accepted or _is_in_no_table(facts):
        return None
    is_as_before = before is not None and before.is_accepted and before.content == facts.content
    return before.revision if before and is_as_before and before.revision else facts.version


def _is_in_no_table(facts: Facts) -> bool:
    problems = facts.condition.problems
    is_said = any(problem.reason == TARGETS_NOT_SERVED for problem in problems)
    return is_said and all(ancestor.unserved_in(problems) for ancestor in facts.ancestors)


def _withdrawn(
    addresses: tuple[LoadBalancerAddress, ...] | None, before: DesiredStatus | None
) -> tuple[LoadBalancerAddress, ...]:
    if before is None:
        return ()
    once = dict.fromkeys((*(before.addresses or ()), *before.withdrawn))
    return tuple(address for address in once if address not in (addresses or ()))[:MAX_WITHDRAWN]


def _stand_in(version: VersionId | None) -> ServedVersion | None:
    return version and ServedVersion(resource_version=version.resource_version, generation=version.generation)


# Conditions


def _accepted(facts: Facts) -> DesiredCondition:
    condition = facts.condition
    if facts.stand_in is not None:
        text = f"{_texts(condition.errors)}; {facts.stand_in} stays in force until this is mended"
        return _say(ConditionType.ACCEPTED, "False", "Invalid", text)
    wrong = [problem for problem in condition.problems if problem.severity is Severity.ERROR]
    wrong = [problem for problem in wrong if problem not in condition.unresolved]
    if not condition.is_accepted:
        reason = "Invalid" if condition.errors or not wrong else wrong[0].reason
        return _say(ConditionType.ACCEPTED, "False", reason, _texts(wrong or condition.problems))
    if wrong and condition.is_refused:
        return _say(ConditionType.ACCEPTED, "False", "Invalid", _texts(wrong))
    if wrong:
        return _say(ConditionType.ACCEPTED, "True", "ServedInPart", _texts(wrong))
    said = (SERVED_BY_NAMESAKE, TARGETS_NOT_SERVED) if _is_in_no_table(facts) else (SERVED_BY_NAMESAKE,)
    if elsewhere := [problem for problem in condition.problems if problem.reason in said]:
        return _say(ConditionType.ACCEPTED, "True", elsewhere[0].reason, _texts(elsewhere))
    return _say(ConditionType.ACCEPTED, "True", "Accepted", "")


def _for_ancestors(facts: Facts, programmed: DesiredCondition) -> Iterator[DesiredCondition]:
    """Say how a policy stands with respect to each of the objects that it is about."""
    for ancestor in facts.ancestors:
        wrong = ancestor.errors_in(facts.condition.problems)
        if facts.stand_in is not None or facts.condition.errors:
            yield _accepted(facts)._replace(status="False", reason="Invalid", ancestor=ancestor.ref)
        elif wrong:
            said = _say(ConditionType.ACCEPTED, "False", wrong[0].reason, _texts(wrong))
            yield said._replace(ancestor=ancestor.ref)
        elif unserved := ancestor.unserved_in(facts.condition.problems):
            said = _say(ConditionType.ACCEPTED, "True", TARGETS_NOT_SERVED, _texts(unserved))
            yield said._replace(ancestor=ancestor.ref)
            yield _in_no_table(TARGETS_NOT_SERVED)._replace(ancestor=ancestor.ref)
        else:
            yield _say(ConditionType.ACCEPTED, "True", "Accepted", "")._replace(ancestor=ancestor.ref)
            yield programmed._replace(ancestor=ancestor.ref)


def _resolved(condition: Condition) -> DesiredCondition:
    if condition.unresolved:
        first = condition.unresolved[0].reason
        return _say(ConditionType.RESOLVED_REFS, "False", first, _texts(condition.unresolved))
    return _say(ConditionType.RESOLVED_REFS, "True", "ResolvedRefs", "")


def _programmed(facts: Facts, revision: Version | None, fleet: Fleet, before: DesiredStatus | None) -> DesiredCondition:
    what = ConditionType.PROGRAMMED
    if revision is None:
        reason = TARGETS_NOT_SERVED if facts.condition.is_accepted else "NotAccepted"
        return _in_no_table(reason)
    if facts.pinned is not None and facts.pinned < revision:
        text = f"the table is pinned to revision {facts.pinned}; this waits, in revision {revision}, to be unpinned"
        return _say(what, "False", "TablePinned", text)
    if facts.rollout is not None and facts.rollout.base < revision:
        reason, text = _rolling_out(facts.rollout, revision, len(fleet.replicas))
        return _say(what, "False", reason, text)
    if not fleet.replicas:
        return _kept(before, revision) or _say(what, "Unknown", "NoReplicas", f"no gateway serves revision {revision}")
    if behind := fleet.behind(revision):
        named = ", ".join(behind[:_NAMED]) + (" and others" if len(behind) > _NAMED else "")
        count = len(fleet.replicas) - len(behind)
        text = f"revision {revision} is served by {count} of {len(fleet.replicas)} replicas; not yet by {named}"
        return _say(what, "False", "Pending", text)
    text = f"revision {revision} was served by {_all(len(fleet.replicas))} when this was written"
    return _kept(before, revision) or _say(what, "True", "Programmed", text)


def _in_no_table(reason: str) -> DesiredCondition:
    return _say(ConditionType.PROGRAMMED, "False", reason, "nothing of it is in the table")


def _rolling_out(rollout: Rollout, revision: Version, count: int) -> tuple[str, str]:
    """Reason and message for an object that is not served everywhere because its revision is rolled out, or waits."""
    if rollout.phase is RolloutPhase.HELD:
        who = f" by {rollout.by}" if rollout.by else ""
        text = f"revision {revision} is served nowhere: taken back with {rollout.target}{who}: {rollout.reason}"
        return HELD_BACK, text
    named = ", ".join(rollout.replicas[:_NAMED]) + (" and others" if len(rollout.replicas) > _NAMED else "")
    if rollout.target < revision:
        return "RollingOut", f"revision {revision} waits until {rollout.target}, now on {named}, is served by all"
    text = f"revision {revision} goes to {len(rollout.replicas)} of {count} replicas first: {named}"
    return "RollingOut", text


def _kept(before: DesiredStatus | None, revision: Version) -> DesiredCondition | None:
    """What was said of that revision once all served it: that a replica is there more or less is no news."""
    if before is None or before.revision != revision or not before.is_programmed:
        return None
    return _programmed_of(before)


def _programmed_of(desired: DesiredStatus) -> DesiredCondition:
    return next(said for said in desired.conditions if said.type is ConditionType.PROGRAMMED)


def _all(count: int) -> str:
    return "the one replica" if count == 1 else f"all {count} replicas"


def _say(what: ConditionType, status: str, reason: str, message: str) -> DesiredCondition:
    return DesiredCondition(what, status, reason, shorten(message, CONDITION_CHARACTERS))


def _texts(problems: Sequence[Problem]) -> str:
    return "; ".join(shorten(str(problem), TEXT_BYTES) for problem in problems[:MAX_EVENTS])


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


# What is told


def disown(before: DesiredStatus) -> DesiredStatus:
    """Return what is desired for an object that is no longer ours: what we wrote is taken back."""
    return _emptied(before)._replace(addresses=(), withdrawn=_withdrawn((), before))


def forget(before: DesiredStatus) -> DesiredStatus:
    """Return what is said of an object that is gone: nothing is wrong with it any more, and nothing is written."""
    return _emptied(before)._replace(addresses=None)


def _emptied(before: DesiredStatus) -> DesiredStatus:
    return before._replace(
        is_accepted=False, conditions=(), stand_in=None, content="", revision=None, problems=(), generation=0
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
    values: dict[str, Any] = desired._asdict() | {"conditions": tuple(_conditions(desired, known, at))}
    return StatusUpdate(
        **values,
        events=tuple([*kept, *notes][-EVENTS_KEPT:]),
        last_error=_last_error(desired, known, at),
        table=table,
        at=at,
        traceparent=traceparent,
    )


def _conditions(desired: DesiredStatus, before: StatusUpdate | None, at: datetime) -> Iterable[StatusCondition]:
    known = {(one.ancestor, one.type): one for one in before.conditions} if before else {}
    for said in desired.conditions:
        last = known.get((said.ancestor, said.type))
        yield StatusCondition(**said._asdict(), since=last.since if last and last.status == said.status else at)


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
    if programmed.reason == TARGETS_NOT_SERVED:
        return next(said.message for said in desired.conditions if said.type is ConditionType.ACCEPTED)
    return f"{how}; {programmed.message}" if programmed.status == "True" else how


def _note(kind: str, reason: str, text: str, at: datetime) -> EventNote:
    return EventNote(type=kind, reason=reason, note=shorten(text, NOTE_BYTES), at=at)


def _last_error(desired: DesiredStatus, before: StatusUpdate | None, at: datetime) -> EventNote | None:
    known = set(before.problems) if before else set()
    errors = [problem for problem in desired.problems if problem.severity is Severity.ERROR and problem not in known]
    if errors:
        return _note("Warning", errors[0].reason, str(errors[0]), at)
    return before.last_error if before else None
