"""Who owns a host, and which claims of other namespaces are refused for it.

The owner is the namespace of the oldest object that claims the host by a rule, a route or a TLS policy, or, where none
does, of the oldest with an alias for it; several clusters have a namespace each. A more specific host is a claim of its
own. What counts as the owner's own:

- namespaces that an object of the owner names by the annotation `headgate.dev/host-sharing-namespaces`;
- of Gateways and their routes those of the namespaces that a Gateway lets in;
- the namespace of the same name in another cluster, if both clusters export a Service that its routes lead to: they
  share the requests already.

All other namespaces are guests, the one that claimed the host first before the others. Guests get no canaries on
routes of others, no TLS, and by `host_sharing: paths` the paths that `TakenPaths` leaves; by `namespace` none.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.table import ANY_HOST, Route
from headgate.common.table.hosts import HostKey
from headgate.translator.annotations.host_sharing import KEY
from headgate.translator.assembly.boundaries import Boundaries
from headgate.translator.assembly.taken_paths import TakenPaths
from headgate.translator.fragments.fragment import Fragment, Identity, RouteClaim
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown

HOST_NOT_OWNED = "HostNotOwned"
PATH_CONFLICT = "PathConflict"
"""Reasons of claims that others have."""
Sharing = Mapping[str, Collection[str]]
"""Upstreams that several clusters have, by key, each with these clusters."""


class Tenant(NamedTuple):
    """A namespace of a cluster."""

    cluster: str
    namespace: str


def tenant_of(identity: Identity) -> Tenant:
    """Return whose object it is."""
    return Tenant(identity.ref.cluster, identity.ref.namespace)


@dataclass(frozen=True)
class HostOwnership:
    """Who has which rights at one host."""

    host: str
    owner: Identity | None
    """The oldest object that claims it; None where no other namespace has to do with it, so that all is allowed."""
    ranks: Mapping[Tenant, int] = field(default_factory=dict)
    """0 for the owner and what counts as its own; guests in the order in which they claimed the host."""
    has_paths: bool = True
    """Whether guests may have paths."""
    partners: Collection[tuple[Tenant, str]] = ()
    """Namespaces whose objects of an API group count as the owner's own."""

    def rank(self, identity: Identity) -> int:
        """Return the rank of an object: that of its namespace, unless objects of its group are the owner's own."""
        tenant = tenant_of(identity)
        if self.owner is None or (tenant, identity.ref.group) in self.partners:
            return 0
        return self.ranks.get(tenant, len(self.ranks))

    def refuse(self, identity: Identity, path: str, value: str, why: str, severity: Severity) -> Problem:
        """Tell a guest who owns the host, and what to do."""
        owner = self.owner or identity
        why_first = seniority_of(owner, identity) if owner.seniority < identity.seniority else "which claims it"
        tenant = tenant_of(identity)
        is_near = tenant.cluster == owner.ref.cluster
        name = tenant.namespace if is_near else f"{tenant.cluster}/{tenant.namespace}"
        is_namesake = not is_near and tenant.namespace == owner.ref.namespace
        choice = "choose another path or host" if self.has_paths else "choose another host"
        of_rest = " (requests that no other host takes)" if HostKey.read(self.host).host == ANY_HOST else ""
        remedy = "export its Service from both clusters" if is_namesake else choice
        return Problem(
            severity=severity,
            reason=HOST_NOT_OWNED,
            field=path,
            value=shown(value),
            message=f"{name_host(self.host)}{of_rest} is owned by {describe(owner)}, {why_first}; {why}; {remedy}, or "
            f'have its owner annotate that object with {KEY}: "{name}"',
        )


def name_host(host: str) -> str:
    """Return a host as messages name it."""
    name, listeners = HostKey.read(host)
    where = f" on listener {', '.join(listeners)}" if listeners else ""
    return f"every host{where}" if name == ANY_HOST else f"host {name}{where}"


def find_owner(
    host: str, users: Sequence[Fragment], sharing: Sharing, boundaries: Boundaries, elsewhere: Collection[str] = ()
) -> HostOwnership:
    """Return who has which rights at a host.

    Args:
        host: as claims have it.
        users: all who have to do with it, the oldest first.
        sharing: upstreams that several clusters have.
        boundaries: what namespaces may do.
        elsewhere: the same host on other listeners: cookies, passwords and certificates know no ports, so that it has
            one owner on all of them.
    """
    if boundaries.host_sharing == "any" or len({tenant_of(user.identity) for user in users}) < 2:
        return HostOwnership(host, None)
    hosts = (host, *elsewhere)
    claimants = [user for user in users if any(claims_host(user, each) for each in hosts)]
    claimants = claimants or [user for user in users if any(claim.host in hosts for claim in user.routes)]
    if not claimants:
        return HostOwnership(host, None)
    owner = claimants[0].identity
    ranks = _rank(hosts, owner, claimants, sharing)
    partners = frozenset(_partners(tenant_of(owner), claimants))
    return HostOwnership(host, owner, ranks, boundaries.host_sharing == "paths", partners)


