"""IngressRouteTCP, IngressRouteUDP, and what is done with the connections of the former."""

from typing import Literal

from pydantic import Field

from headgate.translator.dialects.traefik.models.fields import Domain, ObjectReference, ProxyProtocol
from headgate.translator.dialects.traefik.models.guards import SourceRange
from headgate.translator.dialects.traefik.models.service import StreamService
from headgate.translator.manifests.models import Model, Name


class TcpService(StreamService):
    """A Service that connections go to."""

    servers_transport: str = Field(default="", description="ServersTransportTCP: how servers are spoken to.")
    tls: bool = Field(default=False, description="Speak TLS with the servers.")
    termination_delay: int | None = Field(default=None, description="Deprecated: use a ServersTransportTCP.")
    proxy_protocol: ProxyProtocol | None = Field(default=None, description="Deprecated: use a ServersTransportTCP.")


class TcpRule(Model):
    """Which connections are taken, and where they go."""

    match: Name = Field(description="Rule such as HostSNI(`example.com`).")
    priority: int = Field(default=0, le=9223372036854774807, description="The higher goes first; 0: the rule's length.")
    syntax: Literal["", "v2", "v3"] = Field(default="", description="Syntax of the rule: v3, the default, or v2.")
    services: tuple[TcpService, ...] = Field(default=(), description="Where the connections go.")
    middlewares: tuple[ObjectReference, ...] = Field(default=(), description="What is done on the way, in this order.")


class TcpTls(Model):
    """TLS for the server names of the routes."""

    secret_name: str = Field(default="", description="Secret with the certificate and its key.")
    passthrough: bool = Field(default=False, description="Leave TLS to the servers.")
    options: ObjectReference | None = Field(default=None, description="TLSOption: versions, ciphers, client auth.")
    store: ObjectReference | None = Field(default=None, description="TLSStore; only the default one is used.")
    cert_resolver: str = Field(default="", description="Who is asked for certificates.")
    domains: tuple[Domain, ...] = Field(default=(), description="Names that certificates are asked for.")


class IngressRouteTcpSpec(Model):
    """Routes of connections on some entry points."""

    ingress_class_name: str = Field(default="", description="Class of the object, beside the annotation.")
    entry_points: tuple[str, ...] = Field(default=(), description="Entry points; the default ones by default.")
    routes: tuple[TcpRule, ...] = Field(description="Rules, and where connections go.")
    tls: TcpTls | None = Field(default=None, description="TLS for the server names of the routes.")


class UdpRule(Model):
    """Where datagrams go."""

    services: tuple[StreamService, ...] = Field(default=(), description="Where the datagrams go.")


class IngressRouteUdpSpec(Model):
    """Routes of datagrams on some entry points."""

    ingress_class_name: str = Field(default="", description="Class of the object, beside the annotation.")
    entry_points: tuple[str, ...] = Field(default=(), description="Entry points; the default ones by default.")
    routes: tuple[UdpRule, ...] = Field(description="Where datagrams go.")


class ConnectionLimit(Model):
    """A bound of connections."""

    amount: int = Field(default=0, ge=0, description="Connections of one address at once.")


class MiddlewareTcpSpec(Model):
    """What is done with connections: one of these."""

    in_flight_conn: ConnectionLimit | None = Field(default=None, description="Bounds the connections of an address.")
    ip_allow_list: SourceRange | None = Field(default=None, description="Admits some networks only.")
    ip_white_list: SourceRange | None = Field(default=None, description="Deprecated name of ipAllowList.")
