"""Who gets what several objects claim.

The oldest object wins (Gateway API's rule, and ingress-nginx' too); absent creation times count as oldest; ties go by
namespace, name and cluster. The loser hears which object won; nothing changes for the winner. A default backend gives
way to every rule for the same path, whatever their age. Paths with different conditions are no conflict, nor are equal
routes of one object that was applied to several clusters, if these share its Services: they are served once, for all.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import ENTRY_LIMIT
from headgate.common.table import (
    ANY_HOST,
    AllOf,
    AnyOf,
    Canary,
    Condition,
    PathType,
    PluginUse,
    Route,
    StreamRoute,
    TlsPolicy,
)
from headgate.translator.fragment import (
    CanaryClaim,
    CertificateRef,
    Fragment,
    Identity,
    NameClaim,
    RouteClaim,
    TlsClaim,
)
from headgate.translator.manifest import shown

HOST_LIMIT = ENTRY_LIMIT - 4096
"""Bytes of all routes of one host, some 10,000 routes."""
SURELY_FITTING = 400
"""Routes that need not be measured: one is at most some 9 KB, as dialects limit what goes into it."""


SERVED_BY_NAMESAKE = "ServedByNamesake"
_OF_ONE_CLUSTER: Any = {"name": True, "key": True, "provenance": True, "plugins": {"__all__": {"secrets"}}}


class Verdict(NamedTuple):
    """A host, and what the losers hear."""

    is_claimed: bool
    """Whether the host exists: a canary alone makes none."""
    falls_through: bool
    """Whether requests that none of its routes takes are other hosts' business."""
    inherits_tls: bool
    """Whether the TLS of a wildcard that takes its name holds for it, if it has none of its own."""
    routes: tuple[Route, ...]
    tls: TlsPolicy | None
    lost: dict[ObjectRef, tuple[Problem, ...]]


Won = tuple[RouteClaim, Identity]
Lost = dict[ObjectRef, list[Problem]]
_Key = tuple[PathType, str, Condition | None]
Sharing = Mapping[str, Collection[str]]
AnyRoute = Route | StreamRoute
_NOTHING_SHARED: Sharing = {}


def merge_host(host: str, fragments: Iterable[Fragment], sharing: Sharing = _NOTHING_SHARED) -> Verdict:
    """Merge what fragments claim at one host.

    Routes come in the order in which a gateway prefers them: exact before prefix, longer path, more conditions.

    Args:
        host: that it is about.
        fragments: of all objects that have to do with it.
        sharing: upstreams that several clusters have, by key, each with these clusters.
    """
    users = sorted(fragments, key=lambda fragment: fragment.identity.seniority)
    lost: Lost = {}
    tls, unprotected = _award_tls(host, users, lost)
    claims = [
        (claim.is_default or claim.gives_way, -claim.preference, position, claim, fragment.identity)
        for position, fragment in enumerate(users)
        for claim in fragment.routes
        if claim.host == host
    ]
    claims.sort(key=lambda each: each[:3])
    winners: dict[_Key, Won] = {}
    for *_, claim, identity in claims:
        held = _close(claim) if identity.ref in unprotected else claim
        winner, owner = winners.setdefault(_key(claim), (held, identity))
        if owner.ref != identity.ref:
            lost.setdefault(identity.ref, []).append(_lost_path(host, claim, identity, winner, owner, sharing))
    canaried = add_canaries(host, users, list(winners.values()), lost)
    room = HOST_LIMIT - (len(tls.model_dump_json().encode()) if tls else 0)
    fitting = sorted(_fit(host, room, canaried, lost), key=_preference)
    is_claimed = bool(claims) or any(host in fragment.hosts for fragment in users)
    return Verdict(
        is_claimed,
        all(fragment.falls_through for fragment in users),
        any(fragment.falls_through for fragment in users),
        tuple(claim.route for claim in fitting),
        tls,
        {ref: tuple(problems) for ref, problems in lost.items()},
    )


def _key(claim: RouteClaim) -> _Key:
    return claim.route.path.type, claim.route.path.value, claim.route.when


def _close(claim: RouteClaim) -> RouteClaim:
    """Without backends a route answers 503."""
    route = claim.route.model_copy(update={"backends": (), "plugins": ()})
    return claim._replace(route=route, is_refused=True)


def _award_tls(host: str, users: Iterable[Fragment], lost: Lost) -> tuple[TlsPolicy | None, set[ObjectRef]]:
    """Return the oldest object's policy, and the objects whose wish for client certificates is not met by it."""
    winner: tuple[TlsClaim, Identity] | None = None
    unprotected: set[ObjectRef] = set()
    for fragment in users:
        for claim in fragment.tls:
            if claim.host != host:
                continue
            winner = winner or (claim, fragment.identity)
            if claim.policy != winner[0].policy:
                wished = claim.policy.client_auth
                is_open = wished is not None and wished != winner[0].policy.client_auth
                lost.setdefault(fragment.identity.ref, []).append(
                    _lost_tls(host, claim, fragment.identity, winner[1], is_open)
                )
                unprotected |= {fragment.identity.ref} if is_open else set()
    return (winner[0].policy if winner else None), unprotected


