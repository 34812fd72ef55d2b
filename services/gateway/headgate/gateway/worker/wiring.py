"""The parts of a worker, made in the order in which they need each other.

First what a table is compiled with, then what serves it. Plugins alone reach ahead: they are made with the table, and
send requests by what serves it (`TableUpstreams`).
"""

import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headgate.common.sealing import Unseal
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.balancing.levels import Place
from headgate.gateway.counting.peers import Peers
from headgate.gateway.health.probes import probe
from headgate.gateway.health.resolve import Resolver, SystemDns
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.upstreams import UpstreamHealth
from headgate.gateway.listeners.server import ProxyServer
from headgate.gateway.model.networks import parse_networks
from headgate.gateway.model.persistent_map import PersistentMap
from headgate.gateway.net.destinations import Destinations
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.observability.access_log import AccessLog
from headgate.gateway.observability.apisix_metrics import ApisixFamilies
from headgate.gateway.observability.ingress_nginx_metrics import IngressNginxFamilies
from headgate.gateway.observability.log_metrics import LogFamilies
from headgate.gateway.observability.metrics import ProxyCollector
from headgate.gateway.observability.otlp_export import ExportLimits, LogExport, OtlpExporter
from headgate.gateway.observability.otlp_log import OtlpLog
from headgate.gateway.observability.trace_context import Propagation
from headgate.gateway.observability.tracing import Tracing
from headgate.gateway.observability.traffic_metrics import EndpointFamilies, RouteFamilies
from headgate.gateway.plugins.interface import AnswersFolder, ConsumerDirectory, Endpoints, Request, Response
from headgate.gateway.plugins.runtime.host import PluginHost
from headgate.gateway.plugins.runtime.upstream_calls import Calls
from headgate.gateway.proxy.consumer_traffic import ConsumerTraffic
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.stats import StreamStats
from headgate.gateway.table.compile import CompiledHost
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.listener_ports import OWN_HTTP
from headgate.gateway.table.port_routers import PortRouters
from headgate.gateway.table.shards.part import ShardPart
from headgate.gateway.tls import CertificateStore
from headgate.gateway.tls.fallback_files import FallbackFiles
from headgate.gateway.tls.metrics import TlsFamilies
from headgate.gateway.tls.tickets import RatchetFile, SecretFile, TicketKeys


class TableUpstreams:
    """The upstreams of the table, for plugins; they are there once `bind` was called."""

    def __init__(self) -> None:
        self._compiler: TableCompiler
        self._calls: Calls

    def bind(self, compiler: TableCompiler, calls: Calls) -> None:
        """Take what finds upstreams, and what sends requests to them."""
        self._compiler = compiler
        self._calls = calls

    def hold(self, key: str) -> Endpoints:
        """Return where the endpoints of an upstream are found; see `PluginServices.find_upstream`."""
        return self._compiler.hold_endpoints(key)

    def hold_group(self, key: str) -> Endpoints:
        """Return where the endpoints of a group of backends are found; see `PluginServices.find_group`."""
        return self._compiler.hold_group(key)

    async def send_to(
        self, upstream: str | Endpoints, request: Request, *, timeout_s: float, max_body: int
    ) -> Response:
        """Send a request of a plugin's own; see `SendTo`."""
        return await self._calls.send_to(upstream, request, timeout_s=timeout_s, max_body=max_body)


@dataclass(frozen=True, slots=True)
class TableParts:
    """What a table is compiled with."""

    dialler: Dialler
    pools: PoolRegistry
    directory: EndpointDirectory
    place: Place
    health: UpstreamHealth
    resolver: Resolver
    plugins: PluginHost
    upstreams: TableUpstreams
    compiler: TableCompiler

    def hosts(self) -> PersistentMap[bytes, CompiledHost]:
        """Return the hosts of the table that is served."""
        table = self.compiler.table
        return table.hosts if table is not None else PersistentMap.of({})


def make_table(
    settings: GatewaySettings,
    unseal: Unseal,
    metrics: Callable[[], Awaitable[Response]],
    peers: Peers | None = None,
    answers: AnswersFolder | None = None,
) -> TableParts:
    """Make what tables are compiled with; `metrics` returns the page of metrics for plugins, `peers` are the other
    workers, and `answers` is where plugins keep answers together with them.
    """
    dialler = Dialler(Destinations(settings.denied_destinations, settings.allowed_destinations, settings.admin_port))
    pools = PoolRegistry(settings.proxy_config(), dialler)
    directory = EndpointDirectory(pools)
    place = Place(settings.zone, settings.cluster)
    health = UpstreamHealth(HealthStats(), partial(probe, dialler=dialler), peers)
    resolver = Resolver(SystemDns(), health.stats)
    consumers = ConsumerDirectory()
    upstreams = TableUpstreams()
    plugins = PluginHost(
        unseal,
        upstreams.send_to,
        upstreams.hold,
        metrics,
        settings.plugin_log_dir,
        consumers,
        settings.plugin_policy_dir,
        dialler,
        upstreams.hold_group,
        settings.hooks_file,
        peers,
        answers,
    )
    shard = settings.own_shard
    compiler = TableCompiler(
        directory,
        unseal,
        _random_offset,
        place,
        health,
        plugins.make_plugins,
        resolver,
        consumers,
        settings.own_ports,
        ShardPart(shard, settings.default_certificate) if shard is not None else None,
    )
    return TableParts(dialler, pools, directory, place, health, resolver, plugins, upstreams, compiler)


