"""What the translation of every kind is given beside the object itself."""

from collections.abc import Mapping
from typing import NamedTuple

from headgate.common.plugins.metadata import PluginMetadata
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.manifests.reading import as_object, as_text
from headgate.translator.objects.ownership import ByClass
from headgate.translator.world.documents import Document
from headgate.translator.world.graph import Lookups
from headgate.translator.world.settings import TranslationSettings
from headgate.translator.world.world import StoredKind


class Context(NamedTuple):
    """Who is asked about other objects, and whose plugins it is about."""

    lookups: Lookups
    class_name: str | None = None
    """Class of the object, or of the one that refers to it."""
    metadata: Mapping[str, PluginMetadata] | None = None
    """Metadata of plugins; None: those that the GatewayProxy of the class has."""

    @property
    def settings(self) -> TranslationSettings:
        """The operator's settings."""
        return self.lookups.settings


def class_name(manifest: JsonObject) -> str | None:
    """Return the class that a resource names; None where it names none."""
    return as_text(as_object(manifest.get("spec")).get("ingressClassName")) or None


BY_CLASS = ByClass(class_name)


def find_referenced(lookups: Lookups, stored: StoredKind[Document], namespace: str, name: str) -> JsonObject | None:
    """Return an object that one of ours refers to; None where it is absent, or says that it is another controller's.

    An object without a class belongs to every object that refers to it.
    """
    document = lookups.get(stored, namespace, name)
    if document is None:
        return None
    manifest = document.decode()
    ref = ObjectRef(lookups.cluster, stored.kind.group, stored.kind.resource, namespace, name)
    return manifest if class_name(manifest) is None or BY_CLASS.owns(ref, manifest, lookups) else None
