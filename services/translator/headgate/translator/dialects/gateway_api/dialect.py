"""The dialect's value: which kinds it has, and whose they are."""

from collections.abc import Callable, Sequence
from typing import Final

from headgate.common.resources import (
    GRPC_ROUTE,
    HTTP_ROUTE,
    TCP_ROUTE,
    TLS_ROUTE,
    UDP_ROUTE,
    JsonObject,
    ObjectRef,
    ResourceKind,
)
from headgate.translator.dialects.gateway_api.fields import (
    BACKEND_TLS_POLICY_FIELDS,
    GATEWAY_CLASS_FIELDS,
    GATEWAY_FIELDS,
    GRPC_ROUTE_FIELDS,
    HTTP_ROUTE_FIELDS,
    LISTENER_SET_FIELDS,
    STREAM_ROUTE_FIELDS,
    TLS_ROUTE_FIELDS,
    TRAFFIC_POLICY_FIELDS,
)
from headgate.translator.dialects.gateway_api.gateways.gateway import translate_gateway
from headgate.translator.dialects.gateway_api.gateways.gateway_class import (
    is_of_our_controller,
    translate_gateway_class,
)
from headgate.translator.dialects.gateway_api.gateways.listener_set import (
    is_of_our_gateway,
    translate_listener_set,
)
from headgate.translator.dialects.gateway_api.parents import find_gateway
from headgate.translator.dialects.gateway_api.policies.backend_tls import (
    BACKEND_TLS_POLICIES,
    is_for_our_routes,
    translate_backend_tls_policy,
)
from headgate.translator.dialects.gateway_api.policies.backend_traffic import (
    TRAFFIC_POLICIES,
    is_for_routes_of_ours,
    translate_traffic_policy,
)
from headgate.translator.dialects.gateway_api.routes.grpc_route import translate_grpc_route
from headgate.translator.dialects.gateway_api.routes.http_route import translate_http_route
from headgate.translator.dialects.gateway_api.routes.policies import find_sections
from headgate.translator.dialects.gateway_api.routes.stream_route import (
    translate_tcp_route,
    translate_tls_route,
    translate_udp_route,
)
from headgate.translator.dialects.gateway_api.stored import ROUTES, StoredRoute, read_facts
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.verdicts import FieldVerdict
from headgate.translator.objects.dialect import Dialect, TranslatedKind, translated_documents
from headgate.translator.objects.document import identify
from headgate.translator.objects.ownership import ByRule
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.config_maps import CONFIG_MAPS
from headgate.translator.sources.gateways import (
    DEFINITIONS,
    GATEWAY_CLASSES,
    GATEWAYS,
    LISTENER_SETS,
    REFERENCE_GRANTS,
    StoredGateway,
    class_name,
    owns_class,
)
from headgate.translator.sources.namespaces import NAMESPACES
from headgate.translator.sources.policies import SECTIONS
from headgate.translator.world.attachments import Provider
from headgate.translator.world.graph import Lookups

_Translate = Callable[[ObjectRef, JsonObject, Lookups], Fragment]
_OTHERS: Final = "--controller-names adopts that"


def _is_ours(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    return owns_class(class_name(manifest), lookups)


def _has_our_parent(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    facts = read_facts({**manifest, "metadata": {"namespace": ref.namespace, "name": ref.name}}, "")
    return any(find_gateway(each, lookups) is not None for each in facts.parents)


def _route(
    kind: ResourceKind, translate: _Translate, fields: Sequence[FieldVerdict]
) -> TranslatedKind[StoredRoute, JsonObject]:
    return TranslatedKind(
        ROUTES[kind],
        StoredRoute.decode,
        identify,
        translate,
        ownership=ByRule(_has_our_parent, "none of its parents is a Gateway of a class of ours"),
        fields=fields,
    )


GATEWAY_API = Dialect(
    name="gateway_api",
    kinds=(
        translated_documents(
            GATEWAY_CLASSES,
            translate_gateway_class,
            ownership=ByRule(is_of_our_controller, f"its controller is another one; {_OTHERS}"),
            fields=GATEWAY_CLASS_FIELDS,
        ),
        TranslatedKind(
            GATEWAYS,
            StoredGateway.decode,
            identify,
            translate_gateway,
            ownership=ByRule(_is_ours, f"its GatewayClass is of another controller, or not there; {_OTHERS}"),
            fields=GATEWAY_FIELDS,
        ),
        translated_documents(
            LISTENER_SETS,
            translate_listener_set,
            ownership=ByRule(is_of_our_gateway, "its Gateway is none of a class of ours, or not there"),
            fields=LISTENER_SET_FIELDS,
        ),
        _route(HTTP_ROUTE, translate_http_route, HTTP_ROUTE_FIELDS),
        _route(GRPC_ROUTE, translate_grpc_route, GRPC_ROUTE_FIELDS),
        _route(TLS_ROUTE, translate_tls_route, TLS_ROUTE_FIELDS),
        _route(TCP_ROUTE, translate_tcp_route, STREAM_ROUTE_FIELDS),
        _route(UDP_ROUTE, translate_udp_route, STREAM_ROUTE_FIELDS),
        translated_documents(
            BACKEND_TLS_POLICIES,
            translate_backend_tls_policy,
            ownership=ByRule(is_for_our_routes, "no route of a Gateway of a class of ours goes to its Services"),
            fields=BACKEND_TLS_POLICY_FIELDS,
        ),
        translated_documents(
            TRAFFIC_POLICIES,
            translate_traffic_policy,
            ownership=ByRule(is_for_routes_of_ours, "no route of a Gateway of a class of ours goes to its Services"),
            fields=TRAFFIC_POLICY_FIELDS,
        ),
    ),
    reads=(
        SECRETS,
        CONFIG_MAPS,
        NAMESPACES,
        DEFINITIONS,
        GATEWAY_CLASSES,
        GATEWAYS,
        LISTENER_SETS,
        *ROUTES.values(),
        REFERENCE_GRANTS,
    ),
    provides=(Provider(SECTIONS, find_sections),),
)
