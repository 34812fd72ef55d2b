"""The conditions of an object, as a whole and of the parts of its status."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.snapshot import Rollout, RolloutPhase, Version
from headgate.common.status import (
    CONDITION_CHARACTERS,
    AncestorRef,
    ConditionType,
    ListenerRef,
    ListenerReport,
    LoadBalancerAddress,
    ParentRef,
    PartRef,
    shorten,
)
from headgate.translator.assembly.conditions import ObjectStatus
from headgate.translator.assembly.namesakes import SERVED_BY_NAMESAKE
from headgate.translator.assembly.ownership import PATH_CONFLICT
from headgate.translator.assembly.streams import STREAM_CONFLICT
from headgate.translator.fragments.fragment import Identity
from headgate.translator.fragments.status_part import SaidCondition, StatusPart
from headgate.translator.serving.fleet import Fleet
from headgate.translator.world.last_good import VersionId

MAX_TEXTS = 10
"""Problems in one message."""
TEXT_BYTES = 1000
"""Of one problem's message: what users write is repeated in some."""
_TAKEN = (PATH_CONFLICT, STREAM_CONFLICT)
"""Reasons of what an older object has."""
HELD_BACK = "HeldBack"
"""Reason of an object that waits because the fleet went back from a table with it."""
UNSUPPORTED_VALUE = "UnsupportedValue"
"""Reason of a route whose own spec is wrong, as Gateway API calls it."""
_NAMED = 3


class DesiredCondition(NamedTuple):
    """A condition without the time since when it holds."""

    type: ConditionType
    status: str
    reason: str
    message: str
    part: PartRef | None = None
    """Of the object's status; None for the object as a whole."""


class Facts(NamedTuple):
    """What is known of an object that is ours, as of one revision of the table."""

    identity: Identity
    condition: ObjectStatus
    stand_in: VersionId | None
    content: str
    """Digest of what is served of it."""
    version: Version | None
    """Of the table."""
    pinned: Version | None
    """Old revision that the table is pinned to."""
    rollout: Rollout | None = None
    """Of the table."""
    parts: tuple[StatusPart, ...] = ()
    """What has conditions of its own in its status."""
    listeners: tuple[ListenerReport, ...] = ()
    """Its listeners."""
    addresses: tuple[LoadBalancerAddress, ...] | None = None
    """Its own; None: those of the table's gateways."""
    leaves_addresses: bool = False
    """Another controller still writes them."""
    said: tuple[SaidCondition, ...] = ()
    """What its dialect says of it as a whole, in the place of what follows from its problems and beside it."""
    features: tuple[str, ...] = ()
    """That its status lists."""
    attached_listener_sets: int = 0


def accepted(facts: Facts) -> DesiredCondition:
    """Say whether its present version is served."""
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
    if elsewhere := [problem for problem in condition.problems if problem.reason == SERVED_BY_NAMESAKE]:
        return _say(ConditionType.ACCEPTED, "True", elsewhere[0].reason, _texts(elsewhere))
    return _say(ConditionType.ACCEPTED, "True", "Accepted", "")


def resolved(unresolved: Sequence[Problem]) -> DesiredCondition:
    """Say whether what it refers to is there, from what is not."""
    if unresolved:
        return _say(ConditionType.RESOLVED_REFS, "False", unresolved[0].reason, _texts(unresolved))
    return _say(ConditionType.RESOLVED_REFS, "True", "ResolvedRefs", "")


def programmed(
    facts: Facts, revision: Version | None, fleet: Fleet, known: DesiredCondition | None
) -> DesiredCondition:
    """Say whether all gateways serve it; `known` is what was said of that revision once all served it.

    That stays as it is, as a replica more or less is no news.
    """
    what = ConditionType.PROGRAMMED
    if revision is None:
        return _say(what, "False", "NotAccepted", "nothing of it is in the table")
    if facts.pinned is not None and facts.pinned < revision:
        text = f"the table is pinned to revision {facts.pinned}; this waits, in revision {revision}, to be unpinned"
        return _say(what, "False", "TablePinned", text)
    if facts.rollout is not None and facts.rollout.base < revision:
        reason, text = _rolling_out(facts.rollout, revision, len(fleet.replicas))
        return _say(what, "False", reason, text)
    if not fleet.replicas:
        return known or _say(what, "Unknown", "NoReplicas", f"no gateway serves revision {revision}")
    if behind := fleet.behind(revision):
        named = ", ".join(behind[:_NAMED]) + (" and others" if len(behind) > _NAMED else "")
        count = len(fleet.replicas) - len(behind)
        text = f"revision {revision} is served by {count} of {len(fleet.replicas)} replicas; not yet by {named}"
        return _say(what, "False", "Pending", text)
    if fleet.missing and known is None:
        named = ", ".join(map(str, fleet.missing[:_NAMED])) + (" and others" if len(fleet.missing) > _NAMED else "")
        text = f"no gateway serves shard {named}, and revision {revision} may have hosts of it"
        return _say(what, "False", "ShardWithoutGateway", text)
    text = f"revision {revision} was served by {_all(len(fleet.replicas))} when this was written"
    return known or _say(what, "True", "Programmed", text)


