"""TCP and UDP: ports that open and close with the table."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headgate.common.table.base import Entry, Provenance
from headgate.common.table.match import Condition
from headgate.common.table.tls import TlsPolicy


class WeightedUpstream(Entry):
    """One choice of a stream's split."""

    upstream: str
    """Key of an `Upstream` entry."""
    weight: int = Field(default=1, ge=0, le=1_000_000)


class MqttConnect(Entry):
    """What an MQTT client has to say first."""

    protocol_name: str = Field(default="MQTT", min_length=1)
    protocol_level: Literal[3, 4, 5]
    """5 is MQTT 5, 4 is MQTT 3.1.1, and 3 is MQTT 3.1, whose name is `MQIsdp`."""


class StreamRoute(Entry):
    """What happens to the connections (UDP: the sessions) of one port.

    Several TLS routes may share a port, told apart by their server names. If more than one accepts a name, the one with
    the higher priority wins. If priorities are equal, an exact name wins, then a wildcard of one label, then the
    longest wildcard of any depth, then the longest pattern, then the route without names, which takes all other names.
    `port` 0 means the gateway's HTTPS port: connections for these server names are not HTTP.
    """

    key: str
    """Unique in the table."""
    protocol: Literal["tcp", "udp", "tls"] = "tcp"
    """`tls`: the server name is read from the ClientHello."""
    port: int = Field(ge=0, le=65535)
    address: str = ""
    """That is listened on; empty is that of the gateway's own ports."""
    listener: str = ""
    """Key of the `Listener` entry that the route is on. Its addresses are listened on, and TLS that ends here presents
    its certificates. While the table has no such entry, nothing is opened."""
    server_names: tuple[str, ...] = ()
    """Lower case; `*.foo.com` for exactly one more label, `**.foo.com` for one or more; `~` and an RE2 pattern, which
    is looked for anywhere in the name, as hosts have them."""
    alpn: tuple[str, ...] = ()
    """Of `tls`: only clients that offer one of these protocols are taken; any without."""
    when: Condition | None = None
    """What connections have to satisfy besides, of `HOST` (the server name), `PEER` and `ALPN`; others go on to the
    other routes of the port. Not for UDP."""
    priority: int = 0
    """Of `tls`, and of routes with `when`: the higher goes first among the routes of a port (Traefik)."""
    terminate: bool = False
    """Of `tls`: end TLS here, with the certificate for the server name, and pass on plain bytes."""
    tls: TlsPolicy | None = None
    """How TLS is spoken where it ends here; None: as the gateway thinks right. No protocol is agreed on (ALPN)."""
    mqtt: MqttConnect | None = None
    """Clients speak MQTT; only those that begin as it says are let through. Their ids can be hashed."""
    backends: tuple[WeightedUpstream, ...] = Field(min_length=1)
    accept_proxy_protocol: bool = False
    """Every connection begins with a PROXY protocol header, version 1 or 2."""
    allowed_networks: tuple[str, ...] = ()
    """Clients that may connect (CIDR); all without any."""
    connect_timeout_s: float = Field(default=5.0, gt=0)
    idle_timeout_s: float = Field(default=600.0, gt=0)
    """Without a byte either way; nginx's `proxy_timeout`. For UDP the end of a session."""
    max_connections: int | None = Field(default=None, ge=1)
    """Of one gateway; further ones are closed."""
    max_connections_per_client: int | None = Field(default=None, ge=1)
    """Of one address, likewise; not for UDP."""
    udp_responses: int | None = Field(default=None, ge=0)
    """Datagrams that end a UDP session once the upstream has sent so many; None: only time does."""
    provenance: Provenance

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.protocol != "tls" and (self.server_names or self.alpn or self.terminate or not self.port):
            raise ValueError("server names, ALPN, termination and the HTTPS port are for tls only")
        if self.address and not self.port:
            raise ValueError("the HTTPS port has the gateway's own address")
        if self.listener and (self.address or not self.port):
            raise ValueError("a listener says the address, and the route its port")
        if self.priority and self.protocol != "tls" and self.when is None:
            raise ValueError("priority is for tls and when only: other routes have a port to themselves")
        if self.when is not None and self.protocol == "udp":
            raise ValueError("when is not for udp")
        if self.tls is not None and not self.terminate:
            raise ValueError("a policy of TLS is for connections whose TLS ends here")
        if self.tls is not None and self.tls.client_auth is not None and self.tls.client_auth.is_for_requests:
            raise ValueError("streams have no requests: clients' certificates are judged in the handshake alone")
        if self.mqtt is not None and not (self.terminate or self.protocol == "tcp"):
            raise ValueError("mqtt is for tcp, and for tls that ends here")
        return self
