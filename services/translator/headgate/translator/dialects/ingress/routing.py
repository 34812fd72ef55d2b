"""Ingresses that are written for Traefik: their routes are as the dialect of Traefik says."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import ANY_HOST, Backend, Route, count_comparisons
from headgate.translator.annotations.traefik import traefik_annotations
from headgate.translator.dialects.ingress.document import class_name
from headgate.translator.dialects.ingress.parse import IMPLEMENTATION_SPECIFIC
from headgate.translator.fragments.fragment import BackendUse, Fragment, RouteClaim, TlsClaim
from headgate.translator.fragments.spots import Spot
from headgate.translator.fragments.upstream_refs import RefusalRef, UpstreamRef
from headgate.translator.manifests.patches import all_of
from headgate.translator.manifests.reading import as_list, as_object, as_text
from headgate.translator.sources.classes import find_class
from headgate.translator.sources.ingress_routing import (
    INGRESS_ROUTING,
    IngressPath,
    IngressRouting,
    PathRouting,
    RoutePlace,
    RoutingQuestion,
)
from headgate.translator.world.graph import Lookups

_CONTROLLER: Final = "traefik.io/ingress-controller"
_ANNOTATIONS: Final = "metadata.annotations"
_AS_WRITTEN: Final = PathRouting((), 0)
"""Of the default backend."""
Routings = tuple[IngressRouting, ...]
"""What becomes of an Ingress, at each spot where it is."""


def ask_routing(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> tuple[JsonObject, Routings]:
    """Return an Ingress as another dialect reads it, and what that says of it; nothing if it is not its own."""
    annotations = traefik_annotations(manifest)
    if not annotations and not _is_of_class(manifest, lookups):
        # One that is checked by itself is perhaps written for it, whatever its class is.
        may_be = lookups.is_assumed and _CONTROLLER in lookups.settings.controller_names
        return _with_path_types(manifest) if may_be else manifest, ()
    question = RoutingQuestion(ref.namespace, tuple(annotations.items()), tuple(_paths(manifest)))
    return _with_path_types(manifest), lookups.attached(INGRESS_ROUTING, question)


def _with_path_types(manifest: JsonObject) -> JsonObject:
    """Return a manifest of which paths without a type have the one that Traefik takes them for."""
    spec = as_object(manifest.get("spec"))
    rules = spec.get("rules")
    if not isinstance(rules, list):
        return manifest
    return {**manifest, "spec": {**spec, "rules": list(map(_with_types_of_rule, rules))}}


def _with_types_of_rule(rule: Any) -> Any:
    paths = as_object(as_object(rule).get("http")).get("paths")
    if not isinstance(paths, list) or all(not isinstance(path, dict) or path.get("pathType") for path in paths):
        return rule
    typed = [
        {**path, "pathType": IMPLEMENTATION_SPECIFIC} if isinstance(path, dict) and _is_untyped(path) else path
        for path in paths
    ]
    return {**rule, "http": {**rule["http"], "paths": typed}}


def _is_untyped(path: JsonObject) -> bool:
    return path.get("pathType") in (None, "")


def upstreams_of(routings: Routings) -> Mapping[str, UpstreamRef]:
    """Return the upstreams of paths by the fields of their backends."""
    paths = routings[0].paths if routings else {}
    return {f"{field}.backend.service": path.upstream for field, path in paths.items() if path.upstream is not None}


def _is_of_class(manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether its class is Traefik's, which has to be adopted."""
    if _CONTROLLER not in lookups.settings.controller_names or lookups.is_assumed:
        return False
    found = find_class(lookups, class_name(manifest))
    return found is not None and found.controller == _CONTROLLER


def _paths(manifest: JsonObject) -> Iterator[IngressPath]:
    """Yield the paths of an Ingress, in the shape of v1, as far as they can be read."""
    for number, rule in enumerate(map(as_object, as_list(as_object(manifest.get("spec")).get("rules")))):
        for index, path in enumerate(map(as_object, as_list(as_object(rule.get("http")).get("paths")))):
            service = as_object(as_object(path.get("backend")).get("service"))
            port = as_object(service.get("port"))
            number_of_port = port.get("number")
            yield IngressPath(
                f"spec.rules[{number}].http.paths[{index}]",
                as_text(rule.get("host")),
                as_text(path.get("path")),
                as_text(path.get("pathType")),
                as_text(service.get("name")),
                number_of_port if isinstance(number_of_port, int) else as_text(port.get("name")) or 0,
            )


