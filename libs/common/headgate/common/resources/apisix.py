"""The resources of Apache APISIX' ingress controller."""

from headgate.common.resources.kind import OwnershipRule, ResourceKind, Sealing, StatusShape
from headgate.common.resources.references import secret_field

APISIX_GROUP = "apisix.apache.org"
_V1ALPHA1 = ("v1alpha1",)


def _row(
    resource: str,
    kind: str,
    versions: tuple[str, ...],
    *short_names: str,
    namespaced: bool = True,
    ownership: OwnershipRule = OwnershipRule.CLASS,
    status: StatusShape = StatusShape.CONDITIONS,
    sealing: Sealing = Sealing.NOTHING,
    hidden: tuple[str, ...] = (),
    secrets: tuple[str, ...] = (),
) -> ResourceKind:
    return ResourceKind(
        APISIX_GROUP,
        resource,
        kind,
        versions,
        namespaced,
        short_names=short_names,
        has_whole_group=True,
        has_definition=True,
        dialect="apisix",
        ownership=ownership,
        sealing=sealing,
        hidden=hidden,
        references=tuple(map(secret_field, secrets)),
        status=status,
        is_asked=True,
    )


def _policy(resource: str, kind: str) -> ResourceKind:
    return _row(resource, kind, _V1ALPHA1, ownership=OwnershipRule.REFERENCE, status=StatusShape.ANCESTORS)


BACKEND_TRAFFIC_POLICY = _policy("backendtrafficpolicies", "BackendTrafficPolicy")
HTTP_ROUTE_POLICY = _policy("httproutepolicies", "HTTPRoutePolicy")
L4_ROUTE_POLICY = _policy("l4routepolicies", "L4RoutePolicy")
GATEWAY_PROXY = _row(
    "gatewayproxies",
    "GatewayProxy",
    _V1ALPHA1,
    "gp",
    ownership=OwnershipRule.REFERENCE,
    hidden=("spec.provider.controlPlane.auth.adminKey.value",),
)
ROUTE_PLUGIN_CONFIG = _row("pluginconfigs", "PluginConfig", _V1ALPHA1, ownership=OwnershipRule.REFERENCE)
GATEWAY_CONSUMER = _row(
    "consumers",
    "Consumer",
    _V1ALPHA1,
    ownership=OwnershipRule.GATEWAY,
    sealing=Sealing.CREDENTIALS,
    secrets=("spec.credentials.*.secretRef",),
)
APISIX_CLUSTER_CONFIG = _row(
    "apisixclusterconfigs", "ApisixClusterConfig", ("v2", "v2beta3", "v2alpha1"), "acc", namespaced=False
)
APISIX_PLUGIN_CONFIG = _row(
    "apisixpluginconfigs", "ApisixPluginConfig", ("v2", "v2beta3"), "apc", secrets=("spec.plugins.*.secretRef",)
)
APISIX_UPSTREAM = _row(
    "apisixupstreams",
    "ApisixUpstream",
    ("v2", "v2beta3", "v1"),
    "au",
    secrets=("spec.tlsSecret", "spec.portLevelSettings.*.tlsSecret"),
)
APISIX_CONSUMER = _row(
    "apisixconsumers",
    "ApisixConsumer",
    ("v2", "v2beta3", "v2alpha1"),
    "ac",
    sealing=Sealing.CREDENTIALS,
    secrets=("spec.authParameter.*.secretRef", "spec.plugins.*.secretRef"),
)
APISIX_GLOBAL_RULE = _row(
    "apisixglobalrules", "ApisixGlobalRule", ("v2", "v2beta3"), "agr", secrets=("spec.plugins.*.secretRef",)
)
APISIX_TLS = _row(
    "apisixtlses", "ApisixTls", ("v2", "v2beta3", "v1"), "atls", secrets=("spec.secret", "spec.client.caSecret")
)
APISIX_ROUTE = _row(
    "apisixroutes",
    "ApisixRoute",
    ("v2", "v2beta3", "v2beta2", "v2beta1", "v2alpha1", "v1"),
    "ar",
    secrets=("spec.http.*.plugins.*.secretRef", "spec.stream.*.plugins.*.secretRef"),
)

APISIX_KINDS = (
    BACKEND_TRAFFIC_POLICY,
    HTTP_ROUTE_POLICY,
    L4_ROUTE_POLICY,
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
"""What others refer to comes first."""
