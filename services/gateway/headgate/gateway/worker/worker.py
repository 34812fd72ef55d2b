"""One worker: the table, the proxy, the admin pages and the heartbeats of one process.

Order on start: the last good table from disk, which is served at once; then the store is followed, whenever it can be
reached. Ports open with the first table. Losing the bus changes nothing for traffic.
"""

import asyncio
import logging
import os
import random
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

from prometheus_client import REGISTRY

from headgate.common.admin import AdminSite, metrics_page
from headgate.common.errors import HeadgateError, SettingsError
from headgate.common.heartbeats import COUNTING_INTERVAL_S, INTERVAL_S, Heartbeat
from headgate.common.service import ServiceContext
from headgate.common.snapshot import ChunkName, Manifest
from headgate.common.tasks import cancel, run_together
from headgate.gateway import ENGINE
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.balancing.levels import Place
from headgate.gateway.following.apply import TableApplier
from headgate.gateway.following.follower import Follower
from headgate.gateway.following.last_good import LastGoodWriter, read_last_good
from headgate.gateway.health.probes import probe
from headgate.gateway.health.resolve import Resolver, SystemDns
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.upstreams import UpstreamHealth
from headgate.gateway.listeners.server import ProxyServer
from headgate.gateway.model.networks import parse_networks
from headgate.gateway.net import descriptors
from headgate.gateway.net.destinations import Destinations
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.net.reserved_port import reserve_port
from headgate.gateway.observability.access_log import AccessLog
from headgate.gateway.observability.apisix_metrics import ApisixFamilies
from headgate.gateway.observability.metrics import ProxyCollector, TableMetrics
from headgate.gateway.observability.rollout_watch import RolloutWatch
from headgate.gateway.observability.tracing import Tracing
from headgate.gateway.observability.traffic_metrics import EndpointFamilies, RouteFamilies, gone_routes
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.runtime.host import PluginHost
from headgate.gateway.plugins.runtime.preview import preview_plugins
from headgate.gateway.proxy.consumer_traffic import ConsumerTraffic
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.role import WorkerRole
from headgate.gateway.sealing_keys import load_unsealer
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.listeners import StreamListeners
from headgate.gateway.streams.route import CompiledStream
from headgate.gateway.streams.stats import StreamStats
from headgate.gateway.table.certificates import OpenedCertificate
from headgate.gateway.table.compile import CompiledHost
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.view import CompilerView
from headgate.gateway.tls import CertificateEntry, CertificateStore
from headgate.gateway.tls.fallback_files import FallbackFiles
from headgate.gateway.tls.metrics import TlsFamilies
from headgate.gateway.worker import memory
from headgate.gateway.worker.endure import endure
from headgate.gateway.worker.health_notes import health_notes
from headgate.gateway.worker.heartbeat import Announcer
from headgate.gateway.worker.pages import TablePages
from headgate.gateway.worker.store_link import OpenStores, choose_stores

_log = logging.getLogger(__name__)

RETIRE_S = 5.0
REVIEW_S = 60.0
"""Between two reviews of which routes metrics show by themselves; as often as most collectors ask."""
"""Between two looks for pools of endpoints that are gone; their connections are idle by then."""
DROPS_AT_ONCE = 500
"""Pools dropped between two turns of the event loop."""


