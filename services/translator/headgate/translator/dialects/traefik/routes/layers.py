"""IngressRoutes below others: routes that are chosen once the middlewares of a route above have run.

A route without services, of an object that others name in `parentRefs`, is a parent. Its requests go to a group, of
which the first route takes a request as it is by then: the routes of all children, by their priorities. A child makes
a group of its own for each of its routes, with its middlewares and services, so that it is the same whatever parents
lead to it. A group of this kind may have another below it.

Rejected: a route of the table for each pair of parent and child. Middlewares of the parent would run once for each
child, with counts of its own, and rules of the child would see the request as the client sent it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import Backend, BackendGroup, Choice, FirstMatch, Provenance, Weighted
from headgate.translator.dialects.traefik.document import BY_PARENT, INGRESS_ROUTES, is_ours
from headgate.translator.dialects.traefik.middlewares.onto_backend import onto_backend
from headgate.translator.dialects.traefik.models.route import RouteRule, RouteSettings
from headgate.translator.dialects.traefik.references import BadReference, check_namespace
from headgate.translator.dialects.traefik.routes.matched import Matched, read_rules
from headgate.translator.dialects.traefik.routes.serving import KIND, Served, refused, serve
from headgate.translator.dialects.traefik.rules import whole
from headgate.translator.fragments.fragment import Fragment, InnerClaim
from headgate.translator.fragments.route_cost import MAX_COST, TOO_COSTLY, route_cost
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.manifests.specs import Part, Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.world.graph import Lookups

MAX_CHILDREN: Final = 512
"""Routes below one object."""
_MAX_LAYERS: Final = 4
"""Below one with entry points. Each takes two of the levels that groups of the table may have."""


# Parents


class _Below(NamedTuple):
    """A route of a child, as its parent sees it."""

    namespace: str
    name: str
    """Of the child."""
    one: Matched


def find_layer(
    ref: ObjectRef, matched: Sequence[Matched], lookups: Lookups, problems: list[Problem]
) -> BackendGroup | None:
    """Return the group of the routes below an IngressRoute; None if there are none, or all its routes have services."""
    if all(one.rule.services for one in matched):
        return None
    found: list[_Below] = []
    cost_left = MAX_COST
    for namespace, name, manifest in _children(ref, lookups):
        rules = Spec(manifest.get("spec"), []).each("routes", RouteRule)
        found += (_Below(namespace, name, one) for one in read_rules(rules, whole, lookups, []) if one.places)
    ordered = sorted(found, key=lambda below: -below.one.priority)
    choices: list[Choice] = []
    for below in ordered:
        when = below.one.places[0].when
        cost_left -= route_cost(when, ())
        if len(choices) == MAX_CHILDREN or cost_left < 0:
            message = f"{len(ordered)} routes are below this object by their parentRefs, which {TOO_COSTLY}"
            problems.append(refuse("TooMuchWork", "spec.routes", message))
            break
        key = _key(ref.cluster, below.namespace, below.name, below.one.name)
        choices.append(Choice(when=when, backend=Backend(group=key)))
    if not choices:
        return None
    origin = Provenance(cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name, rule="spec.routes")
    group = FirstMatch(choices=tuple(choices))
    return BackendGroup(key=_key(ref.cluster, ref.namespace, ref.name, ""), first_match=group, provenance=origin)


def _key(cluster: str, namespace: str, name: str, route: str) -> str:
    """Return the key of the group that a route of a child is, or that of all below an object."""
    of_route = f"/{route}" if route else ""
    return f"{cluster}/{namespace}/ingressroutes/{name}{of_route}/below"


def _children(ref: ObjectRef, lookups: Lookups) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield namespace, name and manifest of the IngressRoutes below one, in order of these."""
    found: dict[tuple[str, str], JsonObject] = {}
    for stored in INGRESS_ROUTES:
        for document in lookups.find(stored, BY_PARENT, f"{ref.namespace}/{ref.name}"):
            manifest = document.decode()
            where = as_text(metadata(manifest).get("namespace")), as_text(metadata(manifest).get("name"))
            found.setdefault(where, manifest)
    for (namespace, name), manifest in sorted(found.items(), key=lambda each: each[0]):
        is_near = namespace == ref.namespace or lookups.settings.traefik.allow_cross_namespace
        if is_near and is_ours(namespace, manifest, lookups):
            yield namespace, name, manifest


# Children


