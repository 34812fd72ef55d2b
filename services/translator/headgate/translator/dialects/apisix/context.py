"""What the translation of every kind is given beside the object itself."""

from collections.abc import Mapping
from typing import NamedTuple

from headgate.common.plugins.metadata import PluginMetadata
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.dialects.apisix.document import ApisixDocument
from headgate.translator.fragments.fragment import Identity
from headgate.translator.manifests.reading import as_object, as_text, creation_time, metadata
from headgate.translator.sources.classes import CLASS_IS_OURS, ClassQuestion, ClassSettings
from headgate.translator.sources.policies import FindIngress, no_ingress
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import StoredKind


class Context(NamedTuple):
    """Who is asked about other objects, the settings, and whose plugins it is about."""

    lookups: Lookups | None
    """None: whatever the object refers to is taken to be there and as it should be."""
    settings: ClassSettings
    class_name: str | None = None
    """Of the object, or of the one that refers to it."""
    metadata: Mapping[str, PluginMetadata] | None = None
    """Of plugins; None: those that the GatewayProxy of the class has."""
    find_ingress: FindIngress = no_ingress


def class_name(manifest: JsonObject) -> str | None:
    """Return the class that a resource names; None where it names none."""
    return as_text(as_object(manifest.get("spec")).get("ingressClassName")) or None


def owns(manifest: JsonObject, lookups: Lookups, settings: ClassSettings, *, is_referred_to: bool = False) -> bool:
    """Whether a resource is ours by its class; `is_referred_to` as in `ClassQuestion`."""
    question = ClassQuestion(lookups.cluster, class_name(manifest), settings, is_referred_to)
    return lookups.derive(CLASS_IS_OURS, question)


def find_referenced(
    lookups: Lookups, stored: StoredKind[ApisixDocument], namespace: str, name: str, settings: ClassSettings
) -> JsonObject | None:
    """Return an object that one of ours refers to; None where it is absent, or says that it is another controller's.

    One without a class is meant by whoever refers to it.
    """
    document = lookups.get(stored, namespace, name)
    if document is None:
        return None
    manifest = document.decode()
    return manifest if class_name(manifest) is None or owns(manifest, lookups, settings) else None


def identify(ref: ObjectRef, manifest: JsonObject) -> Identity:
    """Return who a resource is."""
    return Identity(
        ref,
        as_text(manifest.get("apiVersion")),
        as_text(manifest.get("kind")),
        as_text(metadata(manifest).get("uid")),
        creation_time(manifest),
    )
