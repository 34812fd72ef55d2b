"""How the listeners of a Gateway stand: the conditions of each, as Gateway API names them."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.status import ConditionType
from headgate.common.table import TlsPolicy
from headgate.translator.dialects.gateway_api.gateways.certificates import NO_CERTIFICATES, claim_certificates
from headgate.translator.dialects.gateway_api.gateways.frontend import FIELD, NO_AUTHORITY, Frontend
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener, ListenerFault
from headgate.translator.fragments.fragment import CertificateRef, NameClaim
from headgate.translator.fragments.status_part import SaidCondition
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.world.graph import Lookups

INVALID: Final = "Invalid"
NOT_ACCEPTED: Final = (
    SaidCondition(ConditionType.ACCEPTED, "Unknown", "Pending", "the object that it is of is not accepted"),
    SaidCondition(ConditionType.CONFLICTED, "False", "NoConflicts"),
    SaidCondition(ConditionType.RESOLVED_REFS, "True", "ResolvedRefs"),
    SaidCondition(ConditionType.PROGRAMMED, "False", "Pending", "the object that it is of is not accepted"),
)
"""How listeners of an object stand that is not accepted as a whole."""


class Standing(NamedTuple):
    """How one listener stands."""

    listener: GatewayListener
    said: tuple[SaidCondition, ...]
    problems: tuple[Problem, ...]
    names: tuple[NameClaim, ...] = ()
    """Server names for which it presents certificates."""
    certificates: tuple[CertificateRef, ...] = ()
    """Those that it presents, the first for names that none of them has."""
    is_accepted: bool = True
    is_programmed: bool = True
    tls: TlsPolicy | None = None
    """What is asked of its clients."""

    def without_address(self) -> "Standing":
        """Return how it stands where its Gateway has got no address."""
        if not self.is_programmed:
            return self
        pending = SaidCondition(ConditionType.PROGRAMMED, "False", "Pending", "the Gateway has no address")
        return self._replace(said=(*self.said, pending), is_programmed=False)


def judge(
    listener: GatewayListener, fault: ListenerFault | None, ref: ObjectRef, lookups: Lookups, frontend: Frontend
) -> Standing:
    """Return how a listener stands.

    Args:
        listener: of the Gateway or the ListenerSet `ref`.
        fault: why it cannot be had.
        ref: the object.
        lookups: finds what it refers to.
        frontend: what the Gateway asks of clients.
    """
    problems: list[Problem] = []
    asked = frontend.at(listener.spec.port) if listener.transport == "https" else None
    if fault is None and asked is not None and asked.policy is None:
        message = "no authority for certificates of clients can be had; without them all clients would be let in"
        fault = ListenerFault(NO_AUTHORITY, FIELD, message, "")
    if fault is not None:
        problems.append(refuse(fault.reason, fault.field, fault.message, fault.value))
    unresolved = [*_unknown_kinds(listener)]
    ends_tls = fault is None and listener.ends_tls
    found = claim_certificates(listener, ref, lookups) if ends_tls else NO_CERTIFICATES
    names = found.names
    unresolved += found.problems
    unresolved += asked.problems if asked is not None else ()
    if listener.spec.tls is not None and listener.spec.tls.options:
        message = "options of TLS are not followed: the gateways' own settings hold"
        problems.append(warn("UnsupportedField", f"{listener.field}.tls.options", message))
    is_programmed = fault is None and bool(listener.kinds) and (bool(names) or not ends_tls)
    said = tuple(_conditions(fault, unresolved, is_programmed=is_programmed, is_of_set=bool(listener.owner)))
    tls = asked.policy if asked is not None else None
    about = (*problems, *unresolved)
    return Standing(listener, said, about, names, found.certificates, fault is None, is_programmed, tls)


def _unknown_kinds(listener: GatewayListener) -> Iterator[Problem]:
    if listener.transport is None:
        return
    for kind in listener.unknown_kinds:
        what = f"{kind.kind}.{kind.group}"
        served = " and ".join(each.kind for each in listener.served_kinds)
        message = f"{what} is no kind of routes that is served on {listener.spec.protocol}; served are {served}"
        yield refuse("InvalidRouteKinds", f"{listener.field}.allowedRoutes.kinds", message, what)


def _conditions(
    fault: ListenerFault | None, unresolved: Sequence[Problem], *, is_programmed: bool, is_of_set: bool
) -> Iterator[SaidCondition]:
    conflict = fault if fault is not None and fault.is_conflict else None
    if fault is None:
        yield SaidCondition(ConditionType.ACCEPTED, "True", "Accepted")
    else:
        yield SaidCondition(ConditionType.ACCEPTED, "False", fault.reason, fault.message)
    if conflict is None:
        yield SaidCondition(ConditionType.CONFLICTED, "False", "NoConflicts")
    else:
        yield SaidCondition(ConditionType.CONFLICTED, "True", conflict.reason, conflict.message)
    if unresolved:
        texts = "; ".join(map(str, unresolved))
        yield SaidCondition(ConditionType.RESOLVED_REFS, "False", unresolved[0].reason, texts)
    else:
        yield SaidCondition(ConditionType.RESOLVED_REFS, "True", "ResolvedRefs")
    if not is_programmed:
        why = fault.message if fault is not None else "; ".join(map(str, unresolved))
        # Of ListenerSets Gateway API wants the conflict here too.
        reason = conflict.reason if conflict is not None and is_of_set else INVALID
        yield SaidCondition(ConditionType.PROGRAMMED, "False", reason, why)
