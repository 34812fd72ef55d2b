"""HTTPRoutes and GRPCRoutes at one listener whose hostnames have hosts in common: the older one alone is accepted.

So Gateway API has it, as calls are requests too. What a route loses is one listener of one parent; elsewhere it stays.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.common.resources import GRPC_ROUTE, HTTP_ROUTE
from headgate.translator.dialects.gateway_api.attachment import attach
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener
from headgate.translator.dialects.gateway_api.hostnames import EVERY_HOST
from headgate.translator.dialects.gateway_api.stored import BY_PARENT, ROUTES, RouteFacts, StoredRoute
from headgate.translator.fragments.fragment import Seniority
from headgate.translator.objects.targets import seniority_of
from headgate.translator.world.graph import Lookups

_WILDCARD = "*."


class RouteName(NamedTuple):
    """A route of one of the two kinds."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, facts: RouteFacts) -> "RouteName":
        """Return the name of a route."""
        return cls(facts.kind, facts.namespace, facts.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


Lost = Mapping[tuple[RouteName, str], RouteName]
"""By a route and the name of a listener: the older route that has its hosts there."""


class _Claim(NamedTuple):
    seniority: Seniority
    route: RouteName
    hosts: tuple[str, ...]


class _Hosts:
    """Hostnames, and which of them have hosts in common with another one; each is asked in time of its labels."""

    def __init__(self) -> None:
        self._owners: dict[str, RouteName] = {}
        self._below: dict[str, RouteName] = {}
        """By domain: owner of some hostname below it."""

    def add(self, hostname: str, owner: RouteName) -> None:
        self._owners.setdefault(hostname, owner)
        domain = hostname.removeprefix(_WILDCARD) if hostname.startswith(_WILDCARD) else hostname.partition(".")[2]
        self._below.setdefault("", owner)
        while domain:
            self._below.setdefault(domain, owner)
            domain = domain.partition(".")[2]

    def find(self, hostname: str) -> RouteName | None:
        """Return the owner of a hostname with hosts in common."""
        if found := self._owners.get(hostname) or self._owners.get(EVERY_HOST):
            return found
        is_several = hostname == EVERY_HOST or hostname.startswith(_WILDCARD)
        if is_several and (found := self._below.get(hostname.removeprefix(_WILDCARD))):
            return found
        domain = hostname.removeprefix(_WILDCARD).partition(".")[2]
        while domain:
            if found := self._owners.get(f"{_WILDCARD}{domain}"):
                return found
            domain = domain.partition(".")[2]
        return None

    def find_any(self, hostnames: Iterable[str]) -> RouteName | None:
        """Return the owner of one that has hosts in common with some of these."""
        return next((found for each in hostnames if (found := self.find(each)) is not None), None)


def lost_of(lookups: Lookups, parent: str, listeners: Sequence[GatewayListener]) -> Lost:
    """Return what routes of a parent lose to older ones of the other kind.

    Args:
        lookups: finds the routes.
        parent: as `parent_key` gives it.
        listeners: of the parent.
    """
    calls = lookups.find(ROUTES[GRPC_ROUTE], BY_PARENT, parent)
    if not calls:
        return {}
    requests = lookups.find(ROUTES[HTTP_ROUTE], BY_PARENT, parent)
    lost: dict[tuple[RouteName, str], RouteName] = {}
    claimed, wanted = _hosts_by_listener(calls, parent, listeners, lookups), {}
    for listener, routes in _hosts_by_listener(requests, parent, listeners, lookups).items():
        if listener in claimed:
            wanted[listener] = routes
    for listener, routes in wanted.items():
        for loser, winner in _judge(claimed[listener], routes):
            lost[loser, listener] = winner
    return lost


_Routes = Sequence[tuple[StoredRoute, tuple[str, ...]]]


def _hosts_by_listener(
    routes: Iterable[StoredRoute], parent: str, listeners: Sequence[GatewayListener], lookups: Lookups
) -> dict[str, list[tuple[StoredRoute, tuple[str, ...]]]]:
    found: dict[str, list[tuple[StoredRoute, tuple[str, ...]]]] = {}
    for route in routes:
        parents = (each for each in route.facts.parents if each.key == parent)
        hosts: dict[str, tuple[str, ...]] = {}
        for each in parents:
            hosts |= attach(route.facts, each, listeners, lookups).hosts
        for listener, names in hosts.items():
            found.setdefault(listener, []).append((route, names))
    return found


def _judge(calls: _Routes, requests: _Routes) -> Iterable[tuple[RouteName, RouteName]]:
    """Yield the losers at a listener, each with the winner. Only those that have rivals are put in order."""
    of_calls = _Hosts()
    for route, hosts in calls:
        for each in hosts:
            of_calls.add(each, RouteName.of(route.facts))
    rivals = [(route, hosts) for route, hosts in requests if of_calls.find_any(hosts) is not None]
    accepted = {GRPC_ROUTE.kind: _Hosts(), HTTP_ROUTE.kind: _Hosts()}
    others = {GRPC_ROUTE.kind: HTTP_ROUTE.kind, HTTP_ROUTE.kind: GRPC_ROUTE.kind}
    for claim in sorted(_claim(route, hosts) for route, hosts in (*calls, *rivals)) if rivals else ():
        kind = claim.route.kind
        winner = accepted[others[kind]].find_any(claim.hosts)
        if winner is not None:
            yield claim.route, winner
            continue
        for each in claim.hosts:
            accepted[kind].add(each, claim.route)


def _claim(route: StoredRoute, hosts: tuple[str, ...]) -> _Claim:
    return _Claim(seniority_of(route.document.decode()), RouteName.of(route.facts), hosts)
