"""The models and printed columns of the kinds' custom resource definitions."""

from collections.abc import Mapping

from headgate.common.resources import (
    APISIX_CLUSTER_CONFIG,
    APISIX_CONSUMER,
    APISIX_GLOBAL_RULE,
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
    ResourceKind,
)
from headgate.translator.dialects.apisix.models import (
    BackendTrafficPolicySpec,
    ClusterConfigSpec,
    ConsumerSpec,
    GlobalRuleSpec,
    HttpRoutePolicySpec,
    PluginConfigSpec,
    RouteSpec,
    TlsSpec,
    UpstreamSpec,
)
from headgate.translator.dialects.apisix.models.gateway_consumer import GatewayConsumerSpec
from headgate.translator.dialects.apisix.models.gateway_proxy import GatewayProxySpec
from headgate.translator.dialects.apisix.models.legacy import LegacyRouteSpec
from headgate.translator.dialects.apisix.models.plugin import RoutePluginConfigSpec
from headgate.translator.dialects.apisix.models.policy import L4RoutePolicySpec
from headgate.translator.objects.definitions import Column, Definition

_TARGETS: tuple[Column, ...] = (("Targets", ".spec.targetRefs[*].name"),)


DEFINITIONS: Mapping[ResourceKind, Definition] = {
    APISIX_ROUTE: Definition(
        RouteSpec,
        (
            ("Hosts", ".spec.http[*].match.hosts"),
            ("URIs", ".spec.http[*].match.paths"),
            ("Services", ".spec.http[*].backends[*].serviceName"),
        ),
        older={"v1": Definition(LegacyRouteSpec, (("Hosts", ".spec.rules[*].host"),))},
    ),
    APISIX_UPSTREAM: Definition(UpstreamSpec, (("Scheme", ".spec.scheme"),)),
    APISIX_TLS: Definition(
        TlsSpec,
        (
            ("SNIs", ".spec.hosts"),
            ("Secret", ".spec.secret.name"),
            ("Secret Namespace", ".spec.secret.namespace"),
            ("Client CA", ".spec.client.caSecret.name"),
        ),
    ),
    APISIX_CONSUMER: Definition(ConsumerSpec),
    APISIX_PLUGIN_CONFIG: Definition(PluginConfigSpec, (("Plugins", ".spec.plugins[*].name"),)),
    APISIX_CLUSTER_CONFIG: Definition(ClusterConfigSpec),
    GATEWAY_PROXY: Definition(GatewayProxySpec, (("Plugins", ".spec.plugins[*].name"),)),
    GATEWAY_CONSUMER: Definition(GatewayConsumerSpec, (("Gateway", ".spec.gatewayRef.name"),)),
    ROUTE_PLUGIN_CONFIG: Definition(RoutePluginConfigSpec, (("Plugins", ".spec.plugins[*].name"),)),
    APISIX_GLOBAL_RULE: Definition(GlobalRuleSpec, (("Plugins", ".spec.plugins[*].name"),)),
    BACKEND_TRAFFIC_POLICY: Definition(BackendTrafficPolicySpec, _TARGETS),
    HTTP_ROUTE_POLICY: Definition(HttpRoutePolicySpec, _TARGETS),
    L4_ROUTE_POLICY: Definition(L4RoutePolicySpec, _TARGETS),
}
