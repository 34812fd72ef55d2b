"""Policies in stored form, found by what they are about."""

from collections.abc import Collection

from headgate.common.resources import (
    BACKEND_TRAFFIC_POLICY,
    HTTP_ROUTE_POLICY,
    INGRESS,
    L4_ROUTE_POLICY,
    SERVICE,
    JsonObject,
)
from headgate.translator.objects.targets import PolicyTarget, read_targets
from headgate.translator.world.documents import document_index, document_kind

SERVED_ROUTES = (INGRESS.group, INGRESS.kind)
_METADATA = ("creationTimestamp", "name", "namespace", "uid")


def _services(manifest: JsonObject) -> Collection[str]:
    return {one.name for one in read_targets(manifest) if (one.group, one.kind) == (SERVICE.group, SERVICE.kind)}


def _ingresses(manifest: JsonObject) -> Collection[str]:
    return {target.name for target in read_targets(manifest) if (target.group, target.kind) == SERVED_ROUTES}


def stream_route(target: PolicyTarget) -> str:
    """Return by what the L4RoutePolicies for a route are found."""
    return f"{target.kind}/{target.name}"


def _stream_routes(manifest: JsonObject) -> Collection[str]:
    return {stream_route(target) for target in read_targets(manifest)}


BY_SERVICE = document_index("service", _services)
"""By the names of the Services that a policy is for."""
BY_INGRESS = document_index("ingress", _ingresses)
"""By the names of the Ingresses that a policy is for."""
BY_STREAM_ROUTE = document_index("stream route", _stream_routes)
"""By the kinds and names of the routes that a policy is for; see `stream_route`."""
BACKEND_POLICIES = document_kind(BACKEND_TRAFFIC_POLICY, metadata_fields=_METADATA, indexes=(BY_SERVICE,))
ROUTE_POLICIES = document_kind(HTTP_ROUTE_POLICY, metadata_fields=_METADATA, indexes=(BY_INGRESS,))
L4_POLICIES = document_kind(L4_ROUTE_POLICY, metadata_fields=_METADATA, indexes=(BY_STREAM_ROUTE,))
