"""What an object's author is told: the object's own mistakes, what it lost to others, and what is wrong behind it."""

from collections.abc import Collection
from dataclasses import dataclass

from headgate.common.problems import Problem, Severity
from headgate.common.status import AncestorRef, ParentRef
from headgate.translator.assembly.assembly import Assembly
from headgate.translator.assembly.ownership import HOST_NOT_OWNED, PATH_CONFLICT
from headgate.translator.fragments.fragment import Fragment, InnerClaim, RouteClaim, StreamClaim
from headgate.translator.fragments.upstream_refs import RefusalRef, ResourceRef, ServicePortRef, UpstreamRef
from headgate.translator.manifests.reading import shown
from headgate.translator.upstreams.resolution import BackendFault

_LOST = (PATH_CONFLICT, HOST_NOT_OWNED, "HostTooLarge", "CanaryWithoutMain", "StreamConflict")


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """How one object stands."""

    is_accepted: bool
    """Whether at least one of its routes is in the table, or there is none and no mistake either."""
    problems: tuple[Problem, ...]
    errors: tuple[Problem, ...] = ()
    """Those of them that its present version has by itself."""
    unresolved: tuple[Problem, ...] = ()
    """Those that are about what it refers to, and for which something of it is not served."""
    is_refused: bool = False
    """Whether every request to it is answered 503, or every connection refused, for a mistake of its own."""


_FINE = ObjectStatus(is_accepted=True, problems=())
_REFUSED = ObjectStatus(is_accepted=True, problems=(), is_refused=True)
"""Of nearly all objects: one for all of them."""


def judge(fragment: Fragment, assembly: Assembly) -> ObjectStatus:
    """Return how an object stands, from its fragment and from what became of it."""
    lost = tuple(assembly.lost_by(fragment))
    faults = (say_fault(field, ref, fault) for field, ref, fault in assembly.faults_of(fragment))
    problems = tuple(dict.fromkeys((*fragment.problems, *lost, *faults)))
    if not problems:
        return _REFUSED if _is_refused(fragment, ()) else _FINE
    claims = fragment.routes, fragment.canaries, fragment.streams
    fields = [claim.field for kind in claims for claim in kind] + [claim.field for claim in fragment.inner]
    claimed = len(fields)
    claims_lost = sum(problem.reason in _LOST and problem.field in fields for problem in lost)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    referred = [error for error in errors if error not in fragment.errors and error not in lost]
    is_policy = any(isinstance(part.ref, AncestorRef) for part in fragment.parts)
    unresolved = () if is_policy else tuple(referred)  # of a policy they are what Accepted is about
    is_held = not claimed and fragment.stand_in is not None
    in_themselves = (part for part in fragment.parts if not isinstance(part.ref, ParentRef))
    is_in_force = any(part.stands(problems) for part in in_themselves)
    is_accepted = claimed > claims_lost or not errors or is_held or is_in_force
    return ObjectStatus(is_accepted, problems, fragment.errors, unresolved, is_accepted and _is_refused(fragment, lost))


def _is_refused(fragment: Fragment, lost: Collection[Problem]) -> bool:
    """Whether an object has routes, and each of them refuses its requests or connections."""
    claims: list[RouteClaim | StreamClaim | InnerClaim] = [*fragment.routes, *fragment.streams, *fragment.inner]
    if not claims or fragment.canaries:
        return False
    fields = {problem.field for problem in lost if problem.reason in _LOST}
    return all(claim.is_refused for claim in claims if claim.field not in fields)


def say_fault(field: str, ref: UpstreamRef, fault: BackendFault) -> Problem:
    """Return what is wrong with a backend, as the author of the object that refers to it is told."""
    value = _value(field, ref)
    return Problem(severity=fault.severity, reason=fault.reason, field=field, value=value, message=fault.message)


def _value(field: str, ref: UpstreamRef) -> str:
    if isinstance(ref, ResourceRef | RefusalRef):
        return shown(f"{ref.kind}/{ref.name}")
    name = ref.service if isinstance(ref, ServicePortRef) else ref.name
    is_about_name = ref.port is None or (field.endswith(("name", "Name")) and ".port" not in field)
    return shown(name if is_about_name else str(ref.port))
