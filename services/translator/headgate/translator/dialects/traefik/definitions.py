"""The models and printed columns of the kinds' custom resource definitions."""

from collections.abc import Mapping

from headgate.common.resources import ResourceKind
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
    TRAEFIK_SERVICE,
)
from headgate.translator.dialects.traefik.models.middleware import MiddlewareSpec
from headgate.translator.dialects.traefik.models.route import IngressRouteSpec
from headgate.translator.dialects.traefik.models.stream import (
    IngressRouteTcpSpec,
    IngressRouteUdpSpec,
    MiddlewareTcpSpec,
)
from headgate.translator.dialects.traefik.models.tls import TlsOptionSpec, TlsStoreSpec
from headgate.translator.dialects.traefik.models.traefik_service import TraefikServiceSpec
from headgate.translator.dialects.traefik.models.transport import ServersTransportSpec, ServersTransportTcpSpec
from headgate.translator.objects.definitions import Column, Definition

_ENTRY_POINTS: Column = ("Entry Points", ".spec.entryPoints")
_RULES: tuple[Column, ...] = (("Rules", ".spec.routes[*].match"), _ENTRY_POINTS)

DEFINITIONS: Mapping[ResourceKind, Definition] = {
    INGRESS_ROUTE: Definition(IngressRouteSpec, _RULES),
    INGRESS_ROUTE_TCP: Definition(IngressRouteTcpSpec, _RULES),
    INGRESS_ROUTE_UDP: Definition(IngressRouteUdpSpec, (_ENTRY_POINTS,)),
    MIDDLEWARE: Definition(MiddlewareSpec),
    MIDDLEWARE_TCP: Definition(MiddlewareTcpSpec),
    TRAEFIK_SERVICE: Definition(TraefikServiceSpec),
    TLS_OPTION: Definition(TlsOptionSpec, (("Minimum", ".spec.minVersion"),)),
    TLS_STORE: Definition(TlsStoreSpec, (("Default", ".spec.defaultCertificate.secretName"),)),
    SERVERS_TRANSPORT: Definition(ServersTransportSpec, (("Server Name", ".spec.serverName"),)),
    SERVERS_TRANSPORT_TCP: Definition(ServersTransportTcpSpec),
}
"""By kind of the newer group; objects of the older one are written alike."""