class Worker:
    """The parts of one worker, wired."""

    def __init__(self, settings: GatewaySettings, role: WorkerRole) -> None:
        self._settings = settings
        self._role = role
        config = settings.proxy_config()
        dialler = Dialler(
            Destinations(settings.denied_destinations, settings.allowed_destinations, settings.admin_port)
        )
        self._pools = PoolRegistry(config, dialler)
        self._directory = EndpointDirectory(self._pools)
        self._place = place = Place(settings.zone, settings.cluster)
        self._health = UpstreamHealth(HealthStats(), partial(probe, dialler=dialler))
        self._unseal = unseal = load_unsealer(settings).open
        consumers = ConsumerDirectory()
        self._plugins = PluginHost(
            unseal,
            self._send_to,
            lambda key: self._compiler.hold_endpoints(key),
            self._metrics_page,
            settings.plugin_log_dir,
            consumers,
            settings.plugin_policy_dir,
            dialler,
        )
        self._resolver = Resolver(SystemDns(), self._health.stats)
        self._compiler = TableCompiler(
            self._directory,
            unseal,
            _random_offset,
            place,
            self._health,
            self._plugins.make_plugins,
            self._resolver,
            consumers,
        )
        self._certificates = CertificateStore(
            alpn=("h2", "http/1.1"), default_key=settings.default_certificate, max_handshakes=config.max_connections
        )
        self._certificates.set_policies(self._compiler.find_tls)
        self._fallback = _fallback_files(settings, self._certificates)
        self._metrics = TableMetrics()
        holder = RouterHolder()
        self._announcer = Announcer(self._describe)
        self._applier = TableApplier(
            self._compiler,
            self._directory,
            holder,
            self._metrics,
            self._present_certificates,
            on_applied=(self._note_applied,),
            on_streams=self._serve_streams,
            replica=settings.instance,
        )
        self._last_good = LastGoodWriter(settings.last_good_path, self._applier.stored_table)
        by_consumer = None if settings.metric_names == "headgate" else ConsumerTraffic(settings.max_metric_series)
        self._stats = ProxyStats(settings.max_metric_series, by_consumer)
        self._rollout = RolloutWatch(self._stats, settings.instance)
        self._follower: Follower | None = None
        self._access_log = None
        if settings.access_log != "off":
            self._access_log = AccessLog(settings.access_log, own=settings.own_log_format())
        self._stream_certificates = CertificateStore(
            alpn=(), default_key=settings.default_certificate, max_handshakes=config.max_connections
        )
        """What streams present. They are passed on as plain bytes of whatever protocol, so none is agreed upon."""
        self._stream_stats = StreamStats()
        self._stream_context = StreamContext(
            self._stream_stats,
            self._stream_certificates.server_context,
            self._access_log.stream if self._access_log else None,
            settings.header_timeout_s,
            parse_networks(settings.proxy_protocol_networks),
            dialler,
            settings.max_udp_sessions,
        )
        self._streams: StreamListeners | None = None
        self._server = ProxyServer(
            holder,
            self._pools,
            config,
            self._stats,
            self._access_log,
            self._stream_context,
            proxy_protocol=settings.proxy_protocol,
            tracing=Tracing(settings.trace_share) if settings.otlp_endpoint else None,
        )
        self._calls = self._server.calls(self._compiler.find_endpoints)
        self._collectors = [
            *self._traffic_collectors(settings),
            ProxyCollector(self._health.stats),
            ProxyCollector(TlsFamilies(self._certificates)),
            ProxyCollector(self._stream_stats),
        ]
        self._listeners: tuple[str, ...] = ()
        self._has_table = asyncio.Event()
        self._swapped = asyncio.Event()
        self._is_heap_frozen = False

    async def run(self, context: ServiceContext, open_stores: OpenStores) -> None:
        """Serve until told to stop, then drain.

        Ports are kept from the beginning, so that a wrong one is told at once, and opened with the first table: clients
        that nobody keeps from a replica which is not ready yet are refused, and ask another one.
        """
        with ExitStack() as ports:
            self._reserve_ports(ports)
            await self._run(context, open_stores)

    def _reserve_ports(self, ports: ExitStack) -> None:
        settings, role = self._settings, self._role
        if role.is_alone:
            http = ports.enter_context(reserve_port("http_port", settings.http_host, settings.http_port))
            https = (
                ports.enter_context(reserve_port("https_port", settings.http_host, settings.https_port))
                if settings.https
                else None
            )
            self._role = role.model_copy(update={"http_port": http, "https_port": https})

    async def _run(self, context: ServiceContext, open_stores: OpenStores) -> None:
        context.health.add_readiness("table", self._why_not_ready)
        if self._fallback:
            self._fallback.load()
        admin = self._admin_site(context)
        if admin:
            with _naming("admin_port", self._settings.admin_port, self._settings.admin_host):
                await admin.start()
        for collector in self._collectors:
            REGISTRY.register(collector)
        try:
            await self._load_last_good()
            await run_together(
                self._serve_until(context.stopping),
                endure("following the store", lambda: self._follow(open_stores)),
                endure("retiring pools", self._retire_pools),
                endure("reviewing series", self._review_series),
                *([endure("reloading the fallback certificate", self._fallback.run)] if self._fallback else []),
                *([endure("writing the last good table", self._last_good.run)] if self._role.writes_last_good else []),
            )
            if self._role.writes_last_good:
                await self._last_good.flush()
        finally:
            await self._resolver.close()
            await self._health.close()
            await self._plugins.close()
            for collector in self._collectors:
                REGISTRY.unregister(collector)
            if self._access_log:
                self._access_log.close()
            if admin:
                await admin.stop()

    async def _listen(self) -> None:
        settings, role = self._settings, self._role
        with _naming("http_port", settings.http_port, settings.http_host):
            port = await self._server.listen_http(
                settings.http_host,
                role.http_port or settings.http_port,
                reuse_port=True,
                public_port=settings.public_http_port,
            )
        listeners = [f"http://{settings.http_host}:{port}"]
        reserved = {port: "HTTP port", settings.admin_port: "admin port"}
        if settings.https:
            with _naming("https_port", settings.https_port, settings.http_host):
                port = await self._server.listen_https(
                    settings.http_host,
                    role.https_port or settings.https_port,
                    self._certificates,
                    reuse_port=True,
                    public_port=settings.public_https_port,
                )
            listeners.append(f"https://{settings.http_host}:{port}")
            reserved[port] = "HTTPS port"
        self._listeners = tuple(listeners)
        self._streams = StreamListeners(
            self._stream_context,
            settings.http_host,
            reuse_port=not role.is_alone,
            reserved=reserved,
            https=self._server if settings.https else None,
            on_change=self._announcer.announce_soon,
        )
        self._serve_streams([stream for _, stream in self._compiler.streams.compiled()])
        self._announcer.announce_soon()
        _log.info("listening", extra={"listeners": " ".join(listeners), "worker": role.index, "engine": ENGINE})

    def _serve_streams(self, routes: Sequence[CompiledStream]) -> None:
        """Open and close ports; those of the table on disk once the gateway's own are open."""
        if self._streams is not None:
            self._streams.apply(routes)

    async def _send_to(self, upstream: str, request: Request, *, timeout_s: float, max_body: int) -> Response:
        return await self._calls.send_to(upstream, request, timeout_s=timeout_s, max_body=max_body)

    async def _metrics_page(self) -> Response:
        """Return the metrics of all workers of this replica."""
        settings = self._settings
        if self._role.is_alone or not settings.admin_port:
            body, content_type = await metrics_page()
            return Response(200, Headers([("Content-Type", content_type)]), body)
        return await self._plugins.fetch_own(f"http://{_reachable(settings.admin_host)}:{settings.admin_port}/metrics")

    def _shown_listeners(self) -> tuple[str, ...]:
        return self._listeners + (self._streams.names if self._streams is not None else ())

    async def _serve_until(self, stopping: asyncio.Event) -> None:
        """Serve from the first table until told to stop; then readiness fails, and accepting goes on for the delay."""
        if not await _comes_before(self._has_table, stopping):
            return
        await self._listen()
        await stopping.wait()
        self._server.announce_drain()
        await asyncio.sleep(self._settings.drain_delay_s)
        drain_s = self._settings.drain_s
        await asyncio.gather(
            self._server.drain(drain_s), *([self._streams.drain(drain_s)] if self._streams is not None else [])
        )

    async def _follow(self, open_stores: OpenStores) -> None:
        async with open_stores() as stores:
            # A translator that starts on a store from a backup knows by our announcement alone what was served.
            self._follower = follower = Follower(
                stores.snapshots,
                self._settings.table,
                self._applier,
                self._metrics,
                on_trouble=self._announcer.announce_soon,
            )
            try:
                await run_together(follower.run(), self._announcer.run(stores.heartbeats))
            finally:
                await self._announcer.leave(stores.heartbeats)

    async def _load_last_good(self) -> None:
        """Serve the table on disk, if there is one that can be used."""
        try:
            stored = await asyncio.to_thread(read_last_good, self._settings.last_good_path, self._settings.instance)
            if stored is None:
                return

            async def read_chunk(name: ChunkName) -> bytes:
                return stored.open_chunk(name)

            await self._applier.apply(stored.manifest, read_chunk)
        except HeadgateError as error:
            _log.error("the table on disk is not used", extra={"error": str(error)})

    def _note_applied(self, manifest: Manifest) -> None:
        if not self._is_heap_frozen:
            self._is_heap_frozen = True
            memory.freeze_heap()
        if self._compiler.table is not None:
            self._rollout.note_applied(manifest, self._compiler.table.hosts)
        self._metrics.serves_next.set(self._rollout.is_next)
        self._announcer.interval_s = COUNTING_INTERVAL_S if self._rollout.is_counting else INTERVAL_S
        self._announcer.announce_soon()
        self._last_good.note_change()
        self._has_table.set()
        self._swapped.set()

    def _traffic_collectors(self, settings: GatewaySettings) -> Iterator[ProxyCollector]:
        """Yield what shows the traffic under the names that are asked for."""
        endpoints = EndpointFamilies(self._pools, self._directory, settings.max_metric_series)
        if settings.metric_names != "apisix":
            yield ProxyCollector(RouteFamilies(self._stats))
            yield ProxyCollector(endpoints)
        if settings.metric_names != "headgate":
            yield ProxyCollector(ApisixFamilies(self._stats, endpoints, self._hosts))

    def _hosts(self) -> Mapping[bytes, CompiledHost]:
        table = self._compiler.table
        return table.hosts if table is not None else {}

    async def _retire_pools(self) -> None:
        """Close the connections to endpoints that no table names any more, and drop what was counted of routes."""
        while True:
            await self._swapped.wait()
            await asyncio.sleep(RETIRE_S)
            self._swapped.clear()
            for count, key in enumerate(self._directory.take_orphans(), 1):
                if count % DROPS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                self._pools.drop(*key)
            table = self._compiler.table
            # What is counted of a rollout must not fall; the table that ends it is applied here too.
            if table is not None and not self._rollout.is_counting:
                for gone in gone_routes([route for route, _ in self._stats.routes], table.hosts):
                    self._stats.forget(gone)
                    await asyncio.sleep(0)

    async def _review_series(self) -> None:
        """Have metrics show the routes that matter most now."""
        while True:
            await asyncio.sleep(REVIEW_S)
            # What is counted of a rollout must not fall.
            for _ in self._stats.review() if not self._rollout.is_counting else ():
                await asyncio.sleep(0)

    def _present_certificates(self, arrived: Sequence[OpenedCertificate], gone: Collection[str]) -> None:
        entries = [
            CertificateEntry(
                opened.server_names,
                opened.chain_pem,
                opened.private_key,
                opened.fingerprint,
                opened.key,
                opened.not_after,
            )
            for opened in arrived
            if opened.private_key is not None
        ]
        without_key = [opened.key for opened in arrived if opened.private_key is None]
        for store in (self._certificates, self._stream_certificates):
            store.change_certificates(entries, (*gone, *without_key))

    def _why_not_ready(self) -> str | None:
        if not self._applier.version:
            return f"no revision of table {self._settings.table} was applied yet"
        return None if self._listeners else "the ports are not open yet"

    def _describe(self) -> Heartbeat:
        settings, now = self._settings, datetime.now(UTC)
        behind_s = self._follower.behind_s() if self._follower else 0.0
        return Heartbeat(
            replica=settings.instance,
            worker=self._role.index,
            cluster=settings.cluster,
            zone=settings.zone,
            table=settings.table,
            version=self._applier.version,
            pinned=self._applier.pinned,
            routes=self._applier.routes,
            rollout=self._rollout.report(),
            refusal=self._follower.refusal if self._follower else None,
            behind_since=now - timedelta(seconds=behind_s) if behind_s else None,
            listeners=self._shown_listeners(),
            addresses=settings.publish_addresses,
            connections=self._server.connections + self._stream_stats.active,
            requests_total=self._stats.requests,
            at=now,
        )

    def _admin_site(self, context: ServiceContext) -> AdminSite | None:
        settings, role = self._settings, self._role
        if role.admin_socket is not None:
            admin = AdminSite(port=None, unix_socket=role.admin_socket, health=context.health)
        elif settings.admin_port:
            admin = AdminSite(settings.admin_host, settings.admin_port, health=context.health)
        else:
            return None
        applier = self._applier
        pages = TablePages(
            CompilerView(self._compiler),
            settings.table,
            self._shown_listeners,
            settings.path_normalization,
            pinned=lambda: applier.pinned,
            routes=lambda: applier.routes,
            place=self._place,
            health_of=partial(health_notes, self._health),
            preview=partial(preview_plugins, consumers=self._compiler.consumer_directory, unseal=self._unseal),
        )
        pages.add_to(admin)
        return admin


