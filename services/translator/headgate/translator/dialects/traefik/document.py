"""The resources in stored form, and how one is found that another refers to."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from headgate.common.resources import JsonObject, ResourceKind
from headgate.common.resources.traefik import (
    INGRESS_ROUTE,
    MIDDLEWARE,
    OLDER_TRAEFIK_KINDS,
    SERVERS_TRANSPORT,
    SERVERS_TRANSPORT_TCP,
    TLS_OPTION,
    TRAEFIK_KINDS,
    TRAEFIK_SERVICE,
)
from headgate.common.selection import matches_any
from headgate.translator.manifests.label_selectors import selects
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.world.documents import Document, document_index, document_kind
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import StoredKind

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_DEFAULT_CLASS: Final = "traefik"


def _annotations(manifest: JsonObject) -> JsonObject:
    written = as_object(metadata(manifest).get("annotations"))
    return {CLASS_ANNOTATION: written[CLASS_ANNOTATION]} if CLASS_ANNOTATION in written else {}


def _labels(manifest: JsonObject) -> JsonObject:
    written = as_object(metadata(manifest).get("labels"))
    return {name: value for name, value in written.items() if isinstance(value, str)}


def is_read(namespace: str, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether an object is among those that the settings have read, by its namespace and its labels."""
    settings = lookups.settings.traefik
    if settings.namespaces and not matches_any(namespace, settings.namespaces):
        return False
    return not settings.label_selector or selects(settings.label_selector, _labels(manifest))


class InBothGroups(NamedTuple):
    """A kind, and the same in the older group, which counts where the newer one does not have the object."""

    newer: StoredKind[Document]
    older: StoredKind[Document]

    def find(self, lookups: Lookups, namespace: str, name: str) -> JsonObject | None:
        """Return an object; None where it is absent."""
        for stored in self:
            if (document := lookups.get(stored, namespace, name)) is not None:
                manifest = document.decode()
                return manifest if lookups.is_assumed or is_read(namespace, manifest, lookups) else None
        return None


def _names(manifest: JsonObject) -> tuple[str, ...]:
    return (as_text(metadata(manifest).get("name")),)


BY_NAME: Final = document_index("by name", _names, is_cluster_wide=True)
"""TLSOptions by their names, whatever their namespaces."""


def _parents(manifest: JsonObject) -> tuple[str, ...]:
    own = as_text(metadata(manifest).get("namespace"))
    found: dict[str, None] = {}
    for written in as_list(as_object(manifest.get("spec")).get("parentRefs")):
        reference = as_object(written)
        found[f"{as_text(reference.get('namespace')) or own}/{as_text(reference.get('name'))}"] = None
    return tuple(found)


BY_PARENT: Final = document_index("by parent", _parents, is_cluster_wide=True)
"""IngressRoutes by those that they are below, as `namespace/name`."""


def _stored(kind: ResourceKind) -> StoredKind[Document]:
    if kind.kind == INGRESS_ROUTE.kind:
        named = ("creationTimestamp", "uid", "name", "namespace")
        return document_kind(
            kind, annotations=_annotations, labels=_labels, metadata_fields=named, indexes=(BY_PARENT,)
        )
    if kind.kind != TLS_OPTION.kind:
        return document_kind(kind, annotations=_annotations, labels=_labels)
    kept = ("creationTimestamp", "uid", "name", "namespace")
    return document_kind(kind, annotations=_annotations, labels=_labels, metadata_fields=kept, indexes=(BY_NAME,))


STORED: Final[Mapping[ResourceKind, InBothGroups]] = {
    newer: InBothGroups(_stored(newer), _stored(older))
    for newer, older in zip(TRAEFIK_KINDS, OLDER_TRAEFIK_KINDS, strict=True)
}
"""By the kind of the newer group."""
INGRESS_ROUTES: Final = STORED[INGRESS_ROUTE]
MIDDLEWARES: Final = STORED[MIDDLEWARE]
SERVERS_TRANSPORTS: Final = STORED[SERVERS_TRANSPORT]
SERVERS_TRANSPORTS_TCP: Final = STORED[SERVERS_TRANSPORT_TCP]
TLS_OPTIONS: Final = STORED[TLS_OPTION]
TRAEFIK_SERVICES: Final = STORED[TRAEFIK_SERVICE]


def class_name(manifest: JsonObject) -> str:
    """Return the class that an object names: in its spec, else by the annotation; empty for none."""
    named = as_object(manifest.get("spec")).get("ingressClassName")
    if isinstance(named, str):
        return named
    return as_text(as_object(metadata(manifest).get("annotations")).get(CLASS_ANNOTATION))


def is_ours(namespace: str, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether an object with a class is served: by the class that it names, and by the settings that have it read."""
    if not is_read(namespace, manifest, lookups):
        return False
    wanted, named = lookups.settings.traefik.ingress_class, class_name(manifest)
    return named == wanted or (not wanted and named == _DEFAULT_CLASS)
