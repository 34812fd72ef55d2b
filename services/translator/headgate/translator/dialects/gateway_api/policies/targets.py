"""Policies for Services, and the Gateways at which they have a status."""

from collections.abc import Collection, Sequence

from headgate.common.resources import GATEWAY, GATEWAY_GROUP, SERVICE, JsonObject, ObjectRef
from headgate.common.status import AncestorRef
from headgate.translator.dialects.gateway_api.parents import find_gateway
from headgate.translator.dialects.gateway_api.stored import BY_SERVICE, ROUTES, service_name
from headgate.translator.objects.targets import PolicyTarget, read_targets
from headgate.translator.world.graph import Lookups


def is_service(target: PolicyTarget) -> bool:
    """Whether a target is a Service, or a part of one."""
    return (target.group, target.kind) == (SERVICE.group, SERVICE.kind)


def services_of(manifest: JsonObject) -> Collection[str]:
    """Return the names of the Services that a policy is for."""
    return {target.name for target in read_targets(manifest) if is_service(target)}


def gateways_of(ref: ObjectRef, targets: Sequence[PolicyTarget], lookups: Lookups) -> list[AncestorRef]:
    """Return the Gateways of ours whose routes go to a Service that a policy is for."""
    found: dict[AncestorRef, None] = {}
    services = {service_name(ref.namespace, target.name) for target in targets if is_service(target)}
    routes = (
        each for kind in ROUTES.values() for name in sorted(services) for each in lookups.find(kind, BY_SERVICE, name)
    )
    for parent in (parent for route in routes for parent in route.facts.parents):
        if (gateway := find_gateway(parent, lookups)) is not None:
            found[AncestorRef(GATEWAY_GROUP, GATEWAY.kind, *gateway)] = None
    return sorted(found)
