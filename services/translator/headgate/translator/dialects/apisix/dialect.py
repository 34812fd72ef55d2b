"""The dialect's interface: what it needs, which objects are ours, and their translation."""

from collections.abc import Callable, Iterable, Mapping

from headgate.common.effort import bounded_effort
from headgate.common.problems import Problem
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
    JsonObject,
    ObjectRef,
)
from headgate.common.status import LoadBalancerAddress
from headgate.translator.dialects.apisix.backend_policy import translate_backend_policy
from headgate.translator.dialects.apisix.class_proxy import PROXY_SETTINGS
from headgate.translator.dialects.apisix.consumer import translate_consumer
from headgate.translator.dialects.apisix.context import Context, class_name, identify, owns
from headgate.translator.dialects.apisix.document import (
    CLUSTER_CONFIGS,
    CONSUMERS,
    GATEWAY_CONSUMERS,
    GATEWAY_PROXIES,
    GLOBAL_RULES,
    PLUGIN_CONFIGS,
    ROUTE_PLUGIN_CONFIGS,
    ROUTES,
    TLSES,
    UPSTREAMS,
    ApisixDocument,
)
from headgate.translator.dialects.apisix.fields import APISIX_FIELDS
from headgate.translator.dialects.apisix.gateway_consumer import is_of_our_gateway, translate_gateway_consumer
from headgate.translator.dialects.apisix.gateway_proxy import is_referred_to, translate_gateway_proxy
from headgate.translator.dialects.apisix.l4_policy import translate_l4_policy
from headgate.translator.dialects.apisix.legacy import restore_problems, upgrade
from headgate.translator.dialects.apisix.pods import POD_LABELS
from headgate.translator.dialects.apisix.route import translate_route
from headgate.translator.dialects.apisix.route_policy import is_for_others, translate_route_policy
from headgate.translator.dialects.apisix.shared import (
    find_plugins,
    translate_cluster_config,
    translate_global_rule,
    translate_plugin_config,
    translate_route_plugin_config,
    translate_upstream,
)
from headgate.translator.dialects.apisix.targets import BACKEND_POLICIES, L4_POLICIES, ROUTE_POLICIES
from headgate.translator.dialects.apisix.tls import translate_tls
from headgate.translator.fragments.fragment import Fragment, with_standing
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.classes import INGRESS_CLASSES, ClassQuestion, ClassSettings
from headgate.translator.sources.gateways import GATEWAY_CLASSES, GATEWAYS, REFERENCE_GRANTS
from headgate.translator.sources.policies import FindIngress, no_ingress
from headgate.translator.sources.shared_plugins import SharedPlugins
from headgate.translator.world.graph import Lookups
from headgate.translator.world.last_good import Standing

_REFERRED_TO = frozenset((APISIX_UPSTREAM.resource, APISIX_PLUGIN_CONFIG.resource))
"""Kinds that take effect only where another object names them."""
_WITHOUT_CLASS = frozenset((ROUTE_PLUGIN_CONFIG.resource, BACKEND_TRAFFIC_POLICY.resource, L4_ROUTE_POLICY.resource))
"""Kinds that are ours whoever names them, or is named by them."""
Translate = Callable[[ObjectRef, JsonObject, Context], Fragment]
_TRANSLATIONS: Mapping[str, Translate] = {
    APISIX_ROUTE.resource: translate_route,
    APISIX_UPSTREAM.resource: translate_upstream,
    APISIX_TLS.resource: translate_tls,
    APISIX_PLUGIN_CONFIG.resource: translate_plugin_config,
    APISIX_GLOBAL_RULE.resource: translate_global_rule,
    APISIX_CONSUMER.resource: translate_consumer,
    GATEWAY_PROXY.resource: translate_gateway_proxy,
    GATEWAY_CONSUMER.resource: translate_gateway_consumer,
    ROUTE_PLUGIN_CONFIG.resource: translate_route_plugin_config,
    APISIX_CLUSTER_CONFIG.resource: translate_cluster_config,
    BACKEND_TRAFFIC_POLICY.resource: translate_backend_policy,
    HTTP_ROUTE_POLICY.resource: translate_route_policy,
    L4_ROUTE_POLICY.resource: translate_l4_policy,
}


