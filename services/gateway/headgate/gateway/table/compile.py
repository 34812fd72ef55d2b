"""From virtual hosts to what requests use.

What is compiled is immutable: a request keeps the route that it was matched to, whatever is swapped in meanwhile.
Routes refer to upstreams through holders, so an endpoint change recompiles one upstream and stores one attribute.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from headgate.common.plugins.errors import PluginFault
from headgate.common.table import Mirror, PathMatch, PluginUse, Route, Unmatched
from headgate.gateway.balancing.backends import BackendSet
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.steps import Steps
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.seam import NeedsBody
from headgate.gateway.table.backends import Holders, MakeHooks, bind_route
from headgate.gateway.table.chunks import STEP_BYTES, FindPrevious
from headgate.gateway.table.conditions import and_body
from headgate.gateway.table.encoded.host import PlainHost, decode_route, read_plain_host, split_host
from headgate.gateway.table.match import (
    Index,
    PathRule,
    RankedIndex,
    Strength,
    compile_rule,
    index_paths,
    literal_rule,
)
from headgate.gateway.table.route import CompiledRoute

if TYPE_CHECKING:
    from headgate.gateway.proxy.hooks import RequestHooks
    from headgate.gateway.proxy.request_source import RequestSource
    from headgate.gateway.tls.policy import ClientGuard, HostTls, TlsPolicies

_log = logging.getLogger(__name__)


_PLUGINS_COST = 8
"""A byte of a route with plugins takes so much longer to compile: it may be a part of a pattern."""
_KNOWN_BYTES = 50
"""What a route that did not change costs."""


def no_plugins(
    uses: Sequence[PluginUse],
    scope: str,
    path: PathMatch | None,
    owner: str,
    mirrors: Sequence[Mirror] = (),
    among: BackendSet | None = None,
    *,
    of_backend: bool = False,
) -> "Steps[RequestHooks | None]":
    """Stand in where routes are compiled without plugins."""
    yield from ()
    return None


class CompiledHost:
    """The routes of one host on some listeners."""

    __slots__ = ("_guarded", "_index", "_parts", "_rules", "competes", "key", "match", "routes", "tls", "unmatched")

    def __init__(
        self,
        key: str,
        routes: Sequence[tuple[PathRule, CompiledRoute]],
        index: Index[CompiledRoute],
        tls: "HostTls | None" = None,
        *,
        unmatched: Unmatched = "404",
        parts: "Sequence[CompiledHost]" = (),
    ) -> None:
        self.key = key
        """Of the virtual host."""
        self._parts = parts
        self.routes = routes
        """In the order of `VirtualHost.routes`, each with how it matches."""
        self._index = index
        self._rules: Mapping[CompiledRoute, PathRule] | None = None
        self.match = index.match
        """Finds the route of a request by its path and what else routes look at."""
        self.tls = tls
        """For connections whose server name is this host; None: the gateway's own policy."""
        self.unmatched = unmatched
        """As in `VirtualHost`."""
        self.competes = unmatched == "next-host" and any(rule.rank.priority for rule, _ in routes)
        """Whether routes of the next hosts may go before its own, by their priority."""
        self._guarded: WeakKeyDictionary[CompiledRoute, CompiledRoute] | None = None
        """Routes of other hosts that it guards; None: it was asked for none yet."""

    @property
    def parts(self) -> "Sequence[CompiledHost]":
        """The virtual hosts that it was made of, where several have one host on one listener; else itself."""
        return self._parts or (self,)

    def strength(self, found: "CompiledRoute | NeedsBody", path: bytes, source: "RequestSource") -> Strength:
        """Return the sort key of what `match` has just found for a request, among routes of any hosts."""
        rules = self._rules
        if rules is None:
            rules = self._rules = {route: rule for rule, route in self.routes}
        if isinstance(found, NeedsBody):
            assert isinstance(self._index, RankedIndex), "no other index has conditions"
            found = self._index.undecided(path, source)
        return rules[found].strength

    def guard(self, route: CompiledRoute) -> CompiledRoute:
        """Return another host's route for a request of this one, which asks the same of clients' certificates as ever.

        Else whoever is refused by this host's routes would be let in by those of the hosts after it.
        """
        guard = self.tls.guard if self.tls is not None else None
        if guard is None:
            return route
        known = self._guarded
        if known is None:
            known = self._guarded = WeakKeyDictionary()
        guarded = known.get(route)
        if guarded is None:
            guarded = known[route] = route.guarded(guard)
        return guarded


