"""Names of Kubernetes resources: which kinds exist for us, and how one object is referred to.

A kind is known by its API group and plural (`networking.k8s.io`, `ingresses`), never by its version: the watcher
may read an object in any served version, and the translator decides what it understands.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

JsonObject = dict[str, Any]
"""A decoded JSON object, as a Kubernetes manifest is one."""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind of object that Headgate reads."""

    group: str
    """API group; empty for the core group."""
    resource: str
    """Plural in lower case, as in API paths: `ingresses`."""
    kind: str
    """Kind as in manifests: `Ingress`."""
    versions: tuple[str, ...]
    """Versions that we understand, preferred first."""
    namespaced: bool = True

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


INGRESS = ResourceKind("networking.k8s.io", "ingresses", "Ingress", ("v1", "v1beta1"))
LEGACY_INGRESS = ResourceKind("extensions", "ingresses", "Ingress", ("v1beta1",))
INGRESS_CLASS = ResourceKind("networking.k8s.io", "ingressclasses", "IngressClass", ("v1", "v1beta1"), namespaced=False)
SERVICE = ResourceKind("", "services", "Service", ("v1",))
ENDPOINT_SLICE = ResourceKind("discovery.k8s.io", "endpointslices", "EndpointSlice", ("v1", "v1beta1"))
ENDPOINTS = ResourceKind("", "endpoints", "Endpoints", ("v1",))
NAMESPACE = ResourceKind("", "namespaces", "Namespace", ("v1",), namespaced=False)
SECRET = ResourceKind("", "secrets", "Secret", ("v1",))
POD = ResourceKind("", "pods", "Pod", ("v1",))
"""Of which only the labels are read, and only where that is asked for."""
SERVICE_EXPORT = ResourceKind("multicluster.x-k8s.io", "serviceexports", "ServiceExport", ("v1beta1", "v1alpha1"))
GATEWAY_GROUP = "gateway.networking.k8s.io"
GATEWAY_CLASS = ResourceKind(GATEWAY_GROUP, "gatewayclasses", "GatewayClass", ("v1", "v1beta1"), namespaced=False)
GATEWAY = ResourceKind(GATEWAY_GROUP, "gateways", "Gateway", ("v1", "v1beta1"))
REFERENCE_GRANT = ResourceKind(GATEWAY_GROUP, "referencegrants", "ReferenceGrant", ("v1", "v1beta1"))
GATEWAY_KINDS = (GATEWAY_CLASS, GATEWAY, REFERENCE_GRANT)
"""Of Gateway API: whose what names a Gateway is, and what may be referred to from other namespaces. No route of it."""
APISIX_GROUP = "apisix.apache.org"
APISIX_ROUTE = ResourceKind(
    APISIX_GROUP, "apisixroutes", "ApisixRoute", ("v2", "v2beta3", "v2beta2", "v2beta1", "v2alpha1", "v1")
)
APISIX_UPSTREAM = ResourceKind(APISIX_GROUP, "apisixupstreams", "ApisixUpstream", ("v2", "v2beta3", "v1"))
APISIX_TLS = ResourceKind(APISIX_GROUP, "apisixtlses", "ApisixTls", ("v2", "v2beta3", "v1"))
APISIX_PLUGIN_CONFIG = ResourceKind(APISIX_GROUP, "apisixpluginconfigs", "ApisixPluginConfig", ("v2", "v2beta3"))
APISIX_GLOBAL_RULE = ResourceKind(APISIX_GROUP, "apisixglobalrules", "ApisixGlobalRule", ("v2", "v2beta3"))
APISIX_CONSUMER = ResourceKind(APISIX_GROUP, "apisixconsumers", "ApisixConsumer", ("v2", "v2beta3", "v2alpha1"))
APISIX_CLUSTER_CONFIG = ResourceKind(
    APISIX_GROUP, "apisixclusterconfigs", "ApisixClusterConfig", ("v2", "v2beta3", "v2alpha1"), namespaced=False
)
GATEWAY_PROXY = ResourceKind(APISIX_GROUP, "gatewayproxies", "GatewayProxy", ("v1alpha1",))
GATEWAY_CONSUMER = ResourceKind(APISIX_GROUP, "consumers", "Consumer", ("v1alpha1",))
ROUTE_PLUGIN_CONFIG = ResourceKind(APISIX_GROUP, "pluginconfigs", "PluginConfig", ("v1alpha1",))
BACKEND_TRAFFIC_POLICY = ResourceKind(APISIX_GROUP, "backendtrafficpolicies", "BackendTrafficPolicy", ("v1alpha1",))
HTTP_ROUTE_POLICY = ResourceKind(APISIX_GROUP, "httproutepolicies", "HTTPRoutePolicy", ("v1alpha1",))
L4_ROUTE_POLICY = ResourceKind(APISIX_GROUP, "l4routepolicies", "L4RoutePolicy", ("v1alpha1",))
POLICY_KINDS = (BACKEND_TRAFFIC_POLICY, HTTP_ROUTE_POLICY, L4_ROUTE_POLICY)
"""Of Apache APISIX' ingress controller: each says of its targets how it stands, in `status.ancestors`."""
APISIX_KINDS = (
    *POLICY_KINDS,
    GATEWAY_PROXY,
    ROUTE_PLUGIN_CONFIG,
    GATEWAY_CONSUMER,
    APISIX_CLUSTER_CONFIG,
    APISIX_PLUGIN_CONFIG,
    APISIX_UPSTREAM,
    APISIX_CONSUMER,
    APISIX_GLOBAL_RULE,
    APISIX_TLS,
    APISIX_ROUTE,
)
"""Of Apache APISIX' ingress controller; what others refer to comes first."""
CLUSTER = ResourceKind("headgate.dev", "clusters", "Cluster", ("v1",), namespaced=False)
"""Ours: how a cluster takes part, written into the log by people (`headgate.common.clusters`)."""


class ObjectRef(NamedTuple):
    """One object in one cluster. Namespace is empty for cluster-scoped objects."""

    cluster: str
    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.cluster}: {self.resource} {where}"