def claims_host(fragment: Fragment, host: str) -> bool:
    """Whether an object claims a host. Canaries and certificates alone do not."""
    return (
        host in fragment.hosts
        or any(claim.host == host and not claim.is_alias for claim in fragment.routes)
        or any(claim.host == host and not claim.is_alias for claim in fragment.tls)
    )


def _rank(
    hosts: Collection[str], owner: Identity, claimants: Iterable[Fragment], sharing: Sharing
) -> dict[Tenant, int]:
    by_tenant: dict[Tenant, list[Fragment]] = defaultdict(list)
    for fragment in claimants:
        by_tenant[tenant_of(fragment.identity)].append(fragment)
    home = tenant_of(owner)
    own = {home, *(_allowed(home, name) for fragment in by_tenant[home] for name in fragment.shares_hosts_with)}
    own |= {tenant for tenant, theirs in by_tenant.items() if _is_joined(hosts, home, tenant, theirs, sharing)}
    ranks: dict[Tenant, int] = dict.fromkeys(own, 0)
    guests = (tenant for tenant in by_tenant if tenant not in own)
    return ranks | {tenant: rank for rank, tenant in enumerate(guests, 1)}


def _partners(home: Tenant, claimants: Iterable[Fragment]) -> Iterator[tuple[Tenant, str]]:
    """Yield whose objects of which group are the owner's own: a Gateway lets routes of other namespaces in."""
    for fragment in claimants:
        if tenant_of(fragment.identity) == home:
            group = fragment.identity.ref.group
            yield from ((_allowed(home, name), group) for name in fragment.shares_routes_with)


def _allowed(home: Tenant, name: str) -> Tenant:
    cluster, _, namespace = name.rpartition("/")
    return Tenant(cluster or home.cluster, namespace)


def _is_joined(
    hosts: Collection[str], home: Tenant, tenant: Tenant, theirs: Iterable[Fragment], sharing: Sharing
) -> bool:
    """Whether a namespace of the same name in another cluster shares a Service of its routes with the owner's."""
    if tenant.namespace != home.namespace:
        return False
    both = {home.cluster, tenant.cluster}
    backends = (
        backend.upstream
        for fragment in theirs
        for claim in fragment.routes
        if claim.host in hosts
        for backend in claim.route.backends
    )
    # The upstreams of an object that is only proposed may not be known yet; those of its namesake are shared by both.
    return any(
        both.issubset(sharing.get(key) or sharing.get(f"{home.cluster}/{key.partition('/')[2]}", ()))
        for key in backends
    )


class Admitted(NamedTuple):
    """A route that may be served, as far as the owner of its host goes."""

    rank: int
    position: int
    """Of its object among those that have to do with the host, the oldest first."""
    claim: RouteClaim
    identity: Identity


def admit(
    ownership: HostOwnership, claims: Iterable[Admitted], elsewhere: Iterable[Admitted] = ()
) -> Iterator[Admitted | tuple[Identity, Problem]]:
    """Yield the claims that a host's owner leaves to each, or why they are refused; those of lower ranks go first.

    Claims `elsewhere`, for the same host on other listeners, take their paths here too.
    """
    if ownership.owner is None:
        yield from claims
        return
    by_rank: dict[int, list[Admitted]] = defaultdict(list)
    for admitted in claims:
        by_rank[admitted.rank].append(admitted)
    taken_elsewhere: dict[int, list[Route]] = defaultdict(list)
    for admitted in elsewhere:
        if not admitted.claim.is_rest:
            taken_elsewhere[admitted.rank].append(admitted.claim.route)
    taken = TakenPaths()
    for rank in sorted(by_rank.keys() | taken_elsewhere.keys()):
        allowed: list[Route] = taken_elsewhere[rank]
        for admitted in by_rank[rank]:
            rival = taken.rival(admitted.claim.route) if rank and ownership.has_paths else None
            if rank and (rival is not None or not ownership.has_paths):
                yield admitted.identity, _refuse_route(ownership, admitted, rival)
            else:
                if not admitted.claim.is_rest:
                    allowed.append(admitted.claim.route)
                yield admitted
        for route in allowed:
            taken.add(route)


def _refuse_route(ownership: HostOwnership, admitted: Admitted, rival: Route | None) -> Problem:
    claim, path = admitted.claim, admitted.claim.route.path
    why = "it is not shared with other namespaces (host_sharing: namespace)"
    if rival is not None:
        source = rival.provenance
        why = (
            f"{path.type} path {path.value} would take requests from {rival.path.type} path {rival.path.value} of "
            f"{source.kind} {source.namespace}/{source.name} in cluster {source.cluster} ({source.rule})"
        )
    return ownership.refuse(admitted.identity, claim.field, path.value, why, Severity.ERROR)
