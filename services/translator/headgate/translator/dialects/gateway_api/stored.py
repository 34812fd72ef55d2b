"""HTTPRoutes in stored form, and how those of a Gateway are found."""

from collections.abc import Iterator
from typing import Final

from headgate.common.resources import GATEWAY, GATEWAY_GROUP, HTTP_ROUTE, JsonObject
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.world.documents import document_index, document_kind


def _parents(route: JsonObject) -> Iterator[str]:
    own = as_text(metadata(route).get("namespace"))
    for parent in map(as_object, as_list(as_object(route.get("spec")).get("parentRefs"))):
        is_gateway = (parent.get("group", GATEWAY_GROUP), parent.get("kind", GATEWAY.kind))
        if is_gateway == (GATEWAY_GROUP, GATEWAY.kind):
            yield gateway_name(as_text(parent.get("namespace")) or own, as_text(parent.get("name")))


def gateway_name(namespace: str, name: str) -> str:
    """Return the value by which the routes of a Gateway are found."""
    return f"{namespace}/{name}"


BY_GATEWAY: Final = document_index("gateway", lambda route: frozenset(_parents(route)), is_cluster_wide=True)
HTTP_ROUTES: Final = document_kind(
    HTTP_ROUTE, metadata_fields=("creationTimestamp", "uid", "namespace", "name"), indexes=(BY_GATEWAY,)
)