def _lost_tls(host: str, claim: TlsClaim, loser: Identity, owner: Identity, is_open: bool) -> Problem:
    consequence = "; until both agree on client certificates the requests of this object are refused" if is_open else ""
    return Problem(
        severity=Severity.ERROR if is_open else Severity.WARNING,
        reason="TlsConflict",
        field=claim.field,
        value=shown(host),
        message=f"TLS of host {host} is set by {describe(owner)}, {seniority_of(owner, loser)}{consequence}",
    )


def add_canaries(host: str, users: Iterable[Fragment], won: list[Won], lost: Lost) -> list[Won]:
    """Give routes the canaries that are claimed for them, the oldest object's first."""
    wanted: dict[tuple[PathType, str], list[Canary]] = {}
    present = {(claim.route.path.type, claim.route.path.value) for claim, _ in won}
    for fragment in users:
        for claim in fragment.canaries:
            place = (claim.path.type, claim.path.value)
            if claim.host != host:
                continue
            if place in present:
                wanted.setdefault(place, []).append(claim.canary)
            else:
                lost.setdefault(fragment.identity.ref, []).append(_lost_canary(host, claim))
    return [(_with_canaries(claim, wanted), identity) for claim, identity in won] if wanted else won


def _with_canaries(claim: RouteClaim, wanted: Mapping[tuple[PathType, str], list[Canary]]) -> RouteClaim:
    canaries = wanted.get((claim.route.path.type, claim.route.path.value))
    if not canaries or claim.is_refused:
        return claim
    return claim._replace(route=claim.route.model_copy(update={"canaries": tuple(canaries)}))


def _lost_canary(host: str, claim: CanaryClaim) -> Problem:
    where = "every host" if host == ANY_HOST else f"host {host}"
    message = f"no other Ingress has {claim.path.type} path {claim.path.value} of {where}, so this canary gets nothing"
    return Problem(reason="CanaryWithoutMain", field=claim.field, value=shown(claim.path.value), message=message)


def outgrow(host: str, size: int, before: Fragment | None, after: Fragment) -> Iterator[Problem]:
    """Yield what is wrong where an object's routes would no longer fit into a host that takes `size` bytes now."""
    growth = _size_at(host, after) - (_size_at(host, before) if before else 0)
    if growth > 0 and size + growth > HOST_LIMIT:
        yield next(_too_large(host, claim) for claim in after.routes if claim.host == host)


def _size_at(host: str, fragment: Fragment) -> int:
    return sum(_size_of(claim) for claim in fragment.routes if claim.host == host)


def _size_of(claim: RouteClaim) -> int:
    return len(claim.route.model_dump_json(exclude_defaults=True).encode()) + 1


def _fit(host: str, room: int, winners: Collection[Won], lost: Lost) -> Iterator[RouteClaim]:
    """Yield the claims that fit into one entry, the oldest objects' first: readers refuse a table with a larger one."""
    size, is_small = 0, len(winners) <= SURELY_FITTING and not any(map(_may_be_large, winners))
    for claim, identity in winners:
        size += 0 if is_small else _size_of(claim)
        if size <= room:
            yield claim
        else:
            lost.setdefault(identity.ref, []).append(_too_large(host, claim))


def _too_large(host: str, claim: RouteClaim) -> Problem:
    message = f"host {host} has more routes than one host can have; spread them over several hosts"
    return Problem(reason="HostTooLarge", field=claim.field, value=shown(host), message=message)


def _may_be_large(won: Won) -> bool:
    route = won[0].route
    return bool(route.plugins or route.when or route.canaries)


_TYPE_ORDER = {PathType.EXACT: 0, PathType.REGEX: 1, PathType.PREFIX: 2, PathType.STRING_PREFIX: 2}


def _preference(claim: RouteClaim) -> tuple[int, int, int, str, int, int]:
    route, path = claim.route, claim.route.path
    place = -route.priority, _TYPE_ORDER[path.type], -len(path.value), path.value
    return *place, -claim.preference, -_comparisons(route.when)


def _comparisons(condition: Condition | None) -> int:
    """Return how many comparisons a condition has: of routes for one path the one that asks for more goes first."""
    match condition:
        case None:
            return 0
        case AllOf():
            return sum(map(_comparisons, condition.all_of))
        case AnyOf():
            return max(map(_comparisons, condition.any_of), default=0)
        case _:
            return 1