def _random_offset() -> int:
    return random.randrange(1 << 16)  # noqa: S311 - spreads load, guards nothing


@dataclass(frozen=True, slots=True)
class ServingParts:
    """What serves by a table."""

    routers: PortRouters
    certificates: CertificateStore
    stream_certificates: CertificateStore
    """What streams present. They are passed on as plain bytes of whatever protocol, so none is agreed upon."""
    fallback: FallbackFiles | None
    stats: ProxyStats
    stream_stats: StreamStats
    access_log: AccessLog | OtlpLog | None
    streams: StreamContext
    server: ProxyServer


def make_serving(
    settings: GatewaySettings, table: TableParts, ticket_seed: Path | None = None, peers: Peers | None = None
) -> ServingParts:
    """Make what serves by a table, and give its plugins the means to send requests.

    Raises:
        SettingsError: the secret of session tickets cannot be used.
    """
    tickets = _ticket_keys(settings, ticket_seed)
    certificates = _certificates(settings, ("h2", "http/1.1"), tickets)
    certificates.set_policies(table.compiler.find_tls, table.compiler.find_certificates)
    stream_certificates = _certificates(settings, (), tickets)
    by_consumer = ConsumerTraffic(settings.max_metric_series) if "apisix" in settings.metric_names else None
    stats, stream_stats = ProxyStats(settings.max_metric_series, by_consumer), StreamStats(peers=peers)
    routers = PortRouters()
    access_log = _access_log(settings)
    streams = StreamContext(
        stream_stats,
        stream_certificates.server_context,
        stream_certificates.context_for,
        access_log.stream if access_log else None,
        settings.header_timeout_s,
        parse_networks(settings.proxy_protocol_networks),
        table.dialler,
        settings.max_udp_sessions,
        certificates_at=table.compiler.certificates_at,
    )
    server = ProxyServer(
        routers.holder(OWN_HTTP),
        table.pools,
        table.pools.config,
        stats,
        access_log,
        streams,
        proxy_protocol=settings.proxy_protocol,
        tracing=Tracing(settings.trace_share, Propagation(settings.trace_propagation))
        if settings.otlp_endpoint
        else None,
        peers=peers,
    )
    table.upstreams.bind(table.compiler, server.calls(table.compiler.find_endpoints))
    return ServingParts(
        routers=routers,
        certificates=certificates,
        stream_certificates=stream_certificates,
        fallback=_fallback_files(settings, certificates),
        stats=stats,
        stream_stats=stream_stats,
        access_log=access_log,
        streams=streams,
        server=server,
    )


def _access_log(settings: GatewaySettings) -> AccessLog | OtlpLog | None:
    writes = settings.access_log != "off"
    lines = AccessLog(
        settings.access_log if settings.access_log != "off" else "combined", own=settings.own_log_format()
    )
    if settings.access_log_otlp:
        exporter = OtlpExporter(settings.otlp_endpoint)
        return OtlpLog(lines, LogExport(exporter, ExportLimits.from_environment()), writes=writes)
    return lines if writes else None


def _certificates(settings: GatewaySettings, alpn: tuple[str, ...], tickets: TicketKeys | None) -> CertificateStore:
    return CertificateStore(
        alpn=alpn,
        default_key=settings.default_certificate,
        max_handshakes=settings.proxy_config().max_connections,
        tickets=tickets,
    )


def _ticket_keys(settings: GatewaySettings, seed: Path | None) -> TicketKeys | None:
    """Return the keys that other replicas have too, else those of all workers here; None: there are no others."""
    if settings.tls_ticket_key_file is not None:
        return TicketKeys(SecretFile(settings.tls_ticket_key_file))
    return TicketKeys(RatchetFile(seed)) if seed is not None else None


def _fallback_files(settings: GatewaySettings, store: CertificateStore) -> FallbackFiles | None:
    chain, key = settings.default_certificate_file, settings.default_certificate_key_file
    return FallbackFiles(store, chain, key) if chain and key else None


def make_collectors(settings: GatewaySettings, table: TableParts, serving: ServingParts) -> list[ProxyCollector]:
    """Make what shows the figures of traffic, health, TLS and streams as metrics."""
    return [
        *_traffic_collectors(settings, table, serving),
        ProxyCollector(table.health.stats),
        ProxyCollector(TlsFamilies(serving.certificates)),
        ProxyCollector(serving.stream_stats),
        ProxyCollector(LogFamilies(serving.access_log)),
    ]


def _traffic_collectors(
    settings: GatewaySettings, table: TableParts, serving: ServingParts
) -> Iterator[ProxyCollector]:
    """Yield what shows the traffic under the names that are asked for."""
    stats = serving.stats
    endpoints = EndpointFamilies(table.pools, table.directory, settings.max_metric_series)
    if "headgate" in settings.metric_names:
        yield ProxyCollector(RouteFamilies(stats))
        yield ProxyCollector(endpoints)
    if "apisix" in settings.metric_names:
        yield ProxyCollector(ApisixFamilies(stats, endpoints, table.hosts))
    if "ingress-nginx" in settings.metric_names:
        families = IngressNginxFamilies(stats, serving.certificates, lambda: table.compiler.table is not None)
        yield ProxyCollector(families)
