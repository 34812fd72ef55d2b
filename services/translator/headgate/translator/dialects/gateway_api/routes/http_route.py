"""One HTTPRoute to one fragment."""

from collections.abc import Iterator

from headgate.common.problems import Problem
from headgate.common.resources import HTTP_ROUTE, JsonObject, ObjectRef
from headgate.translator.dialects.gateway_api.models.route import RouteRule
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.dialects.gateway_api.routes.matching import read_matches
from headgate.translator.dialects.gateway_api.routes.request_route import ReadRule, translate_request_route
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.specs import Spec
from headgate.translator.world.graph import Lookups


def translate_http_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what an HTTPRoute that is ours contributes."""
    return translate_request_route(manifest, RouteContext(ref, HTTP_ROUTE.kind, lookups), _read_rules)


def _read_rules(spec: Spec, problems: list[Problem]) -> Iterator[ReadRule]:
    for part in spec.each("rules", RouteRule):
        yield ReadRule(part, tuple(read_matches(part, problems)))
