"""Gateway API, as far as it says whose a Consumer is and what may be referred to in other namespaces."""

from headgate.common.resources.kind import ResourceKind

GATEWAY_GROUP = "gateway.networking.k8s.io"
GATEWAY_CLASS = ResourceKind(GATEWAY_GROUP, "gatewayclasses", "GatewayClass", ("v1", "v1beta1"), namespaced=False)
GATEWAY = ResourceKind(GATEWAY_GROUP, "gateways", "Gateway", ("v1", "v1beta1"))
REFERENCE_GRANT = ResourceKind(GATEWAY_GROUP, "referencegrants", "ReferenceGrant", ("v1", "v1beta1"))

GATEWAY_KINDS = (GATEWAY_CLASS, GATEWAY, REFERENCE_GRANT)
