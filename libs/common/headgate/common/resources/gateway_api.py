"""Gateway API. Its custom resource definitions are Kubernetes' own: `crds/` has none of them."""

from headgate.common.resources.kind import OwnershipRule, ResourceKind, StatusShape
from headgate.common.resources.references import CONFIG_MAPS, ReferenceField, secret_field

GATEWAY_GROUP = "gateway.networking.k8s.io"
EXPERIMENTAL_GROUP = "gateway.networking.x-k8s.io"
_VERSIONS = ("v1", "v1beta1")
_DIALECT = "gateway_api"


def _authorities(path: str) -> ReferenceField:
    """Return the field of a Gateway that names ConfigMaps with authorities of clients."""
    return ReferenceField(CONFIG_MAPS, tuple(f"spec.tls.frontend.{path}.caCertificateRefs.*".split(".")))


GATEWAY_CLASS = ResourceKind(
    GATEWAY_GROUP,
    "gatewayclasses",
    "GatewayClass",
    _VERSIONS,
    namespaced=False,
    short_names=("gc",),
    dialect=_DIALECT,
    ownership=OwnershipRule.REFERENCE,
    status=StatusShape.ACCEPTANCE,
    is_asked=True,
    references=(ReferenceField(CONFIG_MAPS, ("spec", "parametersRef")),),
)
GATEWAY = ResourceKind(
    GATEWAY_GROUP,
    "gateways",
    "Gateway",
    _VERSIONS,
    short_names=("gtw",),
    dialect=_DIALECT,
    ownership=OwnershipRule.REFERENCE,
    status_fields=("addresses",),  # a Gateway keeps those that it has
    status=StatusShape.LISTENERS,
    is_asked=True,
    references=(
        secret_field("spec.listeners.*.tls.certificateRefs.*"),
        secret_field("spec.tls.backend.clientCertificateRef"),
        ReferenceField(CONFIG_MAPS, ("spec", "infrastructure", "parametersRef")),
        _authorities("default.validation"),
        _authorities("perPort.*.tls.validation"),
    ),
)

LISTENER_SET = ResourceKind(
    GATEWAY_GROUP,
    "listenersets",
    "ListenerSet",
    ("v1",),
    short_names=("lset",),
    dialect=_DIALECT,
    ownership=OwnershipRule.GATEWAY,
    status=StatusShape.LISTENERS,
    references=(secret_field("spec.listeners.*.tls.certificateRefs.*"),),
)


def _route(resource: str, kind: str, *versions: str) -> ResourceKind:
    return ResourceKind(
        GATEWAY_GROUP,
        resource,
        kind,
        versions,
        dialect=_DIALECT,
        ownership=OwnershipRule.GATEWAY,
        status=StatusShape.PARENTS,
        is_asked=True,
    )


HTTP_ROUTE = _route("httproutes", "HTTPRoute", *_VERSIONS)
GRPC_ROUTE = _route("grpcroutes", "GRPCRoute", "v1")
TLS_ROUTE = _route("tlsroutes", "TLSRoute", "v1", "v1alpha3", "v1alpha2")
TCP_ROUTE = _route("tcproutes", "TCPRoute", "v1", "v1alpha2")
UDP_ROUTE = _route("udproutes", "UDPRoute", "v1", "v1alpha2")
BACKEND_TLS_POLICY = ResourceKind(
    GATEWAY_GROUP,
    "backendtlspolicies",
    "BackendTLSPolicy",
    ("v1", "v1alpha3"),
    short_names=("btlspolicy",),
    dialect=_DIALECT,
    ownership=OwnershipRule.REFERENCE,
    status=StatusShape.GATEWAY_ANCESTORS,
    is_asked=True,
    references=(ReferenceField(CONFIG_MAPS, ("spec", "validation", "caCertificateRefs", "*")),),
)
TRAFFIC_POLICY = ResourceKind(
    EXPERIMENTAL_GROUP,
    "xbackendtrafficpolicies",
    "XBackendTrafficPolicy",
    ("v1alpha1",),
    short_names=("xbtrafficpolicy",),
    dialect=_DIALECT,
    ownership=OwnershipRule.REFERENCE,
    status=StatusShape.GATEWAY_ANCESTORS,
    is_asked=True,
)
"""Of the experimental channel."""
REFERENCE_GRANT = ResourceKind(GATEWAY_GROUP, "referencegrants", "ReferenceGrant", _VERSIONS, short_names=("refgrant",))

GATEWAY_KINDS = (
    GATEWAY_CLASS,
    GATEWAY,
    LISTENER_SET,
    HTTP_ROUTE,
    GRPC_ROUTE,
    TLS_ROUTE,
    TCP_ROUTE,
    UDP_ROUTE,
    BACKEND_TLS_POLICY,
    TRAFFIC_POLICY,
    REFERENCE_GRANT,
)