class ApisixDialect:
    """The resources of Apache APISIX' ingress controller."""

    name = "apisix"
    roots = (
        ROUTES,
        UPSTREAMS,
        TLSES,
        PLUGIN_CONFIGS,
        GLOBAL_RULES,
        CONSUMERS,
        CLUSTER_CONFIGS,
        GATEWAY_PROXIES,
        GATEWAY_CONSUMERS,
        ROUTE_PLUGIN_CONFIGS,
        BACKEND_POLICIES,
        ROUTE_POLICIES,
        L4_POLICIES,
    )
    reads = (
        INGRESS_CLASSES,
        SECRETS,
        POD_LABELS,
        UPSTREAMS,
        PLUGIN_CONFIGS,
        GATEWAY_PROXIES,
        GATEWAYS,
        GATEWAY_CLASSES,
        REFERENCE_GRANTS,
        BACKEND_POLICIES,
    )
    fields = APISIX_FIELDS

    def __init__(self, settings: ClassSettings, find_ingress: FindIngress = no_ingress) -> None:
        """Take the settings, and who knows the Ingresses that policies are about."""
        self._settings, self._find_ingress = settings, find_ingress
        self._stored = {stored.kind.resource: stored for stored in self.roots}

    def concerns(self, document: ApisixDocument) -> bool:
        """Whether an object may contribute: its class is looked up later, as it may change without the object."""
        return True

    def check(self, ref: ObjectRef, manifest: JsonObject, document: ApisixDocument) -> Iterable[Problem]:
        """Return what is wrong with an object by itself: what its translation says while everything else is there."""
        return self._translate(ref, manifest, None).problems

    def translate(self, ref: ObjectRef, lookups: Lookups) -> Fragment | None:
        """Return an object's contribution; None where it is gone or of another class."""
        standing = lookups.standing(self._stored[ref.resource], ref.namespace, ref.name)
        if standing is None:
            return None
        present, good = (version and version.form and version.form.decode() for version in standing)
        if present is not None and not self._owns(ref, present, lookups):
            return None
        if good is not None and not self._owns(ref, good, lookups):
            good, standing = None, Standing(standing.present)
        served = present if good is None else good
        return None if served is None else with_standing(self._translate(ref, served, lookups), standing)

    def _owns(self, ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
        if ref.resource == GATEWAY_PROXY.resource:
            return is_referred_to(ref, lookups, self._settings)
        if ref.resource == GATEWAY_CONSUMER.resource:
            return is_of_our_gateway(ref, manifest, lookups, self._settings)
        if ref.resource in _WITHOUT_CLASS:
            return True
        if ref.resource == HTTP_ROUTE_POLICY.resource:
            return not is_for_others(ref, manifest, self._context(manifest, lookups))
        return owns(manifest, lookups, self._settings, is_referred_to=ref.resource in _REFERRED_TO)

    @bounded_effort()
    def _translate(self, ref: ObjectRef, manifest: JsonObject, lookups: Lookups | None) -> Fragment:
        upgraded = upgrade(manifest)
        fragment = _TRANSLATIONS[ref.resource](ref, upgraded, self._context(upgraded, lookups))
        return fragment if upgraded is manifest else restore_problems(fragment, manifest)

    def _context(self, manifest: JsonObject, lookups: Lookups | None) -> Context:
        return Context(lookups, self._settings, class_name(manifest), find_ingress=self._find_ingress)

    def find_plugins(self, lookups: Lookups, namespace: str, name: str, class_name: str | None) -> SharedPlugins:
        """Return the plugins of an ApisixPluginConfig, for other dialects."""
        return find_plugins(Context(lookups, self._settings, class_name), lookups, namespace, name)

    def find_addresses(self, lookups: Lookups, class_name: str | None) -> tuple[LoadBalancerAddress, ...] | None:
        """Return the addresses that the GatewayProxy of a class says for statuses, for other dialects."""
        return lookups.derive(PROXY_SETTINGS, ClassQuestion(lookups.cluster, class_name, self._settings)).addresses

    def refuse(self, ref: ObjectRef, document: ApisixDocument, error: Exception) -> Fragment:
        """Stand in for an object that made us fail."""
        message = f"Headgate failed on this object ({type(error).__name__}); its log has the details"
        return Fragment(
            identify(ref, document.decode()),
            problems=(Problem(reason="InternalError", message=message),),
            falls_through=True,
        )