def compile_host(
    raw: bytes,
    find_previous: FindPrevious[CompiledHost],
    holders: Holders,
    policies: "TlsPolicies",
    make_hooks: "MakeHooks",
) -> Steps[tuple[str, CompiledHost]]:
    """Compile an encoded virtual host in steps; a host may have thousands of routes, of which one changed.

    Routes that did not change, byte for byte, keep their compiled object, if the host's TLS policy did not either.

    Raises:
        DecodeError: it does not follow the contract.
    """
    plain = read_plain_host(raw) if len(raw) <= STEP_BYTES else None
    if plain is not None and find_previous(plain.key) is None:
        return plain.key, (yield from _compile_plain(plain, holders))
    fields, raw_routes = split_host(raw)
    host, tls = fields.key, policies.compile(fields.tls, fields.host)
    guard = tls.guard if tls is not None else None
    previous = find_previous(host)
    known: dict[bytes, tuple[PathRule, CompiledRoute]] = {}
    if previous and previous.compiled.tls is tls:
        known = dict(zip(split_host(previous.raw)[1], previous.compiled.routes, strict=True))
    routes: list[tuple[PathRule, CompiledRoute]] = []
    size = 0
    for raw_route in raw_routes:
        bound = known.get(raw_route)
        if bound is None:
            decoded = decode_route(raw_route)
            bound = yield from compile_route(host, decoded, holders, guard, make_hooks)
            size += len(raw_route) * (_PLUGINS_COST if decoded.plugins else 1)
        else:
            size += _KNOWN_BYTES
        rule, route = bound
        routes.append((rule._replace(position=len(routes)), route))
        if size > STEP_BYTES:
            size = 0
            yield
    index = yield from index_paths(routes)
    return host, CompiledHost(host, routes, index, tls, unmatched=fields.unmatched)


def _compile_plain(host: PlainHost, holders: Holders) -> Steps[CompiledHost]:
    """Compile a host all of whose routes are plain: to what they would be by way of their models."""
    routes = [
        (
            literal_rule(route.type, route.path, position),
            CompiledRoute.to_upstream(host.key, route.name, holders.holder(route.upstream)),
        )
        for position, route in enumerate(host.routes)
    ]
    index = yield from index_paths(routes)
    return CompiledHost(host.key, routes, index, unmatched=host.unmatched)


def merge_hosts(parts: Sequence[CompiledHost]) -> Steps[CompiledHost]:
    """Return several virtual hosts of one host as one, in steps: the first that has a TLS policy says which, and for
    the routes of those that have none.
    """
    tls = next((part.tls for part in parts if part.tls is not None), None)
    guard = tls.guard if tls is not None else None
    routes: list[tuple[PathRule, CompiledRoute]] = []
    for part in parts:
        for rule, route in part.routes:
            guarded = route if guard is None or part.tls is not None else route.guarded(guard)
            routes.append((rule._replace(position=len(routes)), guarded))
        yield
    index = yield from index_paths(routes)
    unmatched: Unmatched = "404" if any(part.unmatched == "404" for part in parts) else "next-host"
    return CompiledHost(parts[0].key, routes, index, tls, unmatched=unmatched, parts=parts)


def compile_changed(
    raw: bytes,
    compiled: CompiledHost,
    change: Callable[[Route], Route],
    holders: Holders,
    make_hooks: "MakeHooks",
) -> Steps[dict[str, CompiledRoute]]:
    """Compile those routes of a host that a change makes others, in steps; return them by their names."""
    found: dict[str, CompiledRoute] = {}
    guard = compiled.tls.guard if compiled.tls is not None else None
    for raw_route in split_host(raw)[1]:
        route = decode_route(raw_route)
        changed = change(route)
        if changed is not route:
            _, other = yield from compile_route(compiled.key, changed, holders, guard, make_hooks)
            found[other.name] = other
            yield
    return found


def compile_route(
    host: str, route: Route, holders: Holders, guard: "ClientGuard | None", make_hooks: "MakeHooks"
) -> Steps[tuple[PathRule, CompiledRoute]]:
    """Bind a route to the holders of its upstreams, in steps if it has large plugins; return it with how it matches."""
    rule = compile_rule(route)
    fault = rule.fault
    if not fault:
        scope, hooks = f"{host}|{route.name}", None
        try:
            backends = yield from bind_route(route, holders, make_hooks, scope)
            if route.plugins or route.mirrors or backends.needs_hooks:
                among = backends.among if backends.needs_hooks else None
                owner = route.provenance.owner
                hooks = yield from make_hooks(route.plugins, scope, route.path, owner, route.mirrors, among)
            compiled = CompiledRoute(host, route, backends, guard, hooks)
        except (BadMatch, PluginRefused, PluginFault) as bad:
            # Which requests it takes is certain, so that it keeps its rank.
            fault = str(bad)
        else:
            if compiled.needs_body:
                rule = rule._replace(condition=and_body(rule.condition))
            return rule, compiled
    return rule, _broken_route(host, route, fault, guard)


def _broken_route(host: str, route: Route, fault: str, guard: "ClientGuard | None") -> CompiledRoute:
    """Return what answers the requests of a route that cannot be compiled, with an error that says so."""
    inert = {"backends": (), "canaries": (), "plugins": (), "mirrors": (), "stickiness": None}
    broken = CompiledRoute(host, route.model_copy(update=inert), client_guard=guard)
    policies = broken.policies = RoutePolicies()
    policies.fault = f"{route.provenance}: route {route.name}: {fault}"
    _log.error("a route of %s cannot be served: %s", host, policies.fault)
    return broken