def translate_child(
    ref: ObjectRef,
    manifest: JsonObject,
    settings: RouteSettings,
    rules: Sequence[Part[RouteRule]],
    lookups: Lookups,
    problems: list[Problem],
) -> Fragment:
    """Return what an IngressRoute below others contributes: a group for each of its routes, and none of the table."""
    fault = _fault_of(settings, problems)
    faults = [] if lookups.is_assumed else list(_faults_of_parents(settings, ref, lookups))
    problems += faults
    is_led_to = len(faults) < len(settings.parent_refs)
    if not is_led_to:
        fault = fault or faults[0].message
    matched = read_rules(rules, whole, lookups, problems)
    below = find_layer(ref, matched, lookups, problems)
    served = [_serve(ref, one, fault, below, lookups, problems) for one in matched]
    groups = [_group(ref, one, how) for one, how in zip(matched, served, strict=True)]
    return Fragment(
        identity=identify(ref, manifest),
        inner=tuple(
            InnerClaim(f"{one.field}.match", how.is_refused)
            for one, how in zip(matched, served, strict=True)
            if is_led_to
        ),
        backends=tuple(use for how in served for use in (*how.backends.uses, *how.made.uses)),
        entries=(
            *([] if below is None else [below]),
            *groups,
            *(group for how in served for group in how.backends.groups),
        ),
        problems=tuple(dict.fromkeys(problems)),
    )


def _fault_of(settings: RouteSettings, problems: list[Problem]) -> str:
    """Return why no route of a child can be followed; empty if they can."""
    written = {"entryPoints": settings.entry_points, "tls": settings.tls}
    field = next((field for field, value in written.items() if value not in ((), None)), "")
    if not field:
        return ""
    fault = "is for IngressRoutes without parentRefs: leave it out here, and say it in the one above"
    problems.append(refuse("UnsupportedField", f"spec.{field}", fault))
    return f"spec.{field} {fault}"


def _faults_of_parents(settings: RouteSettings, ref: ObjectRef, lookups: Lookups) -> Iterator[Problem]:
    """Yield what is wrong with the references to parents."""
    for index, reference in enumerate(settings.parent_refs):
        field, name = f"spec.parentRefs[{index}]", reference.name
        try:
            namespace = check_namespace(ref.namespace, reference.namespace, lookups)
        except BadReference as error:
            yield refuse(error.reason, f"{field}.namespace", f"{error}; no requests come from there", name)
            continue
        manifest = _find(namespace, name, lookups)
        if manifest is None:
            message = f"IngressRoute {namespace}/{name} not found; no requests come from there"
            yield refuse("ParentNotFound", f"{field}.name", message, name)
        elif all(as_list(as_object(one).get("services")) for one in _routes(manifest)):
            message = (
                f"IngressRoute {namespace}/{name} sends its requests to services, and none to routes below it: leave "
                "the services of a route out there"
            )
            yield refuse("InvalidParent", f"{field}.name", message, name)
        elif (layers := _layers_above(namespace, name, lookups)) is None:
            message = f"no IngressRoute without parentRefs leads to {namespace}/{name}; no requests come from there"
            yield refuse("InvalidParent", f"{field}.name", message, name)
        elif layers >= _MAX_LAYERS:
            message = f"has more than {_MAX_LAYERS} layers of parents; no requests come from there"
            yield refuse("InvalidParent", f"{field}.name", message, name)


def _find(namespace: str, name: str, lookups: Lookups) -> JsonObject | None:
    manifest = INGRESS_ROUTES.find(lookups, namespace, name)
    return manifest if manifest is not None and is_ours(namespace, manifest, lookups) else None


def _routes(manifest: JsonObject) -> list[object]:
    return as_list(as_object(manifest.get("spec")).get("routes"))


def _layers_above(namespace: str, name: str, lookups: Lookups) -> int | None:
    """Return how many layers an object is below one without parents, by the shortest way; None: it is below none."""
    seen, layer = {(namespace, name)}, [(namespace, name)]
    count = 0
    while layer:
        above: list[tuple[str, str]] = []
        for own, each in layer:
            manifest = _find(own, each, lookups)
            listed = as_list(as_object((manifest or {}).get("spec")).get("parentRefs"))
            if manifest is not None and not listed:
                return count
            for reference in map(as_object, listed):
                where = as_text(reference.get("namespace")) or own, as_text(reference.get("name"))
                is_near = where[0] == own or lookups.settings.traefik.allow_cross_namespace
                if is_near and where not in seen:
                    seen.add(where)
                    above.append(where)
        layer, count = above, count + 1
    return None


def _serve(
    ref: ObjectRef, one: Matched, fault: str, below: BackendGroup | None, lookups: Lookups, problems: list[Problem]
) -> Served:
    """Return what becomes of the requests of a child's route."""
    served = serve(ref, one, fault, below, lookups, problems)
    if one.rule.observability is not None:
        message = "is for IngressRoutes without parentRefs: the one above says it for all below"
        problems.append(warn("UnsupportedField", f"{one.field}.observability", message))
    return served


def _group(ref: ObjectRef, one: Matched, served: Served) -> BackendGroup:
    backends = served.backends.backends
    if not backends:  # A middleware answers.
        return _group(ref, one, refused(ref, one, "no middleware answers them")._replace(made=served.made))
    (backend,) = backends
    member = onto_backend(backend.model_copy(update={"weight": 1}), served.made, served.backends.keeps_body)
    return BackendGroup(
        key=_key(ref.cluster, ref.namespace, ref.name, one.name),
        weighted=Weighted(backends=(member,)),
        stickiness=served.backends.stickiness,
        provenance=Provenance(cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name, rule=one.field),
    )
