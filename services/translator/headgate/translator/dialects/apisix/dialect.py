"""The dialect's value: which kinds it has, whose they are, and what they say of the objects of other dialects."""

from collections.abc import Callable

from headgate.common.resources import APISIX_ROUTE, APISIX_TLS, JsonObject, ObjectRef
from headgate.translator.annotations.apisix import APISIX_ANNOTATIONS
from headgate.translator.annotations.host_sharing import KEY as HOST_SHARING
from headgate.translator.annotations.vocabulary import single, vocabulary_of
from headgate.translator.dialects.apisix.class_proxy import find_addresses
from headgate.translator.dialects.apisix.consumers.consumer import translate_consumer
from headgate.translator.dialects.apisix.consumers.gateway_consumer import is_of_our_gateway, translate_gateway_consumer
from headgate.translator.dialects.apisix.context import BY_CLASS, Context, class_name
from headgate.translator.dialects.apisix.definitions import DEFINITIONS
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
)
from headgate.translator.dialects.apisix.fields import APISIX_FIELDS
from headgate.translator.dialects.apisix.gateway_proxy import (
    find_gateway_parameters,
    is_referred_to,
    translate_gateway_proxy,
)
from headgate.translator.dialects.apisix.policies.backend_policy import find_backend_policy, translate_backend_policy
from headgate.translator.dialects.apisix.policies.l4_policy import find_stream_policy, translate_l4_policy
from headgate.translator.dialects.apisix.policies.route_policy import (
    find_route_policy,
    translate_route_policy,
)
from headgate.translator.dialects.apisix.policies.targets import (
    BACKEND_POLICIES,
    L4_POLICIES,
    ROUTE_POLICIES,
    is_about_ours,
)
from headgate.translator.dialects.apisix.routes.legacy import restore_problems, upgrade
from headgate.translator.dialects.apisix.routes.route import translate_route
from headgate.translator.dialects.apisix.shared import (
    find_plugins,
    translate_cluster_config,
    translate_global_rule,
    translate_plugin_config,
    translate_route_plugin_config,
    translate_upstream,
)
from headgate.translator.dialects.apisix.tls import translate_tls
from headgate.translator.dialects.apisix.upstreams.backends import NodesBackend, ServiceBackend
from headgate.translator.dialects.apisix.upstreams.pods import POD_LABELS
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.objects.dialect import Dialect, TranslatedKind, translated_documents
from headgate.translator.objects.ownership import EVERY_OBJECT, ByClass, ByRule, Ownership
from headgate.translator.sources import policies
from headgate.translator.sources.addresses import CLASS_ADDRESSES
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.classes import INGRESS_CLASSES
from headgate.translator.sources.gateway_parameters import GATEWAY_PARAMETERS
from headgate.translator.sources.gateways import GATEWAY_CLASSES, GATEWAYS, REFERENCE_GRANTS
from headgate.translator.sources.plugin_bundles import PLUGIN_BUNDLES
from headgate.translator.world.attachments import Provider
from headgate.translator.world.documents import Document
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import StoredKind

_REFERRED_TO = ByClass(class_name, is_referred_to=True)
_BY_GATEWAY = ByRule(is_of_our_gateway, "its Gateway is of another controller; --controller-names adopts that")


def _kind(
    stored: StoredKind[Document],
    translate: Callable[[ObjectRef, JsonObject, Context], Fragment],
    ownership: Ownership = BY_CLASS,
) -> TranslatedKind[Document, JsonObject]:
    def translate_upgraded(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
        upgraded = upgrade(manifest)
        fragment = translate(ref, upgraded, Context(lookups, class_name(upgraded)))
        return fragment if upgraded is manifest else restore_problems(fragment, manifest)

    return translated_documents(
        stored,
        translate_upgraded,
        ownership=ownership,
        definition=DEFINITIONS[stored.kind],
        fields=APISIX_FIELDS[stored.kind.resource],
    )


APISIX = Dialect(
    name="apisix",
    vocabularies=(
        vocabulary_of(APISIX_ANNOTATIONS, {"Ingress": "Ingresses", "ApisixRoute": "ApisixRoutes"}),
        single(HOST_SHARING, APISIX_ROUTE, APISIX_TLS),
    ),
    upstreams=(ServiceBackend.of_key, NodesBackend.of_key),
    kinds=(
        _kind(ROUTES, translate_route),
        _kind(UPSTREAMS, translate_upstream, _REFERRED_TO),
        _kind(TLSES, translate_tls),
        _kind(PLUGIN_CONFIGS, translate_plugin_config, _REFERRED_TO),
        _kind(GLOBAL_RULES, translate_global_rule),
        _kind(CONSUMERS, translate_consumer),
        _kind(CLUSTER_CONFIGS, translate_cluster_config),
        _kind(GATEWAY_PROXIES, translate_gateway_proxy, ByRule(is_referred_to)),
        _kind(GATEWAY_CONSUMERS, translate_gateway_consumer, _BY_GATEWAY),
        _kind(ROUTE_PLUGIN_CONFIGS, translate_route_plugin_config, EVERY_OBJECT),
        _kind(BACKEND_POLICIES, translate_backend_policy, EVERY_OBJECT),
        _kind(ROUTE_POLICIES, translate_route_policy, ByRule(is_about_ours)),
        _kind(L4_POLICIES, translate_l4_policy, ByRule(is_about_ours)),
    ),
    reads=(
        INGRESS_CLASSES,
        SECRETS,
        POD_LABELS,
        UPSTREAMS,
        PLUGIN_CONFIGS,
        ROUTE_PLUGIN_CONFIGS,
        GATEWAY_PROXIES,
        GATEWAYS,
        GATEWAY_CLASSES,
        REFERENCE_GRANTS,
        BACKEND_POLICIES,
    ),
    provides=(
        Provider(PLUGIN_BUNDLES, find_plugins),
        Provider(CLASS_ADDRESSES, find_addresses),
        Provider(policies.BACKEND_POLICIES, find_backend_policy),
        Provider(policies.ROUTE_POLICIES, find_route_policy),
        Provider(policies.CONNECTION_POLICIES, find_stream_policy),
        Provider(GATEWAY_PARAMETERS, find_gateway_parameters),
    ),
)
