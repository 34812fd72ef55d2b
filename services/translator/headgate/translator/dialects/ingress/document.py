"""Ingress objects in stored form: the fields that translation reads, as JSON.

Kept encoded because most objects are read once and then wait: encoded they need a fifth of the memory.
"""

from typing import NamedTuple

from headgate.common.resources import INGRESS, LEGACY_INGRESS, JsonObject
from headgate.translator.annotations import ours
from headgate.translator.annotations.apisix import apisix_annotations
from headgate.translator.manifests.reading import as_object, as_text, metadata, pack, unpack
from headgate.translator.world.world import StoredKind

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_METADATA = ("creationTimestamp", "uid")
_ANNOTATIONS = (CLASS_ANNOTATION,)


def class_name(manifest: JsonObject) -> str | None:
    """Return the class that an Ingress names; None where it names none."""
    written = as_object(manifest.get("spec")).get("ingressClassName")
    annotated = as_text(as_object(metadata(manifest).get("annotations")).get(CLASS_ANNOTATION))
    return as_text(written) or annotated or None


class IngressDocument(NamedTuple):
    """An Ingress without what nobody reads: status, managed fields, foreign annotations."""

    content: bytes

    def decode(self) -> JsonObject:
        """Return the manifest."""
        return unpack(self.content)


def read_ingress(manifest: JsonObject) -> IngressDocument:
    """Strip an Ingress."""
    meta = metadata(manifest)
    annotations = as_object(meta.get("annotations"))
    kept: JsonObject = {key: meta[key] for key in _METADATA if key in meta}
    kept["annotations"] = {key: annotations[key] for key in _ANNOTATIONS if key in annotations} | ours(manifest)
    kept["annotations"] |= apisix_annotations(manifest)
    content = {"apiVersion": manifest.get("apiVersion"), "metadata": kept, "spec": manifest.get("spec")}
    return IngressDocument(pack(content))


INGRESSES = StoredKind(INGRESS, read_ingress, restore=IngressDocument.decode)
LEGACY_INGRESSES = StoredKind(LEGACY_INGRESS, read_ingress, restore=IngressDocument.decode)
