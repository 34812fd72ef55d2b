"""What is wrong with a proposed object, by itself and beside everything else that there is.

The same translation, the same merging of hosts and the same look at backends as for an object of the world, so that
whatever the object's status would say is said before it is let in. Beyond that it is said what others would lose.

An update is compared with the object as it is: what was wrong before is no reason to refuse it.
"""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from headgate.common.admission import Basis, Finding, Opinion, Outcome, Proposal
from headgate.common.problems import Problem, Severity
from headgate.common.resources import EXPERIMENTAL_GROUP, GATEWAY_GROUP, ObjectRef
from headgate.translator.admission.dry_world import DryWorld
from headgate.translator.assembly.assembly import Assembly, field_at_fault
from headgate.translator.assembly.conditions import say_fault
from headgate.translator.assembly.losses import Losses
from headgate.translator.assembly.ownership import HOST_NOT_OWNED, PATH_CONFLICT, tenant_of
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.fragments.seniority import describe
from headgate.translator.fragments.upstream_refs import ResourceRef, UpstreamRef
from headgate.translator.translation import Translation
from headgate.translator.upstreams.entries import UPSTREAM
from headgate.translator.upstreams.resolution import BackendFault
from headgate.translator.world.graph import Node
from headgate.translator.world.last_good import JudgedVersion
from headgate.translator.world.world import Inspected

MAX_FINDINGS = 100
"""Of one opinion: more are of no help, and the bus bounds the answer."""
MAX_DEPENDENTS = 32
"""Others that refer to the object and are looked at; each takes as long as the object itself."""
_MAY_STILL_COME = frozenset({"CanaryWithoutMain"})
"""Of what is lost to others: what is only missing."""
_OF_ITSELF = frozenset({"CatchAllDisabled", "ForbiddenText", "ForbiddenAnnotation", "PathTypeMismatch"})
"""Found only beside the object's class and the operator's options, and about nothing but the object itself."""
_REFUSED_IF_NEW = frozenset({"CatchAllDisabled", "PathTypeMismatch"})
"""Warnings of objects that are there, and errors of those that are not."""
_SPEAKS_BY_CONDITIONS = frozenset((GATEWAY_GROUP, EXPERIMENTAL_GROUP))
"""Groups whose specification has what is wrong with an object told by its conditions: it has to be let in for that."""
_MALFORMED = frozenset(("InvalidValue", "Required", "WrongType"))
"""Reasons of what the definitions of these groups do not take either."""
_INDEXES = re.compile(r"\[\d+\]")


def examine(translation: Translation, proposal: Proposal) -> Opinion:
    """Return what is wrong with a proposed object; the translation is left as it is.

    A mistake of ours raises: the caller decides what becomes of the object then.
    """
    inspected = translation.world.inspect(proposal.ref, proposal.object)
    found = _find(translation, proposal.ref, inspected, _named(translation, proposal))
    if found is None:
        return Opinion(outcome=Outcome.FOREIGN)
    if proposal.is_update and any(_is_error(finding) for finding in found):
        found = _compare(found, _find_before(translation, proposal))
    found = [finding for finding in found if finding.problem.severity is not Severity.INFO]
    if proposal.ref.group in _SPEAKS_BY_CONDITIONS:
        found = [_unless_malformed(finding) for finding in found]
    found.sort(key=lambda finding: (not _is_error(finding), not finding.is_new))
    said = (one.model_copy(update={"problem": translation.as_written(one.problem)}) for one in found[:MAX_FINDINGS])
    return Opinion(outcome=Outcome.JUDGED, findings=tuple(said), omitted=max(0, len(found) - MAX_FINDINGS))


def _named(translation: Translation, proposal: Proposal) -> dict[ObjectRef, JudgedVersion]:
    """Return what the object alone names and the log does not have yet."""
    world = translation.world
    unknown = (one for one in proposal.named if world.get(one.ref) is None)
    found = ((one.ref, world.inspect(one.ref, one.object)) for one in unknown)
    return {ref: inspected.judged for ref, inspected in found if inspected is not None}


