"""Objects in stored form: the fields that translation reads, as JSON.

Kept encoded, because most objects are read once and then wait: encoded they need a fifth of the memory.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from headgate.common.resources import JsonObject, ResourceKind
from headgate.translator.manifests.reading import metadata, pack, unpack
from headgate.translator.world.world import Index, StoredKind

_METADATA = ("creationTimestamp", "uid")
Keep = Callable[[JsonObject], JsonObject]
"""Chooses annotations or labels of a manifest."""


class Document(NamedTuple):
    """An object without what no translation reads: status, managed fields, foreign annotations."""

    content: bytes

    def decode(self) -> JsonObject:
        """Return the manifest."""
        return unpack(self.content)


def document_kind(
    kind: ResourceKind,
    *,
    annotations: Keep | None = None,
    labels: Keep | None = None,
    metadata_fields: tuple[str, ...] = _METADATA,
    indexes: tuple[Index[Document], ...] = (),
) -> StoredKind[Document]:
    """Return how objects of a kind are kept as documents.

    Args:
        kind: of the objects.
        annotations: which annotations are kept; None: no object of the kind has any that are read.
        labels: which labels are kept; as with annotations.
        metadata_fields: further fields of `metadata` that are kept.
        indexes: as in `StoredKind`.
    """

    def read(manifest: JsonObject) -> Document:
        meta = metadata(manifest)
        kept: JsonObject = {key: meta[key] for key in metadata_fields if key in meta}
        if annotations is not None:
            kept["annotations"] = annotations(manifest)
        if labels is not None:
            kept["labels"] = labels(manifest)
        content = {
            "apiVersion": manifest.get("apiVersion"),
            "kind": kind.kind,
            "metadata": kept,
            "spec": manifest.get("spec"),
        }
        return Document(pack(content))

    return StoredKind(kind, read, indexes=indexes, restore=Document.decode)


def document_index(
    name: str, values: Callable[[JsonObject], Collection[str]], *, is_cluster_wide: bool = False
) -> Index[Document]:
    """Return an index of documents by values of their manifests; as `Index`."""
    return Index(name, lambda document: values(document.decode()), is_cluster_wide)
