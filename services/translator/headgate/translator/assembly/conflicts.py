"""Who gets what several objects claim.

Between namespaces the owner of the host decides (`ownership`). Otherwise the oldest object wins (Gateway API's rule,
and ingress-nginx' too); absent creation times count as oldest; ties go by namespace, name and cluster. The loser hears
which object won; nothing changes for the winner. A default backend gives way to every rule for the same path, whatever
their age. Paths with different conditions are no conflict, nor are equal routes of one object that was applied to
several clusters, if these share its Services: they are served once, for all.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import ENTRY_LIMIT
from headgate.common.table import (
    Canary,
    Condition,
    PathType,
    Route,
    TlsPolicy,
    Unmatched,
)
from headgate.common.table.rank import BeforePath, WithinMatch, WithinPath
from headgate.translator.assembly.boundaries import DEFAULT_BOUNDARIES, Boundaries
from headgate.translator.assembly.host_tls import award_tls
from headgate.translator.assembly.namesakes import by_namesake, is_for_both
from headgate.translator.assembly.ownership import (
    PATH_CONFLICT,
    Admitted,
    HostOwnership,
    Sharing,
    Tenant,
    admit,
    claims_host,
    find_owner,
    name_host,
    tenant_of,
)
from headgate.translator.fragments.fragment import CanaryClaim, Fragment, Identity, RouteClaim
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown

HOST_LIMIT = ENTRY_LIMIT - 4096
"""Bytes of all routes of one host, some 10,000 routes."""
SURELY_FITTING = 400
"""Routes that need not be measured: one without plugins is at most some 9 KB, as dialects limit what goes into it."""
_SURELY_FITTING_PLUGINS = 64 * 1024
"""Characters of Python's notation of their plugins' configurations; JSON has at most four bytes for one."""


class MergedHost(NamedTuple):
    """A host, and what the losers hear."""

    is_claimed: bool
    """Whether the host exists: a canary alone makes none."""
    unmatched: Unmatched
    inherits_tls: bool
    """Whether the TLS of a wildcard that takes its name holds for it, if it has none of its own."""
    routes: tuple[Route, ...]
    tls: TlsPolicy | None
    tls_owner: Identity | None
    """The object that asks for it."""
    lost: dict[ObjectRef, tuple[Problem, ...]]


class Elsewhere(NamedTuple):
    """The same host on other listeners."""

    hosts: tuple[str, ...] = ()
    """As claims have it there."""
    users: tuple[Fragment, ...] = ()
    """Who have to do with it there."""

    def with_users(self, users: list[Fragment]) -> list[Fragment]:
        """Return all who have to do with it, the oldest first; `users` do here."""
        if not self.users:
            return users
        here = {user.identity.ref for user in users}
        others = [user for user in self.users if user.identity.ref not in here]
        return sorted([*users, *others], key=lambda fragment: fragment.identity.seniority)


_NOWHERE = Elsewhere()
T = TypeVar("T")
Won = tuple[RouteClaim, Identity]
Lost = dict[ObjectRef, list[Problem]]
_Key = tuple[PathType, str, Condition | None]
_NOTHING_SHARED: Sharing = {}


def merge_host(
    host: str,
    fragments: Iterable[Fragment],
    sharing: Sharing = _NOTHING_SHARED,
    boundaries: Boundaries = DEFAULT_BOUNDARIES,
    *,
    above: Collection[Fragment] = (),
    elsewhere: Elsewhere = _NOWHERE,
) -> MergedHost:
    """Merge what fragments claim at one host.

    Routes come in the order in which a gateway prefers them, by rank and path.

    Args:
        host: that it is about.
        fragments: of all objects that have to do with it.
        sharing: upstreams that several clusters have, by key, each with these clusters.
        boundaries: what other namespaces than the host's owner may claim.
        above: of the objects that have TLS for the wildcard which takes the host.
        elsewhere: the same host on other listeners.
    """
    users = _in_order(fragments, lambda fragment: fragment.identity.seniority)
    if len(users) == 1 and not above and not elsewhere.users and (alone := _merge_alone(host, users[0])) is not None:
        return alone
    everybody = elsewhere.with_users(users)
    ownership = find_owner(host, everybody, sharing, boundaries, elsewhere.hosts)
    lost: Lost = {}
    is_owned = any(claims_host(fragment, host) for fragment in users)
    tls, unprotected = award_tls(ownership, users, is_owned, lost)
    claims = _admitted(ownership, users, is_owned, lost, _claims_elsewhere(ownership, everybody, elsewhere.hosts))
    secured = _secured(ownership, users, above)
    winners: dict[_Key, Won] = {}
    for _, _, claim, identity in claims:
        held = _close(claim) if unprotected.has(identity) else secured.apply(claim, identity)
        winner, owner = winners.setdefault(_key(claim), (held, identity))
        if owner.ref != identity.ref and not claim.is_rest and not winner.is_rest:
            lost.setdefault(identity.ref, []).append(_lost_path(host, claim, identity, winner, owner, sharing))
    served = [won for won in winners.values() if not _says_nothing(won[0])]
    canaried = add_canaries(ownership, users, served, lost)
    room = HOST_LIMIT - (len(tls.policy.model_dump_json().encode()) if tls else 0)
    fitting = _in_order(_fit(host, room, canaried, lost), _order)
    speakers = _speakers(ownership, users)
    return MergedHost(
        bool(claims) or any(host in fragment.hosts for fragment in users),
        "next-host" if all(fragment.unmatched == "next-host" for fragment in speakers) else "404",
        any(fragment.inherits_tls for fragment in speakers),
        tuple(claim.route for claim in fitting),
        tls.policy if tls else None,
        tls.owner if tls else None,
        {ref: tuple(problems) for ref, problems in lost.items()},
    )


def _merge_alone(host: str, fragment: Fragment) -> MergedHost | None:
    """Return a host of which one object claims one route, as most are; None if there is more to say of either."""
    if fragment.canaries or fragment.tls:
        return None
    claims = [claim for claim in fragment.routes if claim.host == host]
    if len(claims) != 1 or claims[0].is_alias or claims[0].is_rest:
        return None
    if fragment.secures_hosts and claims[0].when_secured:
        return None
    route = claims[0].route
    if route.when or route.canaries or route.plugins:
        return None
    return MergedHost(True, fragment.unmatched, fragment.inherits_tls, (route,), None, None, {})


def _claims_elsewhere(
    ownership: HostOwnership, users: Iterable[Fragment], hosts: Collection[str]
) -> Iterator[Admitted]:
    """Yield the claims for the same host on other listeners."""
    for position, fragment in enumerate(users if hosts else ()):
        for claim in fragment.routes:
            if claim.host in hosts:
                yield Admitted(ownership.rank(fragment.identity), position, claim, fragment.identity)


def _admitted(
    ownership: HostOwnership, users: Iterable[Fragment], is_owned: bool, lost: Lost, elsewhere: Iterable[Admitted]
) -> list[Admitted]:
    """Return the claims that compete for the host, those that win first. Aliases do so unless the host is owned."""
    claims = [
        Admitted(ownership.rank(fragment.identity), position, claim, fragment.identity)
        for position, fragment in enumerate(users)
        for claim in fragment.routes
        if claim.host == ownership.host
        and not (claim.is_alias and is_owned)
        and not (claim.is_rest and not claim.is_for_all and ownership.rank(fragment.identity))
    ]
    admitted = [each for each in claims if each.claim.is_for_all]
    for each in admit(ownership, (one for one in claims if not one.claim.is_for_all), elsewhere):
        if isinstance(each, Admitted):
            admitted.append(each)
        else:
            lost.setdefault(each[0].ref, []).append(each[1])
    return _in_order(admitted, _precedence)


def _in_order(values: Iterable[T], key: Callable[[T], Any]) -> list[T]:
    """Sort; most hosts have one object with one route, whose keys need not be made."""
    several = list(values)
    if len(several) > 1:
        several.sort(key=key)
    return several


def _precedence(admitted: Admitted) -> tuple[bool, int, WithinMatch, int]:
    """Sort key among claims of equal matches, of which one is served. The rest gives way to routes of any namespace."""
    claim = admitted.claim
    return claim.is_rest, admitted.rank, claim.route.rank.within_match, admitted.position


def _speakers(ownership: HostOwnership, users: Sequence[Fragment]) -> Sequence[Fragment]:
    """Return who decides what becomes of requests that no route takes: the owner, and guests if it has no routes."""
    if ownership.owner is None:
        return users
    host = ownership.host
    routing = [
        user
        for user in users
        if any(claim.host == host for claim in user.routes) or (host in user.hosts and user.unmatched == "404")
    ]
    first = min((ownership.rank(user.identity) for user in routing), default=0)
    return [user for user in routing if ownership.rank(user.identity) == first] or users


def _says_nothing(claim: RouteClaim) -> bool:
    return claim.is_rest and not (claim.is_refused or claim.route.plugins or claim.route.backends)


def _key(claim: RouteClaim) -> _Key:
    return claim.route.path.type, claim.route.path.value, claim.route.when


def _close(claim: RouteClaim) -> RouteClaim:
    """Without backends a route answers 503."""
    route = claim.route.model_copy(update={"backends": (), "plugins": (), "mirrors": ()})
    return claim._replace(route=route, is_refused=True)


class _Secured(NamedTuple):
    """Whose routes at a host are secured."""

    by_owner: bool
    tenants: Collection[Tenant]

    def apply(self, claim: RouteClaim, identity: Identity) -> RouteClaim:
        """Return a claim with the plugins that it has where the host has TLS."""
        if not claim.when_secured or not (self.by_owner or tenant_of(identity) in self.tenants):
            return claim
        plugins = claim.route.plugins + claim.when_secured
        return claim._replace(route=claim.route.model_copy(update={"plugins": plugins}))


_NONE_SECURED = _Secured(False, ())


def _secured(ownership: HostOwnership, users: Collection[Fragment], above: Collection[Fragment]) -> _Secured:
    if not above and not any(user.secures_hosts for user in users):
        return _NONE_SECURED
    at_host = {tenant_of(user.identity) for user in users if user.secures_hosts}
    tenants = at_host | {tenant_of(user.identity) for user in above if user.secures_hosts}
    if ownership.owner is None:
        return _Secured(bool(at_host), tenants)
    return _Secured(any(ownership.ranks.get(tenant) == 0 for tenant in tenants), tenants)


def add_canaries(ownership: HostOwnership, users: Collection[Fragment], won: list[Won], lost: Lost) -> list[Won]:
    """Give routes the canaries that are claimed for them, the oldest object's first; guests have them on their own."""
    if not any(fragment.canaries for fragment in users):
        return won
    wanted: dict[tuple[PathType, str], list[Canary]] = {}
    host = ownership.host
    present = {_place(claim): (claim, identity) for claim, identity in won if not claim.is_rest}
    for fragment in users:
        for claim in fragment.canaries:
            place = (claim.path.type, claim.path.value)
            if claim.host != host:
                continue
            route, main = present.get(place, (None, None))
            if claim.is_alias and not (route and route.is_alias):
                continue
            if main is None:
                problem = _lost_canary(host, claim)
            elif ownership.rank(main) != ownership.rank(fragment.identity):
                problem = _refused_canary(ownership, claim, fragment.identity, main)
            else:
                wanted.setdefault(place, []).append(claim.canary)
                continue
            lost.setdefault(fragment.identity.ref, []).append(problem)
    return [(_with_canaries(claim, wanted), identity) for claim, identity in won] if wanted else won


