"""Routes in stored form, and how those of a Gateway are found.

What decides where a route is attached is kept apart from the rest: when a route changes, its Gateway asks all others.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headgate.common.resources import (
    GATEWAY,
    GATEWAY_GROUP,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    SERVICE,
    TCP_ROUTE,
    TLS_ROUTE,
    UDP_ROUTE,
    JsonObject,
    ResourceKind,
)
from headgate.common.status import ParentRef
from headgate.translator.dialects.gateway_api.hostnames import normal
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.world.documents import Document, document_kind
from headgate.translator.world.world import Index, StoredKind

_PARENT_KINDS: Final = (GATEWAY.kind, LISTENER_SET.kind)


class Parent(NamedTuple):
    """A Gateway, a ListenerSet, or some of their listeners, that a route names."""

    ref: ParentRef
    """How the route's status names it."""
    field: str

    @property
    def key(self) -> str:
        """The value by which routes are found that name the same Gateway or ListenerSet."""
        return parent_key(self.ref.kind, self.ref.namespace, self.ref.name)

    def __str__(self) -> str:
        return f"{self.ref.kind} {self.ref.namespace}/{self.ref.name}"


class RouteFacts(NamedTuple):
    """What of a route decides where it is attached."""

    kind: str
    namespace: str
    name: str
    parents: tuple[Parent, ...]
    """Those that are Gateways or ListenerSets."""
    hostnames: tuple[str, ...]


class StoredRoute(NamedTuple):
    """A route."""

    document: Document
    facts: RouteFacts
    services: frozenset[str] = frozenset()
    """Namespaces and names of Services that it sends to."""

    def decode(self) -> JsonObject:
        """Return the manifest."""
        return self.document.decode()


def service_name(namespace: str, name: str) -> str:
    """Return the value by which the routes to a Service are found."""
    return f"{namespace}/{name}"


def parent_key(kind: str, namespace: str, name: str) -> str:
    """Return the value by which the routes of a Gateway or a ListenerSet are found."""
    return f"{kind}/{namespace}/{name}"


def read_facts(manifest: JsonObject, kind: str) -> RouteFacts:
    """Return what decides where a route is attached, as far as it can be read."""
    meta, spec = metadata(manifest), as_object(manifest.get("spec"))
    namespace, name = as_text(meta.get("namespace")), as_text(meta.get("name"))
    hostnames = (normal(each) for each in as_list(spec.get("hostnames")) if isinstance(each, str))
    return RouteFacts(kind, namespace, name, tuple(_parents(spec, namespace)), tuple(dict.fromkeys(hostnames)))


def _services(manifest: JsonObject) -> frozenset[str]:
    own = as_text(metadata(manifest).get("namespace"))
    return frozenset(
        service_name(as_text(written.get("namespace")) or own, as_text(written.get("name")))
        for rule in map(as_object, as_list(as_object(manifest.get("spec")).get("rules")))
        for written in _backends(rule)
        if (written.get("group") or "", written.get("kind") or SERVICE.kind) == (SERVICE.group, SERVICE.kind)
    )


def _backends(rule: JsonObject) -> Iterator[JsonObject]:
    backends = [as_object(each) for each in as_list(rule.get("backendRefs"))]
    yield from backends
    for holder in (rule, *backends):
        for each in map(as_object, as_list(holder.get("filters"))):
            if mirrored := as_object(as_object(each.get("requestMirror")).get("backendRef")):
                yield mirrored


def _parents(spec: JsonObject, own: str) -> Iterator[Parent]:
    for index, written in enumerate(map(as_object, as_list(spec.get("parentRefs")))):
        group, kind = written.get("group", GATEWAY_GROUP), written.get("kind", GATEWAY.kind)
        namespace, port = as_text(written.get("namespace")) or own, written.get("port")
        if group == GATEWAY_GROUP and kind in _PARENT_KINDS:
            named = (as_text(written.get("name")), as_text(written.get("sectionName")))
            ref = ParentRef(group, kind, namespace, *named, port if isinstance(port, int) else 0)
            yield Parent(ref, f"spec.parentRefs[{index}]")


BY_PARENT: Final[Index[StoredRoute]] = Index(
    "parent", lambda route: frozenset(parent.key for parent in route.facts.parents), is_cluster_wide=True
)
BY_SERVICE: Final[Index[StoredRoute]] = Index("service", lambda route: route.services, is_cluster_wide=True)


def _stored(kind: ResourceKind) -> StoredKind[StoredRoute]:
    documents = document_kind(kind, metadata_fields=("creationTimestamp", "uid", "namespace", "name"))
    return StoredKind(
        kind,
        lambda manifest: StoredRoute(documents.read(manifest), read_facts(manifest, kind.kind), _services(manifest)),
        indexes=(BY_PARENT, BY_SERVICE),
        restore=StoredRoute.decode,
    )


ROUTES: Final = {kind: _stored(kind) for kind in (HTTP_ROUTE, GRPC_ROUTE, TLS_ROUTE, TCP_ROUTE, UDP_ROUTE)}
"""All kinds of routes that are served."""
