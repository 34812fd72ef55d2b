"""The resources in stored form, whatever version they were written in."""

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
    ResourceKind,
)
from headgate.translator.annotations.apisix import apisix_annotations
from headgate.translator.annotations.host_sharing import host_sharing_annotation
from headgate.translator.dialects.apisix.labels import labels_of
from headgate.translator.world.documents import Document, document_kind
from headgate.translator.world.world import StoredKind


def _annotations(manifest: JsonObject) -> JsonObject:
    return apisix_annotations(manifest) | host_sharing_annotation(manifest)


def _stored(kind: ResourceKind, *, has_labels: bool = False) -> StoredKind[Document]:
    return document_kind(kind, annotations=_annotations, labels=labels_of if has_labels else None)


ROUTES = _stored(APISIX_ROUTE)
UPSTREAMS = _stored(APISIX_UPSTREAM)
TLSES = _stored(APISIX_TLS)
PLUGIN_CONFIGS = _stored(APISIX_PLUGIN_CONFIG, has_labels=True)
GLOBAL_RULES = _stored(APISIX_GLOBAL_RULE)
CLUSTER_CONFIGS = _stored(APISIX_CLUSTER_CONFIG)
GATEWAY_PROXIES = _stored(GATEWAY_PROXY)
CONSUMERS = _stored(APISIX_CONSUMER, has_labels=True)
GATEWAY_CONSUMERS = _stored(GATEWAY_CONSUMER, has_labels=True)
ROUTE_PLUGIN_CONFIGS = _stored(ROUTE_PLUGIN_CONFIG)
