"""One IngressRoute to one fragment.

A route of the object becomes a route of the table for each host and path that its rule may be about. What cannot be
followed answers 503 and is reported on the object: a route never vanishes, and its requests are never another's.
"""

from collections.abc import Iterator
from typing import Any

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import Provenance, Rank, Route
from headgate.translator.dialects.traefik.models.route import Observability, RouteRule, RouteSettings
from headgate.translator.dialects.traefik.routes.entry_points import spots_of
from headgate.translator.dialects.traefik.routes.layers import find_layer, translate_child
from headgate.translator.dialects.traefik.routes.matched import Matched, read_rules
from headgate.translator.dialects.traefik.routes.observed import observed
from headgate.translator.dialects.traefik.routes.on_spot import on_spot
from headgate.translator.dialects.traefik.routes.serving import KIND, Served, behind, serve
from headgate.translator.dialects.traefik.routes.tls import claim_default_tls, claim_names, claim_tls
from headgate.translator.dialects.traefik.rules import alternatives
from headgate.translator.dialects.traefik.rules.request_tests import keep_semicolons
from headgate.translator.dialects.traefik.tls.following import read_options
from headgate.translator.dialects.traefik.tls.options import NOBODY
from headgate.translator.dialects.traefik.tls.resolvers import claim_resolved
from headgate.translator.fragments.fragment import Fragment, RouteClaim
from headgate.translator.fragments.spots import Spot
from headgate.translator.manifests.patches import all_of
from headgate.translator.manifests.specs import Spec
from headgate.translator.objects.document import identify
from headgate.translator.world.graph import Lookups


def translate_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what an IngressRoute that is ours contributes."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    settings = spec.rest(RouteSettings, "routes")
    rules = spec.each("routes", RouteRule)
    if settings is None:
        return Fragment(identify(ref, manifest), problems=tuple(problems))
    if settings.parent_refs:
        return translate_child(ref, manifest, settings, rules, lookups, problems)
    points, has_tls = lookups.settings.entry_points, settings.tls is not None
    spots = spots_of(settings.entry_points, points, has_tls=has_tls, problems=problems)
    policy = read_options(settings.tls.options, ref, lookups, problems) if settings.tls is not None else None
    fault = "its TLSOption cannot be followed, and may keep clients out" if policy == NOBODY else ""
    matched = read_rules(rules, alternatives, lookups, problems)
    below = find_layer(ref, matched, lookups, problems)
    served = [serve(ref, one, fault, below, lookups, problems) for one in matched]
    of_spots = [on_spot(spot, ref, KIND, lookups, problems) for spot in spots]
    claims = [
        claim
        for spot, before in zip(spots, of_spots, strict=True)
        for one, how in zip(matched, served, strict=True)
        for claim in _claims(ref, one, behind(before, how), spot)
    ]
    hosts = {place.host for one in matched for place in one.places}
    names = claim_names(settings.tls, hosts, ref, lookups, problems) if settings.tls is not None else ()
    if settings.tls is not None and not settings.tls.secret_name:
        of_rules = [{place.host for place in one.places} for one in matched]
        names = claim_resolved(settings.tls.cert_resolver, settings.tls.domains, of_rules, lookups, problems)
    tls = claim_tls(policy, hosts, spots, problems)
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
        entries=(*([] if below is None else [below]), *(group for how in served for group in how.backends.groups)),
        names=names,
        tls=tls,
        problems=tuple(dict.fromkeys(problems)),
        unmatched="next-host",
        inherits_tls=True,
    )


# Claims


def _claims(ref: ObjectRef, one: Matched, served: Served, spot: Spot) -> Iterator[RouteClaim]:
    """Yield the routes of the table, one for each host and path."""
    says = one.rule.observability or Observability()
    common: dict[str, Any] = {
        "rank": Rank(priority=one.priority),
        "backends": served.backends.backends,
        "stickiness": served.backends.stickiness,
        "plugins": served.made.plugins,
        "as_traefik": True,
        **served.made.route.fields,
        "provenance": Provenance(
            cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name, rule=one.field
        ),
        **observed(says.access_logs, says.tracing, spot),
    }
    common["keeps_body"] = max(common.get("keeps_body", 0), served.backends.keeps_body)
    name = f"{ref.cluster}/{ref.namespace}/{ref.name} {one.name}"
    for index, place in enumerate(one.places):
        asked = keep_semicolons(place.when) if spot.keeps_semicolons and place.when is not None else place.when
        when = all_of(part for part in (asked, spot.only) if part is not None)
        route = Route(name=f"{name}/{index}" if index else name, path=place.path, when=when, **common)
        yield RouteClaim(spot.key(place.host), route, f"{one.field}.match", is_refused=served.is_refused)
