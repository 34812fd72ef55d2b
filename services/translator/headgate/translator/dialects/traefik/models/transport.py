"""ServersTransport and ServersTransportTCP: how servers are spoken to."""

from pydantic import Field

from headgate.translator.dialects.traefik.models.fields import (
    Duration,
    ProxyProtocol,
    RootCertificates,
    Spiffe,
    SubjectName,
)
from headgate.translator.manifests.models import Model


class ServerTls(Model):
    """TLS towards servers."""

    server_name: str = Field(default="", description="Server name that is sent and checked.")
    insecure_skip_verify: bool = Field(default=False, description="Do not check certificates.")
    root_cas: tuple[RootCertificates, ...] = Field(default=(), alias="rootCAs", description="Authorities.")
    root_cas_secrets: tuple[str, ...] = Field(
        default=(), alias="rootCAsSecrets", description="Deprecated: Secrets with authorities; use rootCAs."
    )
    certificates_secrets: tuple[str, ...] = Field(default=(), description="Secrets with our own certificates.")
    peer_cert_uri: str = Field(default="", alias="peerCertURI", description="Deprecated: use peerCertSANs.")
    peer_cert_sans: tuple[SubjectName, ...] = Field(
        default=(), alias="peerCertSANs", description="Names of which certificates must have one."
    )
    spiffe: Spiffe | None = Field(default=None, description="Identities of workloads by SPIFFE.")


class ForwardingTimeouts(Model):
    """How long servers are waited for."""

    dial_timeout: Duration | None = Field(default=None, description="For a connection; 30s by default.")
    response_header_timeout: Duration | None = Field(default=None, description="For an answer's head; no bound.")
    idle_conn_timeout: Duration | None = Field(default=None, description="Idle connections are kept; 90s by default.")
    read_idle_timeout: Duration | None = Field(default=None, description="Before a connection of HTTP/2 is pinged.")
    ping_timeout: Duration | None = Field(default=None, description="For the answer to a ping; 15s by default.")


class ServersTransportSpec(ServerTls):
    """How servers of HTTP are spoken to."""

    cipher_suites: tuple[str, ...] = Field(default=(), description="Suites of TLS 1.2 and older, by Go's names.")
    min_version: str = Field(default="", description="VersionTLS10 to VersionTLS13.")
    max_version: str = Field(default="", description="VersionTLS10 to VersionTLS13.")
    max_idle_conns_per_host: int | None = Field(default=None, ge=-1, description="Idle connections kept per server.")
    forwarding_timeouts: ForwardingTimeouts | None = Field(default=None, description="How long servers are waited for.")
    disable_http2: bool = Field(default=False, alias="disableHTTP2", description="Speak HTTP/1.1 only.")


class ServersTransportTcpSpec(Model):
    """How servers of TCP are spoken to."""

    dial_timeout: Duration | None = Field(default=None, description="For a connection; 30s by default.")
    dial_keep_alive: Duration | None = Field(default=None, description="Between keep-alive probes; 15s by default.")
    termination_delay: Duration | None = Field(
        default=None, description="How long a half-closed connection is kept; 100ms by default."
    )
    proxy_protocol: ProxyProtocol | None = Field(default=None, description="The PROXY protocol towards servers.")
    tls: ServerTls | None = Field(default=None, description="TLS towards servers.")