def _place(claim: RouteClaim) -> tuple[PathType, str]:
    return claim.route.path.type, claim.route.path.value


def _refused_canary(ownership: HostOwnership, claim: CanaryClaim, loser: Identity, main: Identity) -> Problem:
    path = f"{claim.path.type} path {claim.path.value}"
    why = f"canaries of {path} are for the namespace of {describe(main)} to make"
    return ownership.refuse(loser, claim.field, claim.path.value, why, Severity.ERROR)


def _with_canaries(claim: RouteClaim, wanted: Mapping[tuple[PathType, str], list[Canary]]) -> RouteClaim:
    canaries = wanted.get(_place(claim))
    if not canaries or claim.is_refused or claim.is_rest:
        return claim
    return claim._replace(route=claim.route.model_copy(update={"canaries": tuple(canaries)}))


def _lost_canary(host: str, claim: CanaryClaim) -> Problem:
    where = name_host(host)
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
    size, is_small = 0, len(winners) <= SURELY_FITTING and _is_surely_small(winners)
    for claim, identity in winners:
        size += 0 if is_small else _size_of(claim)
        if size <= room:
            yield claim
        else:
            lost.setdefault(identity.ref, []).append(_too_large(host, claim))


def _too_large(host: str, claim: RouteClaim) -> Problem:
    message = f"{name_host(host)} has more routes than one host can have; spread them over several hosts"
    return Problem(reason="HostTooLarge", field=claim.field, value=shown(host), message=message)


