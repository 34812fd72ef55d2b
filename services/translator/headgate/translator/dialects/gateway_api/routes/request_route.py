"""One route of requests, an HTTPRoute or a GRPCRoute, to one fragment.

A match of a rule becomes a route of the table for each hostname that the route and its listeners have in common. What
cannot be followed is reported, and its requests are refused: they are never another route's. Only a rule that cannot be
read at all, as no API server with Gateway API's definitions would take it, is left out.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.common.table import Backend, BackendGroup, PluginUse, Provenance, Retries, Route, Stickiness, Timeouts
from headgate.translator.dialects.gateway_api.gateways.client_certificate import certificate_of
from headgate.translator.dialects.gateway_api.gateways.parameters import parameters_of
from headgate.translator.dialects.gateway_api.models.route import RouteRule, RouteSettings, WeightedBackend
from headgate.translator.dialects.gateway_api.routes.backends import (
    NO_SERVICE,
    Destination,
    OnTheWay,
    RuleBackends,
    find_backends,
)
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.dialects.gateway_api.routes.extensions import ASKS_FOR_CONSUMERS, held_to
from headgate.translator.dialects.gateway_api.routes.filters import Filters, read_filters
from headgate.translator.dialects.gateway_api.routes.matching import MatchedRequests
from headgate.translator.dialects.gateway_api.routes.places import PlacedHost, Places, find_places
from headgate.translator.dialects.gateway_api.routes.policies import asked_besides, policy_of
from headgate.translator.dialects.gateway_api.routes.redirects import Origin
from headgate.translator.dialects.gateway_api.routes.sending import (
    retries_of,
    stickiness_of,
    timeouts_of,
    unfollowed,
)
from headgate.translator.dialects.gateway_api.routes.standing import is_about_references, status_parts
from headgate.translator.dialects.gateway_api.stored import read_facts
from headgate.translator.fragments.fragment import BackendUse, Fragment, RouteClaim
from headgate.translator.fragments.route_cost import MAX_COST, TOO_COSTLY, route_cost
from headgate.translator.fragments.upstream_refs import RefusalRef
from headgate.translator.manifests.specs import Part, Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.sources.policies import NO_ROUTE_POLICY, RoutePolicy

MAX_ROUTES: Final = 10_000
"""Routes of the table that one object may make."""
_ANYWHERE: Final = Origin("http", 80)


class _WayTo(NamedTuple):
    """Filters of a backend, and the prefix that they may replace."""

    filters: Filters
    prefix: str | None


class _Served(NamedTuple):
    """What becomes of the requests of a rule."""

    filters: Filters
    backends: tuple[Backend, ...]
    uses: tuple[BackendUse, ...]
    timeouts: Timeouts = Timeouts()
    retries: Retries = Retries()
    stickiness: Stickiness | None = None
    plugins: tuple[PluginUse, ...] = ()
    """Besides those of filters."""
    redirecting: Mapping[int, _WayTo] = {}
    """Backends, by their place, whose plugins depend on the listener where a client comes from."""
    groups: tuple[BackendGroup, ...] = ()
    is_refused: bool = False

    @property
    def depends_on_origin(self) -> bool:
        """Whether it depends on the listener what becomes of a request."""
        return self.filters.depends_on_origin or bool(self.redirecting)

    def backends_for(self, origin: Origin | None) -> tuple[Backend, ...]:
        """Return the backends for clients of a listener."""
        if origin is None or not self.redirecting:
            return self.backends
        return tuple(
            one.model_copy(update={"plugins": way.filters.plugins(way.prefix, origin)}) if way is not None else one
            for one, way in ((one, self.redirecting.get(index)) for index, one in enumerate(self.backends))
        )


class ReadRule(NamedTuple):
    """A rule of either kind, and the requests that it is for."""

    part: Part[RouteRule]
    matches: tuple[MatchedRequests, ...]


ReadRules = Callable[[Spec, list[Problem]], Iterator[ReadRule]]
"""Reads the rules of a route."""


class _Rule(NamedTuple):
    """A rule, followed."""

    part: Part[RouteRule]
    name: str
    matches: tuple[MatchedRequests, ...]
    served: _Served
    policy: RoutePolicy = NO_ROUTE_POLICY


def translate_request_route(manifest: JsonObject, context: RouteContext, read_rules: ReadRules) -> Fragment:
    """Return what a route that is ours contributes."""
    ref, lookups = context.ref, context.lookups
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    settings = spec.rest(RouteSettings, "rules")
    facts = read_facts({**manifest, "metadata": {"namespace": ref.namespace, "name": ref.name}}, context.kind)
    if not lookups.is_assumed:
        gateways = (parameters_of(lookups, each.ref.namespace, each.ref.name) for each in facts.parents)
        parameters = next((target for each in gateways for target in each.named), None)
        context = context._replace(shown=certificate_of(facts, lookups, problems), parameters=parameters)
    read = list(read_rules(spec, problems))
    names = _names([each.part.value for each in read])
    rules = [_follow(name, each, context, problems) for name, each in zip(names, read, strict=True)]
    identity = identify(ref, manifest)
    if lookups.is_assumed:
        return Fragment(identity, problems=tuple(dict.fromkeys(problems)))
    if settings is not None and settings.use_default_gateways:
        problems.append(warn("UnsupportedField", "spec.useDefaultGateways", "name the Gateway in parentRefs"))
    places = find_places(facts, lookups, problems)
    # Without its hostnames a route would take requests of all hosts.
    claims = tuple(_within_bounds(context, rules, places, problems)) if settings is not None else ()
    return Fragment(
        identity,
        hosts=tuple(dict.fromkeys(claim.host for claim in claims)),
        routes=claims,
        backends=tuple(dict.fromkeys(use for rule in rules for use in rule.served.uses)) if claims else (),
        entries=tuple(group for rule in rules for group in rule.served.groups) if claims else (),
        problems=tuple(dict.fromkeys(problems)),
        unmatched="next-host",
        inherits_tls=True,
        parts=tuple(status_parts(facts, places.refused, problems)),
        shares_routes_with=places.namespaces,
    )


# Rules


def _names(rules: Sequence[RouteRule]) -> list[str]:
    """Return a name for each rule, unique within the object: its own, so that it stays the same when rules move."""
    named = Counter(rule.name for rule in rules)
    return [rule.name if rule.name and named[rule.name] == 1 else f"#{index}" for index, rule in enumerate(rules)]


def _follow(name: str, read: ReadRule, context: RouteContext, problems: list[Problem]) -> _Rule:
    part, matches = read
    rule, field = part
    policy = NO_ROUTE_POLICY if context.lookups.is_assumed else policy_of(rule, context)
    own: list[Problem] = []
    filters = read_filters(rule.filters, f"{field}.filters", context, own)
    if filters is not None and filters.replaces_prefix and any(match.prefix is None for match in matches):
        message = "ReplacePrefixMatch needs matches of type PathPrefix in all of the rule"
        own.append(refuse("UnsupportedValue", f"{field}.filters", message))
        filters = None
    ways = [
        _way_to(each, f"{field}.backendRefs[{i}]", matches, context, problems)
        for i, each in enumerate(rule.backend_refs)
    ]
    problems += unfollowed(rule, field)
    problems += own
    if filters is None:
        return _Rule(
            part, name, matches, _refused(context, field, str(own[0]), is_500=is_about_references(own)), policy
        )
    if policy.fault:
        problems.append(warn("PolicyNotFollowed", field, f"{policy.fault}; its status says why; requests are refused"))
        return _Rule(part, name, matches, _refused(context, field, policy.fault), policy)
    destinations = [
        _destination(each, f"{field}.backendRefs[{i}]", way)
        for i, (each, way) in enumerate(zip(rule.backend_refs, ways, strict=True))
    ]
    has_sessions = rule.session_persistence is not None
    backends = find_backends(destinations, context, problems, has_sessions=has_sessions)
    followed = [way.filters for way in ways if way is not None]
    uses = (*filters.uses, *backends.uses, *(use for each in followed for use in each.uses))
    redirecting = {i: way for i, way in enumerate(ways) if way is not None and way.filters.depends_on_origin}
    return _Rule(part, name, matches, _serve(rule, filters, backends, uses, redirecting), policy)


def _serve(
    rule: RouteRule,
    filters: Filters,
    backends: RuleBackends,
    uses: tuple[BackendUse, ...],
    redirecting: Mapping[int, _WayTo],
) -> _Served:
    is_answered = filters.redirect is not None
    return _Served(
        filters,
        () if is_answered else backends.backends,
        uses,
        timeouts_of(rule),
        retries_of(rule, backends.retries),
        stickiness_of(rule.session_persistence),
        () if is_answered or backends.backends else (NO_SERVICE,),
        redirecting,
        backends.groups,
    )


def _refused(context: RouteContext, field: str, why: str, *, is_500: bool = False) -> _Served:
    """Refuse the requests of a rule, with 503 or, as Gateway API has it for what filters name in vain, with 500."""
    ref, kind = context.ref, context.kind
    reason = f"{kind} {ref.namespace}/{ref.name} refuses requests of {field}: {why}"
    refusal = RefusalRef(ref.cluster, kind, ref.namespace, f"{ref.name}/{field}", reason)
    backend = Backend(upstream=refusal.key, plugins=(NO_SERVICE,) if is_500 else ())
    return _Served(Filters(), (backend,), (BackendUse(refusal, field, field),), is_refused=True)


def _way_to(
    written: WeightedBackend,
    field: str,
    matches: Sequence[MatchedRequests],
    context: RouteContext,
    problems: list[Problem],
) -> _WayTo | None:
    """Return the filters of a backend; None if one of them cannot be followed."""
    at = f"{field}.filters"
    filters = read_filters(written.filters, at, context, problems, is_of_backend=True)
    prefixes = {match.prefix for match in matches}
    prefix = next(iter(prefixes)) if len(prefixes) == 1 else None
    if filters is not None and filters.replaces_prefix and prefix is None:
        message = "ReplacePrefixMatch of a backend needs one match of type PathPrefix in the rule"
        problems.append(refuse("UnsupportedValue", at, message))
        return None
    return None if filters is None else _WayTo(filters, prefix)


def _destination(written: WeightedBackend, field: str, way: _WayTo | None) -> Destination:
    if way is None:
        return Destination(written, written.weight, field, is_refused=True)
    passed = OnTheWay(way.filters.plugins(way.prefix), way.filters.mirrors)
    return Destination(written, written.weight, field, passed)


# Claims


def _within_bounds(
    context: RouteContext, rules: Sequence[_Rule], places: Places, problems: list[Problem]
) -> Iterator[RouteClaim]:
    """Yield the routes that an object may have; a rule that asks for too many is left out and told."""
    left, cost_left = MAX_ROUTES, MAX_COST
    for rule in rules:
        uses = (*rule.served.filters.extensions, *(use for each in places.plugins.values() for use in each))
        by_gateway = any(use.name in ASKS_FOR_CONSUMERS for use in uses)
        hosts = tuple(places.hosts_of(by_origin=rule.served.depends_on_origin, by_gateway=by_gateway))
        count = len(hosts) * len(rule.matches)
        cost = sum(
            route_cost(asked_besides(each, rule.policy).when, rule.served.filters.plugins(each.prefix, _ANYWHERE))
            for each in rule.matches
        )
        if count > left or cost * len(hosts) > cost_left:
            message = f"asks for {count} combinations of hosts and matches, which {TOO_COSTLY}"
            problems.append(refuse("TooMuchWork", f"{rule.part.field}.matches", message))
            continue
        left, cost_left = left - count, cost_left - cost * len(hosts)
        yield from _claims(context, rule, hosts)


def _claims(context: RouteContext, rule: _Rule, hosts: Sequence[PlacedHost]) -> Iterator[RouteClaim]:
    """Yield the routes of the table, one for each match and host."""
    served, field, (ref, kind, *_) = rule.served, rule.part.field, context
    common: Mapping[str, Any] = {
        "mirrors": served.filters.mirrors,
        "timeouts": served.timeouts,
        "retries": served.retries,
        "stickiness": served.stickiness,
        "provenance": Provenance(cluster=ref.cluster, kind=kind, namespace=ref.namespace, name=ref.name, rule=field),
    }
    prefix = "grpc:" if context.is_grpc else ""
    name = f"{ref.cluster}/{ref.namespace}/{prefix}{ref.name} {rule.name}"
    for host in hosts:
        gateways = tuple(f"{ref.cluster}/{each}" for each in host.gateways)
        backends = served.backends_for(host.origin)
        guard = () if host.others is None else (host.others.refusal(),)
        for match in (asked_besides(each, rule.policy) for each in rule.matches):
            plugins = served.filters.plugins(match.prefix, host.origin)
            route = Route(
                name=f"{name}/{match.name}",
                path=match.path,
                backends=backends,
                when=match.when,
                rank=match.rank.model_copy(update={"priority": host.precedence}) if host.precedence else match.rank,
                plugins=held_to((*guard, *host.plugins, *plugins, *served.plugins), gateways),
                **common,
            )
            yield RouteClaim(host.key, route, match.field, is_refused=served.is_refused)
