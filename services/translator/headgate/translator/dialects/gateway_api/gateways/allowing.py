"""Whose objects may attach: namespaces that a listener lets routes in from, or a Gateway ListenerSets."""

from typing import Final

from headgate.translator.dialects.gateway_api.models.gateway import AllowedNamespaces, LabelSelector
from headgate.translator.sources.namespaces import NAMESPACES
from headgate.translator.world.graph import Lookups

_NAME_LABEL: Final = "kubernetes.io/metadata.name"


def lets_in(allowed: AllowedNamespaces, own: str, namespace: str, lookups: Lookups) -> bool:
    """Whether objects of a namespace may attach to something in the namespace `own`, which says who may."""
    match allowed.from_:
        case "All":
            return True
        case "Same":
            return namespace == own
        case "Selector" if allowed.selector is not None:
            return _selects(allowed.selector, namespace, lookups)
    return False


def _selects(selector: LabelSelector, namespace: str, lookups: Lookups) -> bool:
    """Whether a selector takes a namespace. Its name is a label, which API servers set and files lack; it is known too
    where Namespaces may not be read.
    """
    labels = lookups.get(NAMESPACES, "", namespace)
    if labels is None and selector.keys != {_NAME_LABEL}:
        return False
    return selector.takes({**dict(labels or ()), _NAME_LABEL: namespace})
