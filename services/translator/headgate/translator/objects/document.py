"""Which object a manifest is."""

from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.fragments.fragment import Identity
from headgate.translator.manifests.reading import as_text, creation_time, metadata


def identify(ref: ObjectRef, manifest: JsonObject) -> Identity:
    """Return which object a manifest is."""
    return Identity(
        ref,
        as_text(manifest.get("apiVersion")),
        as_text(manifest.get("kind")),
        as_text(metadata(manifest).get("uid")),
        creation_time(manifest),
    )