def _lost_path(
    host: str, claim: RouteClaim, loser: Identity, winner: RouteClaim, owner: Identity, sharing: Sharing
) -> Problem:
    where = "every host" if host == ANY_HOST else f"host {host}"
    path = f"{claim.route.path.type} path {claim.route.path.value}"
    if is_for_both(winner.route, owner, claim.route, loser, sharing):
        return by_namesake(claim.field, claim.route.path.value, f"{path} of {where}", owner, loser)
    is_shadowed = claim.is_default and not winner.is_default
    why = "whose rule goes before a default backend" if is_shadowed else seniority_of(owner, loser)
    if claim.gives_way and not winner.gives_way:
        why = "because what this object asks of requests cannot be read"
    return Problem(
        severity=Severity.WARNING if is_shadowed else Severity.ERROR,
        reason="PathConflict",
        field=claim.field,
        value=shown(claim.route.path.value),
        message=f"{path} of {where} belongs to {describe(owner)} ({winner.route.provenance.rule}), {why}",
    )


def seniority_of(owner: Identity, loser: Identity) -> str:
    """Say why an object goes before another."""
    if owner.created_at != loser.created_at:
        return "which is older"
    is_namesake = owner.ref[3:] == loser.ref[3:]
    return f"which is as old and goes first by {'the name of its cluster' if is_namesake else 'name'}"


def are_namesakes(one: Identity, other: Identity) -> bool:
    """Whether two objects are of one kind and name, in two clusters."""
    names = [(each.kind, each.ref.namespace, each.ref.name) for each in (one, other)]
    return names[0] == names[1] and one.ref.cluster != other.ref.cluster


def is_for_both(won: AnyRoute, owner: Identity, lost: AnyRoute, loser: Identity, sharing: Sharing) -> bool:
    """Whether a route is served for another cluster too: one object, applied to both, of Services that both export."""
    if not are_namesakes(owner, loser) or _without_cluster(won, owner) != _without_cluster(lost, loser):
        return False
    both = {owner.ref.cluster, loser.ref.cluster}
    pairs = zip(won.backends, lost.backends, strict=True)
    # Of an object that is only proposed nobody has looked at the upstreams yet; its namesake's are shared by the same.
    return all(both.issubset(sharing.get(one.upstream) or sharing.get(other.upstream, ())) for one, other in pairs)


def _without_cluster(route: AnyRoute, identity: Identity) -> str:
    """Return a route as it would be written in any cluster: keys of upstreams begin with the cluster's name.

    What is sealed differs each time, and is left out.
    """
    content = route.model_dump_json(exclude=_OF_ONE_CLUSTER, exclude_defaults=True)
    return content.replace(f'"{identity.ref.cluster}/', '"/')


def by_namesake(field: str, value: str, what: str, owner: Identity, loser: Identity) -> Problem:
    """Say that what an object claims is served as its namesake's."""
    return Problem(
        severity=Severity.INFO,
        reason=SERVED_BY_NAMESAKE,
        field=field,
        value=shown(value),
        message=f"{what} is served by its namesake {describe(owner)}, {seniority_of(owner, loser)}",
    )


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
    if are_namesakes(owner, loser) and claim.certificate[1:] == winner.certificate[1:]:
        return by_namesake(claim.field, claim.name, f"the certificate of {claim.name}", owner, loser)
    why = "whose entry goes first" if owner.ref == loser.ref else seniority_of(owner, loser)
    return Problem(
        severity=Severity.WARNING,
        reason="CertificateConflict",
        field=claim.field,
        value=shown(claim.name),
        message=f"{claim.name} gets the certificate of Secret {secret} by {describe(owner)}, {why}",
    )


class PluginVerdict(NamedTuple):
    """The plugins of every request, and what the losers hear."""

    uses: tuple[PluginUse, ...]
    lost: dict[ObjectRef, tuple[Problem, ...]]


def award_plugins(fragments: Iterable[Fragment]) -> PluginVerdict:
    """Decide which plugins run for every request: of several of one name that of the oldest object."""
    winners: dict[str, tuple[PluginUse, Identity]] = {}
    lost: dict[ObjectRef, tuple[Problem, ...]] = {}
    for fragment in sorted(fragments, key=lambda each: each.identity.seniority):
        for use in fragment.global_plugins:
            winner, owner = winners.setdefault(use.name, (use, fragment.identity))
            if winner != use:
                why = seniority_of(owner, fragment.identity)
                problem = Problem(
                    severity=Severity.WARNING,
                    reason="PluginConflict",
                    field="spec.plugins",
                    value=shown(use.name),
                    message=f"plugin {use.name} of every request is set by {describe(owner)}, {why}",
                )
                lost[fragment.identity.ref] = (*lost.get(fragment.identity.ref, ()), problem)
    uses = tuple(use.model_copy(update={"is_global": True}) for use, _ in winners.values())
    return PluginVerdict(uses, lost)
