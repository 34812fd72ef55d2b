"""The resources of Apache APISIX' ingress controller, as its CRDs (`apisix.apache.org/v2`) have them.

Reading, messages, the manifests in `crds/` and the field table of `docs/apisix.md` follow from these models.
"""

from headgate.translator.dialects.apisix.models.cluster import ClusterConfigSpec
from headgate.translator.dialects.apisix.models.consumer import ConsumerSpec
from headgate.translator.dialects.apisix.models.plugin import GlobalRuleSpec, PluginConfigSpec
from headgate.translator.dialects.apisix.models.policy import BackendTrafficPolicySpec, HttpRoutePolicySpec
from headgate.translator.dialects.apisix.models.route import RouteSpec
from headgate.translator.dialects.apisix.models.tls import TlsSpec
from headgate.translator.dialects.apisix.models.upstream import UpstreamSpec

__all__ = [
    "BackendTrafficPolicySpec",
    "ClusterConfigSpec",
    "ConsumerSpec",
    "GlobalRuleSpec",
    "HttpRoutePolicySpec",
    "PluginConfigSpec",
    "RouteSpec",
    "TlsSpec",
    "UpstreamSpec",
]
