"""Labels of Pods, by which subsets of an ApisixUpstream choose."""

from headgate.common.resources import POD, JsonObject
from headgate.translator.manifests.reading import as_object, metadata
from headgate.translator.world.world import StoredKind

Labels = tuple[tuple[str, str], ...]


def read_labels(manifest: JsonObject) -> Labels:
    """Strip a Pod to its labels, sorted."""
    labels = as_object(metadata(manifest).get("labels"))
    return tuple(sorted((name, value) for name, value in labels.items() if isinstance(value, str)))


POD_LABELS = StoredKind(POD, read_labels)
