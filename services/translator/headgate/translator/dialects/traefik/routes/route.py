"""One IngressRoute to one fragment.

A route of the object becomes a route of the table for each host and path that its rule may be about. What cannot be
followed answers 503 and is reported on the object: a route never vanishes, and its requests are never another's.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import Backend, Provenance, Rank, Route, TlsPolicy
from headgate.common.table.tracing import Tracing
from headgate.translator.dialects.traefik.middlewares.following import follow_middlewares, in_order
from headgate.translator.dialects.traefik.middlewares.making import Made
from headgate.translator.dialects.traefik.models.route import Observability, RouteRule, RouteSettings
from headgate.translator.dialects.traefik.routes.entry_points import spots_of
from headgate.translator.dialects.traefik.routes.on_spot import OnSpot, on_spot
from headgate.translator.dialects.traefik.routes.tls import claim_default_tls, claim_names, claim_tls, read_options
from headgate.translator.dialects.traefik.rules import Alternative, RuleError, alternatives, parse_rule
from headgate.translator.dialects.traefik.services.backends import RouteBackends, read_backends
from headgate.translator.dialects.traefik.tls.options import NOBODY
from headgate.translator.dialects.traefik.tls.resolvers import claim_resolved
from headgate.translator.fragments.fragment import BackendUse, Fragment, RouteClaim
from headgate.translator.fragments.route_cost import MAX_COST, TOO_COSTLY, route_cost
from headgate.translator.fragments.spots import Spot
from headgate.translator.fragments.upstream_refs import RefusalRef
from headgate.translator.manifests.patches import all_of
from headgate.translator.manifests.specs import Part, Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.world.graph import Lookups

KIND = "IngressRoute"
MAX_ROUTES = 10_000
"""Routes of the table that one object may make."""
_DIGEST = 10
_NOOP = "noop@internal"
"""Service of a route whose requests a middleware answers."""


class _Matched(NamedTuple):
    """A route of the object whose rule could be read."""

    rule: RouteRule
    field: str
    name: str
    """Unique within the object."""
    places: tuple[Alternative, ...]
    priority: int


class _Served(NamedTuple):
    """What becomes of the requests of a route."""

    made: Made
    """Of its middlewares."""
    backends: RouteBackends
    is_refused: bool = False


def translate_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what an IngressRoute that is ours contributes."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    settings = spec.rest(RouteSettings, "routes")
    rules = spec.each("routes", RouteRule)
    if settings is None:
        return Fragment(identify(ref, manifest), problems=tuple(problems))
    points, has_tls = lookups.settings.entry_points, settings.tls is not None
    spots = spots_of(settings.entry_points, points, has_tls=has_tls, problems=problems)
    policy = read_options(settings.tls, ref, lookups, problems) if settings.tls is not None else None
    fault = _fault_of(settings, policy, problems)
    matched = list(_within_bounds(_matched(rules, lookups, problems), problems))
    served = [_serve(ref, one, fault, lookups, problems) for one in matched]
    of_spots = [on_spot(spot, ref, KIND, lookups, problems) for spot in spots]
    claims = [
        claim
        for spot, before in zip(spots, of_spots, strict=True)
        for one, how in zip(matched, served, strict=True)
        for claim in _claims(ref, one, _behind(before, how), spot)
    ]
    hosts = {place.host for one in matched for place in one.places}
    names = claim_names(settings.tls, hosts, ref, lookups, problems) if settings.tls is not None else ()
    if settings.tls is not None and not settings.tls.secret_name:
        of_rules = [{place.host for place in one.places} for one in matched]
        names = claim_resolved(settings.tls.cert_resolver, settings.tls.domains, of_rules, lookups, problems)
    tls = claim_tls(policy, hosts, spots, problems) if policy is not None else ()
    if settings.tls is None:
        tls = tuple(claim for spot in spots for claim in claim_default_tls(spot, hosts, lookups, problems))
    return Fragment(
        identity=identify(ref, manifest),
        hosts=tuple(dict.fromkeys(claim.host for claim in claims)),
        routes=tuple(claims),
        backends=(
            *(use for how in served for use in (*how.backends.uses, *how.made.uses)),
            *(use for before in of_spots for use in before.uses),
        ),
        entries=tuple(group for how in served for group in how.backends.groups),
        names=names,
        tls=tls,
        problems=tuple(dict.fromkeys(problems)),
        unmatched="next-host",
        inherits_tls=True,
    )


def _fault_of(settings: RouteSettings, policy: TlsPolicy | None, problems: list[Problem]) -> str:
    """Return why no route of the object can be followed; empty if they can."""
    fault = ""
    if settings.parent_refs:
        fault = "IngressRoutes below others are not served: write their rules into one"
        problems.append(refuse("UnsupportedField", "spec.parentRefs", fault))
    if policy == NOBODY:
        fault = "its TLSOption cannot be followed, and may keep clients out"
    return fault


# Rules


def _matched(rules: Sequence[Part[RouteRule]], lookups: Lookups, problems: list[Problem]) -> Iterator[_Matched]:
    """Yield the routes whose rules can be read; of several with one rule each has a name of its own."""
    seen: dict[str, list[str]] = {}
    for rule, field in rules:
        try:
            if rule.syntax not in ("", "v2", "v3"):
                raise ValueError(f"the syntax must be v2 or v3, but is {rule.syntax[:40]!r}")
            syntax = rule.syntax or lookups.settings.traefik.default_rule_syntax
            parsed = parse_rule(rule.match, "v2" if syntax == "v2" else "v3")
            places, priority = alternatives(parsed), parsed.priority(rule.priority)
        except (RuleError, ValueError) as error:
            problems.append(refuse("InvalidRule", f"{field}.match", str(error), rule.match))
            continue
        alike = seen.setdefault(rule.match, [])
        if alike:
            message = f"{alike[0]} has the same rule: the one of higher priority is served, else the first"
            problems.append(warn("ShadowedRoute", f"{field}.match", message, rule.match))
        alike.append(field)
        if not places:
            problems.append(warn("InvalidRule", f"{field}.match", "no request satisfies this rule", rule.match))
        digest = hashlib.sha256(rule.match.encode()).hexdigest()[:_DIGEST]
        yield _Matched(rule, field, digest if len(alike) == 1 else f"{digest}-{len(alike)}", places, priority)


def _within_bounds(matched: Iterator[_Matched], problems: list[Problem]) -> Iterator[_Matched]:
    """Yield the routes that an object may have, and tell of the others."""
    left, cost_left = MAX_ROUTES, MAX_COST
    for one in matched:
        cost = sum(route_cost(place.when, ()) for place in one.places)
        if len(one.places) > left or cost > cost_left:
            message = f"asks for {len(one.places)} combinations of hosts and paths, which {TOO_COSTLY}"
            problems.append(refuse("TooMuchWork", f"{one.field}.match", message))
            continue
        left, cost_left = left - len(one.places), cost_left - cost
        yield one


# Requests


def _serve(ref: ObjectRef, one: _Matched, fault: str, lookups: Lookups, problems: list[Problem]) -> _Served:
    own: list[Problem] = []
    rule, field = one.rule, one.field
    made = follow_middlewares(rule.middlewares, ref.namespace, f"{field}.middlewares", lookups, own)
    if not rule.services:
        own.append(refuse("NoBackends", f"{field}.services", "must have a service"))
    is_answered = [service.name for service in rule.services] == [_NOOP]
    backends = (
        RouteBackends(())
        if is_answered
        else read_backends(rule.services, ref, one.name, f"{field}.services", lookups, own)
    )
    problems += own
    if not fault and made is not None and backends is not None and rule.services:
        return _Served(made, backends)
    why = fault or next((str(problem) for problem in own), "")
    reason = f"{KIND} {ref.namespace}/{ref.name} refuses requests of {field}: {why}"
    refusal = RefusalRef(ref.cluster, KIND, ref.namespace, f"{ref.name}/{one.name}", reason)
    refused = RouteBackends((Backend(upstream=refusal.key),), uses=(BackendUse(refusal, field, field),))
    return _Served(Made(), refused, is_refused=True)


def _behind(before: OnSpot, served: _Served) -> _Served:
    """Return what becomes of requests where all routes have middlewares before their own."""
    if served.is_refused or before == OnSpot():
        return served
    if before.refusal is not None:
        return _Served(Made(), RouteBackends((Backend(upstream=before.refusal.key),)), is_refused=True)
    return served._replace(made=in_order(before.made.before(served.made)))


# Claims


def _claims(ref: ObjectRef, one: _Matched, served: _Served, spot: Spot) -> Iterator[RouteClaim]:
    """Yield the routes of the table, one for each host and path."""
    common: dict[str, Any] = {
        "rank": Rank(priority=one.priority),
        "backends": served.backends.backends,
        "stickiness": served.backends.stickiness,
        "plugins": served.made.plugins,
        **served.made.route.fields,
        "provenance": Provenance(
            cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name, rule=one.field
        ),
        **_observed(one.rule.observability),
    }
    common["keeps_body"] = max(common.get("keeps_body", 0), served.backends.keeps_body)
    name = f"{ref.cluster}/{ref.namespace}/{ref.name} {one.name}"
    for index, place in enumerate(one.places):
        when = all_of(part for part in (place.when, spot.only) if part is not None)
        route = Route(name=f"{name}/{index}" if index else name, path=place.path, when=when, **common)
        yield RouteClaim(spot.key(place.host), route, f"{one.field}.match", is_refused=served.is_refused)


def _observed(written: Observability | None) -> dict[str, Any]:
    """Return what is said of access log and traces."""
    said: dict[str, Any] = {}
    if written is not None and written.access_logs is False:
        said["access_log_share"] = 0.0
    if written is not None and written.tracing is False:
        said["tracing"] = Tracing(share=0.0, heeds_parent=False)
    return said