def routed(fragment: Fragment, routings: Routings, *, may_be_empty: bool) -> Fragment:
    """Return what an Ingress contributes, with the routes that the other dialect has for it.

    `may_be_empty`: Services without ready endpoints are as they should be.
    """
    ref = fragment.identity.ref
    at = [(each, each.spot) for each in routings if each.spot is not None]
    refusals = {
        field: _refusal(ref, field, why) for routing, spot in at for field, why in _refusals(routing, _where(spot))
    }
    uses = (BackendUse(each, _ANNOTATIONS, _ANNOTATIONS) for each in refusals.values())
    tls = [claim for routing, spot in at for claim in _tls(fragment, routing, spot)]
    moved: dict[str, set[str]] = {}
    claims = []
    for routing, spot in at:
        for each in fragment.routes:
            found = list(_claims(ref, each, routing, spot))
            moved.setdefault(spot.key(each.host), set()).update(claim.host for claim in found)
            claims += found
    # A host of which all routes are at others, as those of a wildcard in rules of v2, would keep requests from them.
    hosts = [
        place
        for _, spot in at
        for host in map(spot.key, fragment.hosts)
        for place in ([host] if host in moved.get(host, (host,)) else sorted(moved[host]))
    ]
    return replace(
        fragment,
        hosts=tuple(dict.fromkeys(hosts)),
        routes=tuple(claims),
        backends=(
            *(use._replace(may_be_empty=may_be_empty) for use in fragment.backends),
            *(use for each in routings for use in each.uses),
            *uses,
        ),
        tls=tuple(tls),
        problems=tuple(dict.fromkeys((*(one for each in routings for one in each.problems), *fragment.problems))),
    )


def _tls(fragment: Fragment, routing: IngressRouting, spot: Spot) -> Iterator[TlsClaim]:
    """Yield the TLS of hosts: what our own annotations say goes before."""
    if fragment.tls or routing.tls is None:
        yield from (claim._replace(host=spot.key(claim.host)) for claim in fragment.tls)
        return
    for host in fragment.hosts or (ANY_HOST,):
        yield TlsClaim(spot.key(host), routing.tls, routing.tls_field)


def _where(spot: Spot) -> str:
    return ",".join(spot.listeners)


def _refusals(routing: IngressRouting, where: str) -> Iterator[tuple[str, str]]:
    if routing.refusal:
        yield where, routing.refusal
    else:
        yield from ((field, path.refusal) for field, path in routing.paths.items() if path.refusal)


def _claims(ref: ObjectRef, claim: RouteClaim, routing: IngressRouting, spot: Spot) -> Iterator[RouteClaim]:
    field = claim.field.removesuffix(".path")
    path, route = routing.paths.get(field, _AS_WRITTEN), claim.route
    if path.is_dropped:
        return
    where = _where(spot) if routing.refusal else field
    for index, place in enumerate(path.places or (RoutePlace(claim.host, route.path, None),)):
        when = all_of(each for each in (route.when, place.when, spot.only) if each is not None)
        rank = {"priority": route.rank.priority or path.priority, "comparisons": count_comparisons(when)}
        change: JsonObject = {"path": place.path, "when": when, "rank": route.rank.model_copy(update=rank)}
        if index:
            change["name"] = f"{route.name}/{index}"
        is_refused = bool(routing.refusal or path.refusal)
        if is_refused:
            change["backends"] = (Backend(upstream=_refusal(ref, where, "").key),)
        else:
            change |= _said(route, path, routing)
        yield claim._replace(
            host=spot.key(place.host),
            route=route.model_copy(update=change),
            is_refused=claim.is_refused or is_refused,
        )


def _said(route: Route, path: PathRouting, routing: IngressRouting) -> JsonObject:
    """Return the fields of a route that are said of it; what our own annotations say goes before."""
    of_all = routing.patch.model_copy(update={"plugins": ()}) if path.patch.plugins else routing.patch
    said = path.patch.over(of_all).fields
    plugins = {"plugins": (*route.plugins, *said.pop("plugins", ()))}
    return {name: value for name, value in said.items() if name not in route.model_fields_set} | plugins


def _refusal(ref: ObjectRef, field: str, why: str) -> RefusalRef:
    reason = f"Ingress {ref.namespace}/{ref.name} refuses requests: {why}"
    return RefusalRef(ref.cluster, "Ingress", ref.namespace, f"{ref.name}.{field}" if field else ref.name, reason)
