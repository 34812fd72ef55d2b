"""Policies in stored form, found by what they are about."""

from collections.abc import Collection
from typing import Final

from headgate.common.resources import (
    BACKEND_TRAFFIC_POLICY,
    HTTP_ROUTE,
    HTTP_ROUTE_POLICY,
    INGRESS,
    L4_ROUTE_POLICY,
    SERVICE,
    TCP_ROUTE,
    TLS_ROUTE,
    UDP_ROUTE,
    JsonObject,
    ObjectRef,
)
from headgate.translator.objects.targets import PolicyTarget, read_targets
from headgate.translator.sources.policies import OWNERSHIP, ObjectTarget
from headgate.translator.world.documents import document_index, document_kind
from headgate.translator.world.graph import Lookups

INGRESSES: Final = (INGRESS.group, INGRESS.kind)
HTTP_ROUTES: Final = (HTTP_ROUTE.group, HTTP_ROUTE.kind)
STREAM_ROUTES: Final = frozenset((kind.group, kind.kind) for kind in (TCP_ROUTE, UDP_ROUTE, TLS_ROUTE))
_ROUTES: Final = STREAM_ROUTES | {INGRESSES, HTTP_ROUTES}
_METADATA = ("creationTimestamp", "name", "namespace", "uid")


def _services(manifest: JsonObject) -> Collection[str]:
    return {one.name for one in read_targets(manifest) if (one.group, one.kind) == (SERVICE.group, SERVICE.kind)}


def route_of(target: PolicyTarget | ObjectTarget) -> str:
    """Return by what the policies for a route are found."""
    return f"{target.kind}.{target.group}/{target.name}"


def _routes(manifest: JsonObject) -> Collection[str]:
    return {route_of(target) for target in read_targets(manifest)}


def is_ours(lookups: Lookups, namespace: str, target: PolicyTarget) -> bool | None:
    """Return whether a route is ours; None for one that is not there, and for objects that are none."""
    if (target.group, target.kind) not in _ROUTES:
        return None
    return lookups.attached(OWNERSHIP, ObjectTarget(target.group, target.kind, namespace, target.name))


def is_about_ours(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether not all that a policy for routes is about is another controller's."""
    targets = [*read_targets(manifest)]
    return not targets or any(is_ours(lookups, ref.namespace, target) is not False for target in targets)


BY_SERVICE = document_index("service", _services)
"""By the names of the Services that a policy is for."""
BY_ROUTE = document_index("route", _routes)
"""By the kinds and names of the objects that a policy is for; see `route_of`."""
BACKEND_POLICIES = document_kind(BACKEND_TRAFFIC_POLICY, metadata_fields=_METADATA, indexes=(BY_SERVICE,))
ROUTE_POLICIES = document_kind(HTTP_ROUTE_POLICY, metadata_fields=_METADATA, indexes=(BY_ROUTE,))
L4_POLICIES = document_kind(L4_ROUTE_POLICY, metadata_fields=_METADATA, indexes=(BY_ROUTE,))
