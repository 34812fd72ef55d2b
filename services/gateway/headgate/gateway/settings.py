"""What a gateway can be told."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from headgate.common.clusters import check_cluster_name
from headgate.common.sealing import PRIVATE_KEY_FILE
from headgate.common.selection import check_table_name
from headgate.common.status import is_address
from headgate.common.stores.settings import StoreSettings
from headgate.common.table import DEFAULT_TABLE
from headgate.common.table.shards import WHOLE, Shard
from headgate.gateway.model.networks import parse_networks
from headgate.gateway.net.descriptors import client_share, limit
from headgate.gateway.net.destinations import DENIED_BY_DEFAULT
from headgate.gateway.observability.log_format import BadFormat, LogFormat
from headgate.gateway.proxy.config import ProxyConfig, UnderscoreNames
from headgate.gateway.proxy.heads.paths import PathNormalization
from headgate.gateway.proxy.stats import MAX_SERIES
from headgate.gateway.table.listener_ports import OwnPorts, own_ports

_PROXY = ProxyConfig()
_MARGIN_S = 1.0
"""Of the grace period, kept for closing the bus and the files."""

TraceFormat = Literal["tracecontext", "b3", "b3multi"]
MetricNames = Literal["headgate", "apisix", "ingress-nginx"]


class GatewaySettings(StoreSettings):
    """Settings of one gateway replica."""

    http_host: str = Field(
        default="0.0.0.0",  # noqa: S104 - a gateway is there to be reached
        description="Address to listen on for clients; all IPv4 addresses by default, :: for IPv6 as well.",
    )
    http_port: int = Field(
        default=8080, ge=0, le=65535, description="Port for HTTP; 8080 needs no privileges, 0 takes a free one."
    )
    https: bool = Field(default=True, description="Listen for HTTPS too; the default, as every table may have TLS.")
    https_port: int = Field(
        default=8443, ge=0, le=65535, description="Port for HTTPS; 8443 needs no privileges, 0 takes a free one."
    )
    public_http_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port that clients connect to for HTTP, as told in X-Forwarded-Port, where a Service or a load "
        "balancer maps it to http_port; 0, the default, is http_port itself.",
    )
    public_https_port: int = Field(default=0, ge=0, le=65535, description="The same for HTTPS.")
    http3: bool = Field(
        default=False,
        description="Speak HTTP/3 on the UDP port with the number of https_port, and offer it to clients of HTTPS "
        "(Alt-Svc, with the number of public_https_port); off by default, as Services and firewalls let UDP through "
        "only if they are told to.",
    )
    http3_max_age_s: int = Field(
        default=86_400,
        ge=1,
        description="Seconds for which clients may remember that offer; a day by default, as elsewhere.",
    )
    default_certificate: str = Field(
        default="",
        description="Certificate of the table, as <cluster>/<namespace>/<secret>, for TLS clients that ask for a name "
        "without one; a self-signed one by default.",
    )
    default_certificate_file: Path | None = Field(
        default=None,
        description="File with a certificate chain in PEM for the same purpose, read again when it changes; it steps "
        "in while the table lacks default_certificate.",
    )
    default_certificate_key_file: Path | None = Field(
        default=None, description="File with the key of default_certificate_file, in PEM."
    )
    tls_ticket_key_file: Path | None = Field(
        default=None,
        description="File with a secret of at least 32 bytes (openssl rand -hex 32) that replicas share, so that TLS "
        "sessions begun with one are resumed by the others; replace it from time to time. Without it the workers of "
        "one replica share keys of their own.",
    )
    workers: int = Field(
        default=1, ge=1, le=256, description="Processes that share the ports; 1 by default, at most one for each core."
    )
    table: str = Field(
        default=DEFAULT_TABLE, description="Name of the table to serve; the default is the translator's."
    )
    shard: str = Field(
        default="",
        description="Shard of the table that this gateway serves, as number/count: 0/4 is the first of four, counts "
        "are powers of two. Requests for hosts of other shards are answered with 421. The whole table by default.",
    )
    cluster: str = Field(
        default="", description="Cluster that this gateway runs in, as its watcher calls it; unknown by default."
    )
    zone: str = Field(default="", description="Zone that this gateway runs in; unknown by default.")
    publish_addresses: tuple[str, ...] = Field(
        default=(), description="Addresses or host names that go into Ingress status; none by default."
    )
    access_log: Literal["combined", "json", "off"] = Field(
        default="off",
        description="Format of the access log on standard output; off by default, as it costs throughput.",
    )
    access_log_format: str = Field(
        default="",
        description="A format of your own with nginx's variables: with access_log=combined a line ($remote_addr "
        '$status "$request"), with access_log=json an object of fields ({"status": "$status"}); by default all is '
        "written that docs/access-log.md lists.",
    )
    access_log_share: float = Field(
        default=_PROXY.access_log_share,
        ge=0,
        le=1,
        description="Share of the requests that went well that the access log has, where their route says nothing "
        "else; those with a status from 400 on are always there. All by default.",
    )
    access_log_otlp: bool = Field(
        default=False,
        description="Send the access log to the collector at otlp_endpoint too, as log records of OpenTelemetry, also "
        "with access_log=off; false by default.",
    )
    plugin_log_dir: Path | None = Field(
        default=None,
        description="Folder below which the plugin file-logger may write; none by default, as routes are written by "
        "many, and they may then log to standard output only.",
    )
    plugin_policy_dir: Path | None = Field(
        default=None,
        description="Folder below which the plugin authz-casbin may read files; none by default, as routes are written "
        "by many, who would name any file of the gateway.",
    )
    hooks_file: Path | None = Field(
        default=None,
        description="File of Python whose functions routes may run by their names (plugin python-hook); none by "
        "default. It runs in every worker, and reads and does what the gateway may.",
    )
    trace_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the requests without trace context that begin a trace, where their route says nothing "
        "else; 0 by default. Traces need otlp_endpoint.",
    )
    trace_propagation: tuple[TraceFormat, ...] = Field(
        default=("tracecontext",),
        description="Formats of trace context, of which the first that a request has is read, and endpoints get all: "
        "tracecontext (W3C), b3 (one header of Zipkin), b3multi (its several), as OTEL_PROPAGATORS has them.",
    )
    max_metric_series: int = Field(
        default=MAX_SERIES,
        ge=0,
        description="Routes, each with its upstream, and endpoints that metrics show apart: the busiest and slowest; "
        "2000 by default, which is a page of some 10 MB.",
    )
    metric_names: tuple[MetricNames, ...] = Field(
        default=("headgate",),
        description="Under which names metrics show the traffic: headgate, apisix (as the plugin prometheus of Apache "
        "APISIX has them), ingress-nginx, or several of them; headgate by default, both is headgate,apisix.",
    )
    drain_delay_s: float = Field(
        default=0.0,
        ge=0,
        description="Seconds to go on accepting after readiness fails, for load balancers to notice; 0 by default, "
        "5 is usual in Kubernetes.",
    )
    denied_destinations: tuple[str, ...] = Field(
        default=DENIED_BY_DEFAULT,
        description="Networks (CIDR) that no route and no plugin may connect to; by default loopback, link-local "
        "addresses and metadata services, as Kubernetes allows no endpoints there. Neither may they connect to this "
        "gateway's own admin port. None: anywhere.",
    )
    allowed_destinations: tuple[str, ...] = Field(
        default=(),
        description="Networks (CIDR) that they may connect to although denied_destinations has them; none by default.",
    )
    trust_forwarded: bool = Field(
        default=_PROXY.trust_forwarded,
        description="Believe what any client says in X-Forwarded-*, as nothing but trusted proxies can connect; off by "
        "default: clients lie.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        default=_PROXY.trusted_proxies,
        description="Networks (CIDR) of the proxies in front, whose X-Forwarded-* headers are believed; none by "
        "default.",
    )
    real_ip_header: str = Field(
        default=_PROXY.real_ip_header,
        pattern=r"^[A-Za-z0-9-]+$",
        description="Header in which trusted proxies name the client; X-Forwarded-For by default, as nearly all do. "
        "Forwarded is read as RFC 7239 says, any other as a list of addresses.",
    )
    path_normalization: PathNormalization = Field(
        default=_PROXY.path_normalization,
        description="How paths are read that servers understand in different ways: rewrite (the default, as no "
        "upstream can then see another path than the route was chosen for), match as in nginx, strict, off.",
    )
    underscore_names: UnderscoreNames = Field(
        default=_PROXY.underscore_names,
        description="What becomes of request headers with an underscore in their names: drop (the default, as in "
        "nginx), allow, refuse.",
    )
    detailed_errors: bool = Field(
        default=_PROXY.detailed_errors,
        description="Answer with the reason why a request failed behind the gateway (in the body, x-headgate-reason "
        "and grpc-message), which names addresses, Services and plugins; off by default, as clients may be anybody: "
        "they get the status, and the log the reason. `headgate up --manifests` turns it on.",
    )
    max_connections: int | None = Field(
        default=_PROXY.max_connections,
        ge=1,
        description="Clients' HTTP connections open at once, per worker; by default half of the file descriptors "
        "that it may have, less 64, as each may need another to an upstream.",
    )
    max_connections_per_client: int | None = Field(
        default=_PROXY.max_connections_per_client,
        ge=1,
        description="The same for each client address, over all workers; no limit by default, as many clients may "
        "share one.",
    )
    min_body_rate: int = Field(
        default=_PROXY.min_body_rate,
        ge=0,
        description="Bytes per second, over each body_timeout_s, at which a body of known length has to come, and an "
        "answer to be taken by its client; 240 as in IIS and Kestrel, 0 is no limit.",
    )
    tls_handshake_timeout_s: float = Field(
        default=_PROXY.tls_handshake_timeout_s,
        gt=0,
        description="Seconds for a TLS handshake; 15 by default, as for a head.",
    )
    proxy_protocol: bool = Field(
        default=False,
        description="Expect a PROXY protocol header, version 1 or 2, at the beginning of every HTTP and HTTPS "
        "connection; off by default, as a load balancer has to send it.",
    )
    proxy_protocol_networks: tuple[str, ...] = Field(
        default=(),
        description="Networks (CIDR) of the load balancers that send PROXY headers, for streams too; connections from "
        "elsewhere begin with none. All by default.",
    )
    max_udp_sessions: int = Field(
        default=4096,
        ge=1,
        description="UDP sessions of a stream route without a bound of its own, per worker; 4096 by default, as each "
        "takes a descriptor.",
    )
    connect_timeout_s: float = Field(
        default=_PROXY.connect_timeout_s, gt=0, description="Seconds to connect to an endpoint; 5 as in ingress-nginx."
    )
    send_timeout_s: float = Field(
        default=_PROXY.send_timeout_s, gt=0, description="Seconds between two writes to an endpoint; 60 as in nginx."
    )
    read_timeout_s: float = Field(
        default=_PROXY.read_timeout_s,
        gt=0,
        description="Seconds between two reads of an endpoint's answer; 60 as in nginx.",
    )
    header_timeout_s: float = Field(
        default=_PROXY.header_timeout_s,
        gt=0,
        description="Seconds for a client to send a request's head; 15 by default.",
    )
    body_timeout_s: float = Field(
        default=_PROXY.body_timeout_s,
        gt=0,
        description="Seconds between two reads of a request's body; 60 as in nginx.",
    )
    idle_timeout_s: float = Field(
        default=_PROXY.idle_timeout_s, gt=0, description="Seconds that a client's connection may rest; 75 as in nginx."
    )
    max_head: int = Field(
        default=_PROXY.max_head, gt=0, description="Bytes of the longest head; 65536, about what Envoy allows."
    )
    max_body: int | None = Field(
        default=_PROXY.max_body, ge=0, description="Bytes of the longest request body; no limit by default."
    )
    max_buffered_bytes: int = Field(
        default=_PROXY.max_buffered_bytes,
        ge=1,
        description="Bytes of bodies that plugins and buffering routes hold in memory at once, per worker; 134217728 "
        "by default, of which one body may take half: the longest that a plugin reads by default.",
    )
    sealing_private_keys: tuple[Path, ...] = Field(
        default=(),
        description="Files with the private keys that certificates are sealed to; by default "
        f"{PRIVATE_KEY_FILE} in the data folder, made on first use.",
    )

    @field_validator("table")
    @classmethod
    def _check_table(cls, value: str) -> str:
        return check_table_name(value)

    @field_validator("shard")
    @classmethod
    def _check_shard(cls, value: str) -> str:
        return str(Shard.parse(value)) if value else value

    @field_validator("cluster")
    @classmethod
    def _check_cluster(cls, value: str) -> str:
        return check_cluster_name(value) if value else value

    @field_validator("publish_addresses")
    @classmethod
    def _check_addresses(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if not is_address(value):
                raise ValueError(f"{value!r} is neither an IP address nor a DNS name in lower case")
        return values

    @model_validator(mode="after")
    def _check_http3(self) -> Self:
        if self.http3 and not self.https:
            raise ValueError("http3 needs https, whose certificates it presents; turn https on, or http3 off")
        return self

    @model_validator(mode="after")
    def _check_default_certificate(self) -> Self:
        if (self.default_certificate_file is None) != (self.default_certificate_key_file is None):
            raise ValueError("default_certificate_file and default_certificate_key_file go together")
        return self

    @model_validator(mode="after")
    def _check_log_collector(self) -> Self:
        if self.access_log_otlp and not self.otlp_endpoint:
            raise ValueError("access_log_otlp needs otlp_endpoint, such as http://collector:4318")
        return self

    @model_validator(mode="after")
    def _check_log_format(self) -> Self:
        self.own_log_format()
        return self

    def own_log_format(self) -> LogFormat | None:
        """Return the format of one's own for the access log; None: there is none."""
        if not self.access_log_format:
            return None
        if self.access_log == "off":
            raise ValueError("access_log_format needs access_log=combined (a line) or access_log=json (an object)")
        try:
            return LogFormat(self.access_log_format, as_json=self.access_log == "json")
        except BadFormat as error:
            raise ValueError(f"access_log_format: {error}") from error

    @field_validator("trace_propagation")
    @classmethod
    def _check_propagation(cls, values: tuple[TraceFormat, ...]) -> tuple[TraceFormat, ...]:
        if not values or len(set(values)) < len(values):
            raise ValueError("must name at least one format, each once: tracecontext, b3, b3multi")
        return values

    @field_validator("metric_names", mode="before")
    @classmethod
    def _read_both(cls, value: object) -> object:
        return ("headgate", "apisix") if value in ("both", ["both"], ("both",)) else value

    @field_validator("metric_names")
    @classmethod
    def _check_metric_names(cls, values: tuple[MetricNames, ...]) -> tuple[MetricNames, ...]:
        if not values:
            raise ValueError(
                "has no name, so that metrics would show no traffic; say headgate, apisix or ingress-nginx"
            )
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise ValueError(f"has {twice} more than once; say each name once")
        return values

    @field_validator("proxy_protocol_networks", "trusted_proxies", "denied_destinations", "allowed_destinations")
    @classmethod
    def _check_networks(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        parse_networks(values)
        return values

    @property
    def own_ports(self) -> OwnPorts:
        """The gateway's own ports by their numbers, where these are not left to the kernel."""
        https = (self.https_port, self.public_https_port) if self.https else ()
        return own_ports((self.http_port, self.public_http_port), https)

    def proxy_config(self) -> ProxyConfig:
        """Return the part that concerns the proxy."""
        return ProxyConfig(
            trust_forwarded=self.trust_forwarded,
            trusted_proxies=self.trusted_proxies,
            real_ip_header=self.real_ip_header,
            path_normalization=self.path_normalization,
            underscore_names=self.underscore_names,
            access_log_share=self.access_log_share,
            detailed_errors=self.detailed_errors,
            max_connections=self.max_connections or client_share(limit()),
            max_connections_per_client=self.max_connections_per_client,
            min_body_rate=self.min_body_rate,
            tls_handshake_timeout_s=self.tls_handshake_timeout_s,
            connect_timeout_s=self.connect_timeout_s,
            send_timeout_s=self.send_timeout_s,
            read_timeout_s=self.read_timeout_s,
            header_timeout_s=self.header_timeout_s,
            body_timeout_s=self.body_timeout_s,
            idle_timeout_s=self.idle_timeout_s,
            max_head=self.max_head,
            max_body=self.max_body,
            max_buffered_bytes=self.max_buffered_bytes,
        )

    @property
    def own_shard(self) -> Shard | None:
        """What it serves of the table; None: all of it."""
        shard = Shard.parse(self.shard) if self.shard else WHOLE
        return shard if shard.total > 1 else None

    @property
    def last_good_path(self) -> Path:
        """File of the last good table, one for each table, and shard of it, that gateways with this data folder serve.

        No name of a table has a dot.
        """
        shard = self.own_shard
        part = f".shard-{shard.number}-of-{shard.total}" if shard is not None else ""
        return self.data_dir / f"table-{self.table}{part}.last-good"

    @property
    def drain_s(self) -> float:
        """Seconds that requests get to finish after SIGTERM and the drain delay."""
        return max(0.0, self.grace_s - self.drain_delay_s - _MARGIN_S)
