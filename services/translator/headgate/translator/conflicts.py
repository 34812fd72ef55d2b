"""Who gets what several objects claim.

The oldest object wins (Gateway API's rule, and ingress-nginx' too); absent creation times count as oldest; ties go by
namespace, name and cluster. The loser hears which object won; nothing changes for the winner. A default backend gives
way to every rule for the same path, whatever their age.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import ENTRY_LIMIT
from headgate.common.table import ANY_HOST, PathType, Route
from headgate.translator.fragment import CertificateRef, Fragment, Identity, NameClaim, RouteClaim
from headgate.translator.manifest import shown

HOST_LIMIT = ENTRY_LIMIT - 4096
"""Bytes of all routes of one host, some 10,000 routes."""
SURELY_FITTING = 400
"""Routes that need not be measured: one is at most some 9 KB, as dialects limit what goes into it."""


class Verdict(NamedTuple):
    """The routes of a host, and what the losers hear."""

    routes: tuple[Route, ...]
    lost: dict[ObjectRef, tuple[Problem, ...]]


def merge_host(host: str, fragments: Iterable[Fragment]) -> Verdict:
    """Merge what fragments claim at one host.

    Routes come in the order in which a gateway prefers them: exact before prefix, longer path.
    """
    claims = [
        (claim.is_default, fragment.identity.seniority, claim, fragment.identity)
        for fragment in fragments
        for claim in fragment.routes
        if claim.host == host
    ]
    claims.sort(key=lambda each: each[:2])
    winners: dict[tuple[PathType, str], tuple[RouteClaim, Identity]] = {}
    lost: dict[ObjectRef, list[Problem]] = {}
    for _, _, claim, identity in claims:
        winner, owner = winners.setdefault((claim.route.path.type, claim.route.path.value), (claim, identity))
        if owner.ref != identity.ref:
            lost.setdefault(identity.ref, []).append(_lost_path(host, claim, identity, winner, owner))
    fitting = list(_fit(host, winners.values(), lost))
    return Verdict(tuple(sorted(fitting, key=_preference)), {ref: tuple(problems) for ref, problems in lost.items()})


def _fit(
    host: str, winners: Collection[tuple[RouteClaim, Identity]], lost: dict[ObjectRef, list[Problem]]
) -> Iterator[Route]:
    """Yield the routes that fit into one entry, the oldest objects' first: readers refuse a table with a larger one."""
    size, is_small = 0, len(winners) <= SURELY_FITTING
    for claim, identity in winners:
        size += 0 if is_small else len(claim.route.model_dump_json(exclude_defaults=True).encode()) + 1
        if size <= HOST_LIMIT:
            yield claim.route
        else:
            message = f"host {host} has more routes than one host can have; spread them over several hosts"
            problem = Problem(reason="HostTooLarge", field=claim.field, value=shown(host), message=message)
            lost.setdefault(identity.ref, []).append(problem)


def _preference(route: Route) -> tuple[bool, int, str]:
    return route.path.type is not PathType.EXACT, -len(route.path.value), route.path.value


def _lost_path(host: str, claim: RouteClaim, loser: Identity, winner: RouteClaim, owner: Identity) -> Problem:
    where = "every host" if host == ANY_HOST else f"host {host}"
    path = f"{claim.route.path.type} path {claim.route.path.value}"
    is_shadowed = claim.is_default and not winner.is_default
    why = "whose rule goes before a default backend" if is_shadowed else _seniority(owner, loser)
    return Problem(
        severity=Severity.WARNING if is_shadowed else Severity.ERROR,
        reason="PathConflict",
        field=claim.field,
        value=shown(claim.route.path.value),
        message=f"{path} of {where} belongs to {describe(owner)} ({winner.route.provenance.rule}), {why}",
    )


def _seniority(owner: Identity, loser: Identity) -> str:
    return "which is older" if owner.created_at != loser.created_at else "which is as old and goes first by name"


def describe(identity: Identity) -> str:
    """Return an object as a message names it."""
    ref = identity.ref
    return f"{identity.kind} {ref.namespace}/{ref.name} in cluster {ref.cluster}"


class NameVerdict(NamedTuple):
    """The certificate of a server name, and what the losers hear."""

    certificate: CertificateRef | None
    lost: dict[ObjectRef, tuple[Problem, ...]]


def award_name(name: str, fragments: Iterable[Fragment]) -> NameVerdict:
    """Decide which certificate is presented for a server name. Several claims of one Secret are no conflict."""
    claims = [
        (fragment.identity.seniority, position, claim, fragment.identity)
        for fragment in fragments
        for position, claim in enumerate(fragment.names)
        if claim.name == name
    ]
    if not claims:
        return NameVerdict(None, {})
    claims.sort(key=lambda each: each[:2])
    _, _, winner, owner = claims[0]
    lost: dict[ObjectRef, list[Problem]] = {}
    for _, _, claim, identity in claims:
        if claim.certificate != winner.certificate:
            lost.setdefault(identity.ref, []).append(_lost_name(claim, identity, winner, owner))
    return NameVerdict(winner.certificate, {ref: tuple(problems) for ref, problems in lost.items()})


def _lost_name(claim: NameClaim, loser: Identity, winner: NameClaim, owner: Identity) -> Problem:
    secret = f"{winner.certificate.namespace}/{winner.certificate.secret}"
    why = "whose entry goes first" if owner.ref == loser.ref else _seniority(owner, loser)
    return Problem(
        severity=Severity.WARNING,
        reason="CertificateConflict",
        field=claim.field,
        value=shown(claim.name),
        message=f"{claim.name} gets the certificate of Secret {secret} by {describe(owner)}, {why}",
    )
