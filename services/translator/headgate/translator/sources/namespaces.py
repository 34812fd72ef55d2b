"""Namespaces by their labels, and which of them the setting `nginx_watch_namespace_selector` takes."""

from typing import NamedTuple

from headgate.common.resources import NAMESPACE, JsonObject
from headgate.translator.manifests.label_selectors import selects
from headgate.translator.manifests.reading import as_object, metadata
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.world import StoredKind

Labels = tuple[tuple[str, str], ...]


def _read_labels(manifest: JsonObject) -> Labels:
    labels = as_object(metadata(manifest).get("labels"))
    return tuple(sorted((key, value) for key, value in labels.items() if isinstance(value, str)))


def _restore(labels: Labels) -> JsonObject:
    return {"metadata": {"labels": dict(labels)}}


NAMESPACES: StoredKind[Labels] = StoredKind(NAMESPACE, _read_labels, restore=_restore)


class NamespaceQuestion(NamedTuple):
    """Something about a namespace."""

    cluster: str
    namespace: str


def _is_selected(lookups: Lookups, question: NamespaceQuestion) -> bool:
    labels = lookups.get(NAMESPACES, "", question.namespace)
    return labels is not None and selects(lookups.settings.nginx.namespace_selector, dict(labels))


_IS_SELECTED: Rule[NamespaceQuestion, bool] = Rule(
    "selected namespace", Level.CLUSTER, _is_selected, lambda *_: False, is_memo=True
)


def is_namespace_watched(lookups: Lookups, namespace: str) -> bool:
    """Whether Ingresses of a namespace may be ours: all are without the setting."""
    if not lookups.settings.nginx.namespace_selector or lookups.is_assumed:
        return True
    return lookups.derive(_IS_SELECTED, NamespaceQuestion(lookups.cluster, namespace))
