"""Resources of Kubernetes that Headgate reads: a row for each kind, and how one object is referred to.

A kind is added by a row in the file of its family and a dialect, or a core part, that reads it. What derives from rows
(`headgate.common.resources.kind`) follows by itself; `make manifests` writes the rights.
"""

from headgate.common.resources.apisix import (
    APISIX_CLUSTER_CONFIG,
    APISIX_CONSUMER,
    APISIX_GLOBAL_RULE,
    APISIX_GROUP,
    APISIX_KINDS,
    APISIX_PLUGIN_CONFIG,
    APISIX_ROUTE,
    APISIX_TLS,
    APISIX_UPSTREAM,
    BACKEND_TRAFFIC_POLICY,
    GATEWAY_CONSUMER,
    GATEWAY_PROXY,
    HTTP_ROUTE_POLICY,
    L4_ROUTE_POLICY,
    ROUTE_PLUGIN_CONFIG,
)
from headgate.common.resources.core import (
    CONFIG_MAP,
    CORE_KINDS,
    ENDPOINT_SLICE,
    ENDPOINTS,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    SERVICE_EXPORT,
    SERVICE_IMPORT,
)
from headgate.common.resources.gateway_api import (
    BACKEND_TLS_POLICY,
    EXPERIMENTAL_GROUP,
    GATEWAY,
    GATEWAY_CLASS,
    GATEWAY_GROUP,
    GATEWAY_KINDS,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    REFERENCE_GRANT,
    TCP_ROUTE,
    TLS_ROUTE,
    TRAFFIC_POLICY,
    UDP_ROUTE,
)
from headgate.common.resources.ingress import INGRESS, INGRESS_CLASS, INGRESS_KINDS, LEGACY_INGRESS
from headgate.common.resources.kind import (
    Narrowing,
    OwnershipRule,
    ResourceKind,
    Sealing,
    StatusShape,
    WatchMode,
)
from headgate.common.resources.kinds import KindChoice, Kinds
from headgate.common.resources.ours import ACME_ACCOUNT, ACME_CERTIFICATE, CLUSTER, OUR_GROUP, OUR_KINDS, PLUGIN
from headgate.common.resources.reference import JsonObject, ObjectRef
from headgate.common.resources.traefik import OLDER_TRAEFIK_KINDS, TRAEFIK_KINDS

ALL_KINDS = Kinds(
    (
        *CORE_KINDS,
        *OUR_KINDS,
        *INGRESS_KINDS,
        *GATEWAY_KINDS,
        *APISIX_KINDS,
        *TRAEFIK_KINDS,
        *OLDER_TRAEFIK_KINDS,
    )
)
"""What this release reads."""

__all__ = [
    "ACME_ACCOUNT",
    "ACME_CERTIFICATE",
    "ALL_KINDS",
    "APISIX_CLUSTER_CONFIG",
    "APISIX_CONSUMER",
    "APISIX_GLOBAL_RULE",
    "APISIX_GROUP",
    "APISIX_KINDS",
    "APISIX_PLUGIN_CONFIG",
    "APISIX_ROUTE",
    "APISIX_TLS",
    "APISIX_UPSTREAM",
    "BACKEND_TLS_POLICY",
    "BACKEND_TRAFFIC_POLICY",
    "CLUSTER",
    "CONFIG_MAP",
    "CORE_KINDS",
    "ENDPOINTS",
    "ENDPOINT_SLICE",
    "EXPERIMENTAL_GROUP",
    "GATEWAY",
    "GATEWAY_CLASS",
    "GATEWAY_CONSUMER",
    "GATEWAY_GROUP",
    "GATEWAY_KINDS",
    "GATEWAY_PROXY",
    "GRPC_ROUTE",
    "HTTP_ROUTE",
    "HTTP_ROUTE_POLICY",
    "INGRESS",
    "INGRESS_CLASS",
    "INGRESS_KINDS",
    "L4_ROUTE_POLICY",
    "LEGACY_INGRESS",
    "LISTENER_SET",
    "NAMESPACE",
    "OLDER_TRAEFIK_KINDS",
    "OUR_GROUP",
    "OUR_KINDS",
    "PLUGIN",
    "POD",
    "REFERENCE_GRANT",
    "ROUTE_PLUGIN_CONFIG",
    "SECRET",
    "SERVICE",
    "SERVICE_EXPORT",
    "SERVICE_IMPORT",
    "TCP_ROUTE",
    "TLS_ROUTE",
    "TRAEFIK_KINDS",
    "TRAFFIC_POLICY",
    "UDP_ROUTE",
    "JsonObject",
    "KindChoice",
    "Kinds",
    "Narrowing",
    "ObjectRef",
    "OwnershipRule",
    "ResourceKind",
    "Sealing",
    "StatusShape",
    "WatchMode",
]
