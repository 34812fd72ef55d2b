"""Policies in stored form, by what they are about: their `targetRefs`, as policies of Gateway API have them (GEP-713).

A target is read whatever else is wrong with its policy: it is there that the author is told.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import (
    BACKEND_TRAFFIC_POLICY,
    HTTP_ROUTE_POLICY,
    INGRESS,
    L4_ROUTE_POLICY,
    SERVICE,
    JsonObject,
    ObjectRef,
)
from headgate.common.status import AncestorRef
from headgate.translator.dialects.apisix.reading import refuse
from headgate.translator.fragments.fragment import Ancestor, Seniority
from headgate.translator.manifests.reading import as_list, as_object, as_text, creation_time, metadata
from headgate.translator.objects.document import document_kind

SERVED_ROUTES = (INGRESS.group, INGRESS.kind)
_METADATA = ("creationTimestamp", "name", "namespace", "uid")


class Target(NamedTuple):
    """An object in the namespace of its policy, or a part of it."""

    group: str
    kind: str
    name: str
    section: str
    """Empty for the whole object."""
    field: str


def read_targets(manifest: JsonObject) -> Iterator[Target]:
    """Yield what a policy is about, as far as it can be read."""
    for index, written in enumerate(as_list(as_object(manifest.get("spec")).get("targetRefs"))):
        named = as_object(written)
        group, kind, name, section = (as_text(named.get(part)) for part in ("group", "kind", "name", "sectionName"))
        target = Target(group, kind, name, section, f"spec.targetRefs[{index}]")
        if target.kind and target.name:
            yield target


def ancestors_of(ref: ObjectRef, targets: Sequence[Target], *, is_readable: bool) -> tuple[Ancestor, ...]:
    """Return targets as a status names them; one that is named twice counts once."""
    found: dict[AncestorRef, Ancestor] = {}
    for target in targets:
        named = AncestorRef(target.group, target.kind, ref.namespace, target.name, target.section)
        found.setdefault(named, Ancestor(named, target.field if is_readable else ""))
    return tuple(found.values())


def seniority_of(manifest: JsonObject) -> Seniority:
    """Return a policy's place among those for one target: the least goes before the others."""
    meta = metadata(manifest)
    return Seniority(creation_time(manifest), as_text(meta.get("namespace")), as_text(meta.get("name")), "")


def not_found(target: Target, message: str) -> Problem:
    """Say that a target is not there."""
    return refuse("TargetNotFound", target.field, message, target.name)


def conflicted(target: Target, message: str) -> Problem:
    """Say that a policy does not hold for a target because of another one."""
    return refuse("Conflicted", target.field, message, target.name)


def outranked(target: Target, what: str, kind: str, winner: Seniority, own: Seniority) -> Problem:
    """Say that a target, known as `what`, has another policy of the kind, which goes before."""
    why = "is older" if winner.created_at != own.created_at else "is as old and goes first by name"
    return conflicted(target, f"{what} has {kind} {winner.namespace}/{winner.name}, which {why}")


def _services(manifest: JsonObject) -> Collection[str]:
    return {one.name for one in read_targets(manifest) if (one.group, one.kind) == (SERVICE.group, SERVICE.kind)}


def _ingresses(manifest: JsonObject) -> Collection[str]:
    return {target.name for target in read_targets(manifest) if (target.group, target.kind) == SERVED_ROUTES}


def stream_route(target: Target) -> str:
    """Return by what the L4RoutePolicies for a route are found."""
    return f"{target.kind}/{target.name}"


def _stream_routes(manifest: JsonObject) -> Collection[str]:
    return {stream_route(target) for target in read_targets(manifest)}


BACKEND_POLICIES = document_kind(BACKEND_TRAFFIC_POLICY, metadata_fields=_METADATA, index=_services)
"""Found by the names of the Services that they are for."""
ROUTE_POLICIES = document_kind(HTTP_ROUTE_POLICY, metadata_fields=_METADATA, index=_ingresses)
"""Found by the names of the Ingresses that they are for."""
L4_POLICIES = document_kind(L4_ROUTE_POLICY, metadata_fields=_METADATA, index=_stream_routes)
"""Found by the kinds and names of what they are for; see `stream_route`."""