async def _comes_before(event: asyncio.Event, other: asyncio.Event) -> bool:
    """Wait for one of two events; tell whether the first has come by then."""
    waits = [asyncio.create_task(each.wait()) for each in (event, other)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*waits)
    return event.is_set()


@contextmanager
def _naming(setting: str, port: int, host: str) -> Iterator[None]:
    """Turn a failure to bind into one line that names the setting."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SettingsError(f"{setting}: {port} cannot be bound on {host}: {reason}") from error


def _fallback_files(settings: GatewaySettings, store: CertificateStore) -> FallbackFiles | None:
    chain, key = settings.default_certificate_file, settings.default_certificate_key_file
    return FallbackFiles(store, chain, key) if chain and key else None


def _reachable(host: str) -> str:
    """Return an address to reach what listens on an address."""
    own = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - nothing is bound
    return f"[{own}]" if ":" in own else own


def _random_offset() -> int:
    return random.randrange(1 << 16)  # noqa: S311 - spreads load, guards nothing


async def run_worker(context: ServiceContext, settings: GatewaySettings, role: WorkerRole) -> None:
    """Run one worker until it is told to stop."""
    memory.relax_collector()
    descriptors.raise_limit()
    name = f"gateway {settings.instance}/{role.index}"
    work = Worker(settings, role).run(context, choose_stores(settings, name))
    if role.is_alone:
        await work
    else:
        # Ctrl-C in a terminal reaches the whole process group; the parent passes it on as SIGTERM.
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        await run_together(work, stop_with_parent(context.stopping))


async def stop_with_parent(stopping: asyncio.Event) -> None:
    """Ask the worker to stop when the parent is gone: its end of our standard input closes. Never returns."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        await reader.read()
        if not stopping.is_set():
            _log.warning("the parent process is gone: stopping")
            stopping.set()
        await asyncio.Event().wait()
    finally:
        transport.close()
