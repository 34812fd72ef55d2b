"""The resources in stored form: the fields that translation reads, as JSON, whatever version they were written in.

Kept encoded, as Ingress objects are: most of them are read once and then wait.
"""

from typing import NamedTuple

from headgate.common.resources import (
    APISIX_CLUSTER_CONFIG,
    APISIX_CONSUMER,
    APISIX_GLOBAL_RULE,
    APISIX_PLUGIN_CONFIG,
    APISIX_ROUTE,
    APISIX_TLS,
    APISIX_UPSTREAM,
    GATEWAY_CONSUMER,
    GATEWAY_PROXY,
    ROUTE_PLUGIN_CONFIG,
    JsonObject,
)
from headgate.translator.annotations.apisix import apisix_annotations
from headgate.translator.annotations.host_sharing import host_sharing_annotation
from headgate.translator.dialects.apisix.labels import labels_of
from headgate.translator.manifests.reading import metadata, pack, unpack
from headgate.translator.world.world import StoredKind

_METADATA = ("creationTimestamp", "uid")
_LABELLED = (APISIX_CONSUMER.kind, APISIX_PLUGIN_CONFIG.kind, GATEWAY_CONSUMER.kind)


class ApisixDocument(NamedTuple):
    """A resource without what nobody reads: status, foreign annotations, and labels where they mean nothing."""

    content: bytes

    def decode(self) -> JsonObject:
        """Return the manifest."""
        return unpack(self.content)


def read_document(manifest: JsonObject) -> ApisixDocument:
    """Strip a resource."""
    meta = metadata(manifest)
    kept: JsonObject = {key: meta[key] for key in _METADATA if key in meta}
    kept["annotations"] = apisix_annotations(manifest) | host_sharing_annotation(manifest)
    if manifest.get("kind") in _LABELLED:
        kept["labels"] = labels_of(manifest)
    content = {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "metadata": kept,
        "spec": manifest.get("spec"),
    }
    return ApisixDocument(pack(content))


ROUTES = StoredKind(APISIX_ROUTE, read_document, restore=ApisixDocument.decode)
UPSTREAMS = StoredKind(APISIX_UPSTREAM, read_document, restore=ApisixDocument.decode)
TLSES = StoredKind(APISIX_TLS, read_document, restore=ApisixDocument.decode)
PLUGIN_CONFIGS = StoredKind(APISIX_PLUGIN_CONFIG, read_document, restore=ApisixDocument.decode)
GLOBAL_RULES = StoredKind(APISIX_GLOBAL_RULE, read_document, restore=ApisixDocument.decode)
CLUSTER_CONFIGS = StoredKind(APISIX_CLUSTER_CONFIG, read_document, restore=ApisixDocument.decode)
GATEWAY_PROXIES = StoredKind(GATEWAY_PROXY, read_document, restore=ApisixDocument.decode)
CONSUMERS = StoredKind(APISIX_CONSUMER, read_document, restore=ApisixDocument.decode)
GATEWAY_CONSUMERS = StoredKind(GATEWAY_CONSUMER, read_document, restore=ApisixDocument.decode)
ROUTE_PLUGIN_CONFIGS = StoredKind(ROUTE_PLUGIN_CONFIG, read_document, restore=ApisixDocument.decode)
