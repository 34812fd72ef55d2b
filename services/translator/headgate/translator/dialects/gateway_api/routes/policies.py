"""What policies of other vocabularies say of routes of Gateway API."""

from headgate.common.resources import GATEWAY_GROUP, HTTP_ROUTE, JsonObject
from headgate.translator.dialects.gateway_api.models.route import RouteRule
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.dialects.gateway_api.routes.matching import MatchedRequests
from headgate.translator.dialects.gateway_api.stored import ROUTES
from headgate.translator.manifests.patches import all_of
from headgate.translator.manifests.reading import as_list, as_object, as_text
from headgate.translator.sources.policies import (
    CONNECTION_POLICIES,
    NO_ROUTE_POLICY,
    ROUTE_POLICIES,
    ConnectionPolicy,
    ObjectTarget,
    RoutePolicy,
)
from headgate.translator.world.graph import Lookups


def policy_of(rule: RouteRule, context: RouteContext) -> RoutePolicy:
    """Return what holds for a rule."""
    if context.kind != HTTP_ROUTE.kind:
        return NO_ROUTE_POLICY
    ref = context.ref
    target = ObjectTarget(GATEWAY_GROUP, context.kind, ref.namespace, ref.name, rule.name or "")
    return context.lookups.attached(ROUTE_POLICIES, target)


def asked_besides(match: MatchedRequests, policy: RoutePolicy) -> MatchedRequests:
    """Return the requests of a match that a policy leaves to it, and its rank by the policy.

    While a policy cannot be followed, the match gives way to others: its requests may be theirs.
    """
    if policy == NO_ROUTE_POLICY:
        return match
    said = policy.patch
    when = all_of((*(() if match.when is None else (match.when,)), *said.conditions))
    rank = match.rank.model_copy(update={"path_priority": said.path_priority or 0, "is_unreadable": bool(policy.fault)})
    return match._replace(when=when, rank=rank)


def stream_policy_of(context: RouteContext) -> ConnectionPolicy:
    """Return what holds for the connections or datagrams of a route."""
    ref = context.ref
    target = ObjectTarget(GATEWAY_GROUP, context.kind, ref.namespace, ref.name)
    return context.lookups.attached(CONNECTION_POLICIES, target)


def find_sections(lookups: Lookups, target: ObjectTarget) -> frozenset[str] | None:
    """Return the names of the rules of an HTTPRoute."""
    if (target.group, target.kind) != (GATEWAY_GROUP, HTTP_ROUTE.kind):
        return None
    route = lookups.get(ROUTES[HTTP_ROUTE], target.namespace, target.name)
    return None if route is None else _names(route.decode())


def _names(manifest: JsonObject) -> frozenset[str]:
    rules = map(as_object, as_list(as_object(manifest.get("spec")).get("rules")))
    return frozenset(as_text(rule.get("name")) for rule in rules)