def _is_surely_small(winners: Collection[Won]) -> bool:
    """Whether what routes may have much of is little; finding that out costs a tenth of measuring."""
    room = _SURELY_FITTING_PLUGINS
    for claim, _ in winners:
        if claim.route.when or claim.route.canaries:
            return False
        room -= sum(len(repr(use.config)) for use in claim.route.plugins)
    return room >= 0


def _order(claim: RouteClaim) -> tuple[BeforePath, str, WithinPath, bool]:
    """Sort key among the routes of a host; of equal ones those of the oldest object are first already.

    Of two prefixes of one text and rank that by elements goes before that by characters, as it takes less.
    """
    path, rank = claim.route.path, claim.route.rank
    is_text = path.type is PathType.STRING_PREFIX
    return rank.before_path(path.type, len(path.value)), path.value, rank.within_path, is_text


def _lost_path(
    host: str, claim: RouteClaim, loser: Identity, winner: RouteClaim, owner: Identity, sharing: Sharing
) -> Problem:
    where = name_host(host)
    path = f"{claim.route.path.type} path {claim.route.path.value}"
    if is_for_both(winner.route, owner, claim.route, loser, sharing):
        return by_namesake(claim.field, claim.route.path.value, f"{path} of {where}", owner, loser)
    mine, theirs = claim.route.rank, winner.route.rank
    is_shadowed = mine.is_default and not theirs.is_default
    why = "whose rule goes before a default backend" if is_shadowed else seniority_of(owner, loser)
    if not is_shadowed and theirs.priority > mine.priority:
        is_shadowed, why = True, f"whose priority is {theirs.priority}, this one's is {mine.priority}"
    if mine.is_unreadable and not theirs.is_unreadable:
        why = "because what this object asks of requests cannot be read"
    return Problem(
        severity=Severity.WARNING if is_shadowed else Severity.ERROR,
        reason=PATH_CONFLICT,
        field=claim.field,
        value=shown(claim.route.path.value),
        message=f"{path} of {where} belongs to {describe(owner)} ({winner.route.provenance.rule}), {why}",
    )