def _unless_malformed(finding: Finding) -> Finding:
    """Return a finding as a warning, unless it says that the object is none of its kind."""
    problem = finding.problem
    if problem.severity is not Severity.ERROR or (finding.basis is Basis.OWN and problem.reason in _MALFORMED):
        return finding
    return finding.model_copy(update={"problem": problem.model_copy(update={"severity": Severity.WARNING})})


def _is_error(finding: Finding) -> bool:
    return finding.problem.severity is Severity.ERROR


def _find_before(translation: Translation, proposal: Proposal) -> Sequence[Finding]:
    """What is wrong with the object as it is, nothing where it is not ours."""
    ref, world = proposal.ref, translation.world
    if proposal.before is not None:
        inspected = world.inspect(ref, proposal.before)
    else:
        versions = world.tracker.get(ref)
        inspected = Inspected(versions.present, frozenset(versions.errors)) if versions else None
    return _find(translation, ref, inspected) or ()


def _compare(found: Iterable[Finding], before: Iterable[Finding]) -> list[Finding]:
    """Mark what was wrong before. Positions in lists do not count: they move when something else is taken out."""
    known = Counter(_likeness(finding.problem) for finding in before)
    compared = []
    for finding in found:
        likeness = _likeness(finding.problem)
        is_new = known[likeness] == 0
        known[likeness] -= not is_new
        compared.append(finding.model_copy(update={"is_new": is_new}))
    return compared


def _likeness(problem: Problem) -> Hashable:
    field, message = _INDEXES.sub("[]", problem.field), _INDEXES.sub("[]", problem.message)
    return problem.severity, problem.reason, field, problem.value, message


def _find(
    translation: Translation,
    ref: ObjectRef,
    inspected: Inspected | None,
    named: Mapping[ObjectRef, JudgedVersion] = MappingProxyType({}),
) -> list[Finding] | None:
    """Return all that is wrong; None for an object that is none of ours."""
    if inspected is None:
        return None
    versions = {**named, ref: inspected.judged}
    world = DryWorld(translation.world, translation.graph, ref.cluster, versions)
    others = (node for node in translation.graph.askers(ref) if node.argument != ref)
    dependents = list(islice(others, MAX_DEPENDENTS))
    is_root = translation.is_root(ref)
    fragment = translation.translate(ref, world) if is_root else None
    if fragment is None and not dependents:
        return None
    found = [] if is_root else [Finding(problem=problem, basis=Basis.OWN) for problem in inspected.judged.errors]
    if fragment is not None:
        found += _of_fragment(translation, fragment, inspected.problems, world)
    return found + list(_consequences(translation, dependents, world))


def _of_fragment(
    translation: Translation, fragment: Fragment, own: Collection[Problem], world: DryWorld
) -> Iterator[Finding]:
    ref = fragment.identity.ref
    for problem in fragment.problems:
        is_own = problem in own or problem.reason in _OF_ITSELF
        severity = Severity.ERROR if problem.reason in _REFUSED_IF_NEW else problem.severity
        judged = problem.model_copy(update={"severity": severity})
        yield Finding(problem=judged, basis=Basis.OWN if is_own else Basis.REFERENCE)
    losses = translation.assembly.rehearse(ref, fragment)
    for problem in dict.fromkeys(translation.assembly.lost_by(fragment, losses)):
        missing = problem.reason in _MAY_STILL_COME
        yield Finding(problem=problem, basis=Basis.REFERENCE if missing else Basis.CONFLICT)
    yield from _taken(translation, fragment, losses)
    faults = ((use, _fault(translation, use.upstream, ref, world)) for use in fragment.backends)
    said = (
        (use, field_at_fault(use, fault), fault)
        for use, fault in faults
        if fault and not (use.may_be_empty and fault.is_emptiness)
    )
    for use, field, fault in dict.fromkeys(said):
        basis = Basis.OWN if isinstance(use.upstream, ResourceRef) else Basis.REFERENCE
        yield Finding(problem=say_fault(field, use.upstream, fault), basis=basis)


