"""The dialect's value: which kinds it has, and whose they are."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.resources.traefik import (
    INGRESS_ROUTE,
    INGRESS_ROUTE_TCP,
    INGRESS_ROUTE_UDP,
    MIDDLEWARE,
    MIDDLEWARE_TCP,
    SERVERS_TRANSPORT,
    SERVERS_TRANSPORT_TCP,
    TLS_OPTION,
    TLS_STORE,
    TRAEFIK_KINDS,
    TRAEFIK_SERVICE,
)
from headgate.translator.annotations.vocabulary import TRAEFIK_ANNOTATIONS, single
from headgate.translator.dialects.traefik.definitions import DEFINITIONS
from headgate.translator.dialects.traefik.document import CLASS_ANNOTATION, STORED, is_ours, is_read
from headgate.translator.dialects.traefik.fields import TRAEFIK_FIELDS
from headgate.translator.dialects.traefik.ingresses import routing_of
from headgate.translator.dialects.traefik.middlewares.translated import translate_middleware
from headgate.translator.dialects.traefik.routes.route import translate_route
from headgate.translator.dialects.traefik.services.traefik_service import translate_traefik_service
from headgate.translator.dialects.traefik.services.transport import translate_transport, translate_transport_tcp
from headgate.translator.dialects.traefik.streams.middlewares import translate_middleware_tcp
from headgate.translator.dialects.traefik.streams.tcp import translate_tcp_route
from headgate.translator.dialects.traefik.streams.udp import translate_udp_route
from headgate.translator.dialects.traefik.tls.options import translate_tls_option
from headgate.translator.dialects.traefik.tls.store import translate_tls_store
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.objects.dialect import Dialect, TranslatedKind, translated_documents
from headgate.translator.objects.ownership import ByRule
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.config_maps import CONFIG_MAPS
from headgate.translator.sources.ingress_routing import INGRESS_ROUTING
from headgate.translator.world.attachments import Provider
from headgate.translator.world.documents import Document
from headgate.translator.world.graph import Lookups

_ROUTES: Final = (INGRESS_ROUTE, INGRESS_ROUTE_TCP, INGRESS_ROUTE_UDP)
_REFERRED_TO: Final = (
    MIDDLEWARE,
    MIDDLEWARE_TCP,
    SERVERS_TRANSPORT,
    SERVERS_TRANSPORT_TCP,
    TLS_OPTION,
    TRAEFIK_SERVICE,
)
_TRANSLATIONS: Final[dict[Any, Callable[[ObjectRef, JsonObject, Lookups], Fragment]]] = {
    INGRESS_ROUTE: translate_route,
    INGRESS_ROUTE_TCP: translate_tcp_route,
    INGRESS_ROUTE_UDP: translate_udp_route,
    MIDDLEWARE: translate_middleware,
    MIDDLEWARE_TCP: translate_middleware_tcp,
    SERVERS_TRANSPORT: translate_transport,
    SERVERS_TRANSPORT_TCP: translate_transport_tcp,
    TLS_OPTION: translate_tls_option,
    TLS_STORE: translate_tls_store,
    TRAEFIK_SERVICE: translate_traefik_service,
}


_NOT_READ: Final = "the settings HEADGATE_TRAEFIK_NAMESPACES and HEADGATE_TRAEFIK_LABEL_SELECTOR leave it out"


def _is_read(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    return is_read(ref.namespace, manifest, lookups)


def _is_ours(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    return is_ours(ref.namespace, manifest, lookups)


_BY_CLASS: Final = ByRule(
    _is_ours, f"its class is not that of the setting HEADGATE_TRAEFIK_INGRESS_CLASS, or {_NOT_READ}"
)
_ALL_READ: Final = ByRule(_is_read, _NOT_READ)


def _kinds() -> Iterator[TranslatedKind[Document, JsonObject]]:
    for kind in TRAEFIK_KINDS:
        definition, (newer, older) = DEFINITIONS[kind], STORED[kind]
        for stored in (newer, older):
            yield translated_documents(
                stored,
                _TRANSLATIONS[kind],
                ownership=_BY_CLASS if kind in _ROUTES else _ALL_READ,
                definition=definition,
                fields=TRAEFIK_FIELDS[kind.resource],
                yields_to=None if stored is newer else newer,
            )


TRAEFIK = Dialect(
    name="traefik",
    kinds=tuple(_kinds()),
    reads=(SECRETS, CONFIG_MAPS, *(stored for kind in _REFERRED_TO for stored in STORED[kind])),
    vocabularies=(single(CLASS_ANNOTATION, *_ROUTES), TRAEFIK_ANNOTATIONS),
    provides=(Provider(INGRESS_ROUTING, routing_of),),
)
