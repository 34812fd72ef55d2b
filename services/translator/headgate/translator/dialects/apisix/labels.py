"""Labels that mean something: whose group a consumer is of, and which shared plugins are those of a group."""

from typing import Final

from headgate.common.resources import JsonObject
from headgate.translator.manifests.reading import as_object, metadata

CONSUMER_GROUP: Final = "headgate.dev/consumer-group"
"""On an ApisixConsumer the name of its group; on the ApisixPluginConfig of that name in the same namespace, with any
value, that its plugins are for the group."""


def labels_of(manifest: JsonObject) -> dict[str, str]:
    """Return an object's labels."""
    labels = as_object(metadata(manifest).get("labels"))
    return {name: value for name, value in labels.items() if isinstance(value, str)}


def group_name(namespace: str, name: str) -> str:
    """Return what a group is called in the table, as consumers are."""
    return f"{namespace}_{name}"