def as_said(facts: Facts, conditions: Iterable[DesiredCondition]) -> Iterator[DesiredCondition]:
    """Yield the conditions of an object as a whole, with what its dialect says of them.

    What stands in for a version with errors says nothing of that version.
    """
    said = {} if facts.stand_in is not None else {one.type: _say(*one) for one in facts.said}
    for one in conditions:
        yield said.pop(one.type, one)
    yield from said.values()


def of_parts(facts: Facts, as_a_whole: DesiredCondition, fleet: Fleet) -> Iterator[DesiredCondition]:
    """Say how each part of the object's status stands; `as_a_whole` is what `programmed` says of the object."""
    opened = {report.name: report for report in facts.listeners if report.port}
    for part in facts.parts:
        found = {one.type: one for one in _of_part(part, facts, as_a_whole)}
        found |= {one.type: _say(*one) for one in part.said}
        report = opened.get(part.ref.name) if isinstance(part.ref, ListenerRef) else None
        served = found.get(ConditionType.PROGRAMMED)
        if report and served is not None and served.status == "True" and (closed := _closed(report, fleet)):
            found[ConditionType.PROGRAMMED] = closed
        yield from (one._replace(part=part.ref) for one in found.values())


def _of_part(part: StatusPart, facts: Facts, as_a_whole: DesiredCondition) -> Iterator[DesiredCondition]:
    condition = facts.condition
    unresolved = part.errors_in(condition.unresolved)
    wrong = [problem for problem in part.errors_in(condition.problems) if problem not in unresolved]
    is_policy = isinstance(part.ref, AncestorRef)
    if isinstance(part.ref, ParentRef) and (facts.stand_in is not None or wrong):
        yield from _of_faulty_route(part, facts, wrong, as_a_whole)
    elif facts.stand_in is not None or condition.errors:
        yield accepted(facts)._replace(status="False", reason="Invalid")
    elif wrong:
        yield _say(ConditionType.ACCEPTED, "False", wrong[0].reason, _texts(wrong))
    else:
        yield _say(ConditionType.ACCEPTED, "True", "Accepted", "")
        yield as_a_whole
    if not is_policy:
        yield resolved(unresolved)


def _of_faulty_route(
    part: StatusPart, facts: Facts, wrong: Sequence[Problem], as_a_whole: DesiredCondition
) -> Iterator[DesiredCondition]:
    """Say how a route with errors stands at a parent: one of which some rules are served is accepted there.

    Gateway API has the words for it in the documentation of `PartiallyInvalid`. One all of whose requests older routes
    take is accepted too.
    """
    own = set(facts.condition.errors)
    if facts.stand_in is not None:
        yield accepted(facts)._replace(reason=UNSUPPORTED_VALUE)
    elif at_parent := part.own_errors_in(wrong):
        yield _say(ConditionType.ACCEPTED, "False", at_parent[0].reason, _texts(at_parent))
    elif not facts.condition.is_accepted and all(problem.reason in _TAKEN for problem in wrong):
        yield _say(ConditionType.ACCEPTED, "True", "Accepted", "")
        yield _say(ConditionType.PROGRAMMED, "False", wrong[0].reason, _texts(wrong))
    elif not facts.condition.is_accepted:
        reason = UNSUPPORTED_VALUE if wrong[0] in own else wrong[0].reason
        yield _say(ConditionType.ACCEPTED, "False", reason, _texts(wrong))
    else:
        yield _say(ConditionType.ACCEPTED, "True", "Accepted", "")
        reason = UNSUPPORTED_VALUE if own else wrong[0].reason
        yield _say(ConditionType.PARTIALLY_INVALID, "True", reason, f"Dropped Rule: {_texts(wrong)}")
        yield as_a_whole


def _closed(report: ListenerReport, fleet: Fleet) -> DesiredCondition | None:
    """Say that replicas could not open a listener's port; None if all have."""
    places = report.addresses
    same = (each for each in fleet.closed if (each.port, each.is_udp) == (report.port, report.is_udp))
    found = [each for each in same if not places or each.address in places]
    if not found:
        return None
    named = ", ".join(each.replica for each in found[:_NAMED]) + (" and others" if len(found) > _NAMED else "")
    text = f"port {report.port} is not open at {named}: {found[0].reason}"
    return _say(ConditionType.PROGRAMMED, "False", "PortUnavailable", text)


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


def _all(count: int) -> str:
    return "the one replica" if count == 1 else f"all {count} replicas"


def _say(what: ConditionType, status: str, reason: str, message: str) -> DesiredCondition:
    return DesiredCondition(what, status, reason, shorten(message, CONDITION_CHARACTERS))


def _texts(problems: Sequence[Problem]) -> str:
    return "; ".join(shorten(str(problem), TEXT_BYTES) for problem in problems[:MAX_TEXTS])
