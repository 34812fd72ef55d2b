"""Ingress objects in stored form, and the class that one names."""

from headgate.common.resources import INGRESS, LEGACY_INGRESS, JsonObject
from headgate.translator.annotations import ours
from headgate.translator.annotations.apisix import apisix_annotations
from headgate.translator.annotations.nginx.reading import nginx_annotations
from headgate.translator.annotations.traefik import traefik_annotations
from headgate.translator.dialects.ingress.nginx.hosts import (
    ALIASED_HOSTS,
    CONCERNS_HOSTS,
    PATTERN_HOSTS,
    SNIPPET_HOSTS,
    UPSTREAM_HOSTS,
)
from headgate.translator.manifests.reading import as_object, as_text, metadata
from headgate.translator.world.documents import document_kind

CLASS_ANNOTATION = "kubernetes.io/ingress.class"


def class_name(manifest: JsonObject) -> str | None:
    """Return the class that an Ingress names; None where it names none."""
    if written := as_text(as_object(manifest.get("spec")).get("ingressClassName")):
        return written
    return as_text(as_object(metadata(manifest).get("annotations")).get(CLASS_ANNOTATION)) or None


def _annotations(manifest: JsonObject) -> JsonObject:
    annotations = as_object(metadata(manifest).get("annotations"))
    if not annotations:
        return {}
    named = {key: annotations[key] for key in (CLASS_ANNOTATION,) if key in annotations}
    return (
        named
        | ours(manifest)
        | apisix_annotations(manifest)
        | nginx_annotations(manifest)
        | traefik_annotations(manifest)
    )


_INDEXES = (CONCERNS_HOSTS, PATTERN_HOSTS, ALIASED_HOSTS, SNIPPET_HOSTS, UPSTREAM_HOSTS)
STORED = document_kind(INGRESS, annotations=_annotations, indexes=_INDEXES)
LEGACY_STORED = document_kind(LEGACY_INGRESS, annotations=_annotations, indexes=_INDEXES)