def _fault(translation: Translation, upstream: UpstreamRef, ref: ObjectRef, world: DryWorld) -> BackendFault | None:
    node = Node(UPSTREAM, upstream)
    if translation.graph.is_settled(node) and node not in translation.graph.askers(ref):
        return translation.assembly.fault_of(upstream)
    return UPSTREAM.compute(world, upstream).fault


def _taken(translation: Translation, fragment: Fragment, losses: Losses) -> Iterator[Finding]:
    """What others have now and would lose to the object."""
    for where, lost in losses.items():
        present = translation.assembly.losses.get(where, {})
        for other, problems in lost.items():
            if other == fragment.identity.ref:
                continue
            for problem in problems:
                if problem.severity is not Severity.INFO and problem not in present.get(other, ()):
                    yield _take(translation.assembly, fragment, where[1], other, problem)


def _take(assembly: Assembly, fragment: Fragment, place: str, other: ObjectRef, problem: Problem) -> Finding:
    owner = describe(assembly.fragments[other].identity)
    is_taking = problem.severity is Severity.ERROR and problem.reason not in _MAY_STILL_COME
    if problem.reason == HOST_NOT_OWNED and _owns(assembly, place, fragment):
        is_taking = False  # an owner need not ask guests
    message = f"{owner} would lose by this: {problem.message}"
    if is_taking and problem.reason in (PATH_CONFLICT, HOST_NOT_OWNED):
        message = f"{owner} has this now and would lose it; choose another host or path, or take it out there first"
    taken = Problem(
        severity=Severity.ERROR if is_taking else Severity.WARNING,
        reason=problem.reason,
        field=_field_of_claim(fragment, place, problem),
        value=problem.value,
        message=message,
    )
    return Finding(problem=taken, basis=Basis.CONFLICT if is_taking else Basis.CONSEQUENCE)


def _owns(assembly: Assembly, host: str, fragment: Fragment) -> bool:
    owner = assembly.owners.oldest_claimant(host)
    return owner is not None and tenant_of(owner) == tenant_of(fragment.identity)


def _field_of_claim(fragment: Fragment, place: str, problem: Problem) -> str:
    paths = (claim.field for claim in fragment.routes if (claim.host, claim.route.path.value) == (place, problem.value))
    streams = (claim.field for claim in fragment.streams if str(claim.port) == place)
    return next(iter((*paths, *streams)), "")


def _consequences(translation: Translation, dependents: Iterable[Node], world: DryWorld) -> Iterator[Finding]:
    """What others, who refer to the object, would lack."""
    for node in dependents:
        if node.rule is UPSTREAM:
            yield from _unserved(translation, node.argument, world)
        elif isinstance(node.argument, ObjectRef):
            yield from _worsened(translation, node.argument, world)


def _unserved(translation: Translation, upstream: UpstreamRef, world: DryWorld) -> Iterator[Finding]:
    fault, before = UPSTREAM.compute(world, upstream).fault, translation.assembly.fault_of(upstream)
    if fault is None or (before is not None and before.reason == fault.reason):
        return
    users = sorted(translation.assembly.users_of(upstream))
    for ref in users[:1]:
        more = f" and {len(users) - 1} more" if len(users) > 1 else ""
        who = describe(translation.assembly.fragments[ref].identity)
        message = f"{fault.message}; {who}{more} would have nothing to serve it"
        problem = Problem(severity=Severity.WARNING, reason=fault.reason, message=message)
        yield Finding(problem=problem, basis=Basis.CONSEQUENCE)


def _worsened(translation: Translation, ref: ObjectRef, world: DryWorld) -> Iterator[Finding]:
    before, after = translation.assembly.fragments.get(ref), translation.translate(ref, world)
    if before is None or after is None:
        return
    for problem in after.problems:
        if problem not in before.problems:
            message = f"{describe(after.identity)} would have: {problem}"
            worse = Problem(severity=Severity.WARNING, reason=problem.reason, message=message)
            yield Finding(problem=worse, basis=Basis.CONSEQUENCE)
