"""One worker: the table, the proxy, the admin pages and the heartbeats of one process.

Order on start: the last good table from disk, which is served at once; then the store is followed, whenever it can be
reached. Ports open with the first table. Losing the bus changes nothing for traffic.
"""

import asyncio
import logging
import os
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial

from prometheus_client import REGISTRY

from headgate.common.errors import HeadgateError
from headgate.common.heartbeats import COUNTING_INTERVAL_S, INTERVAL_S, Heartbeat
from headgate.common.service import memory
from headgate.common.service.admin import AdminSite, metrics_page
from headgate.common.service.service import ServiceContext
from headgate.common.service.tasks import cancel, run_together
from headgate.common.snapshot import Manifest
from headgate.common.stores.opening import OpenTables
from headgate.gateway.counting.peers import Peers
from headgate.gateway.following.apply import TableApplier
from headgate.gateway.following.follower import Follower
from headgate.gateway.following.last_good import LastGoodWriter, read_last_good
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.observability.rollout_watch import RolloutWatch
from headgate.gateway.observability.tapping import Tapping
from headgate.gateway.observability.traffic_summary import TrafficTeller
from headgate.gateway.plugins.interface import AnswersFolder, Headers, Response
from headgate.gateway.plugins.runtime.preview import preview_plugins
from headgate.gateway.role import WorkerRole
from headgate.gateway.sealing_keys import load_unsealer
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.table.certificates import OpenedCertificate
from headgate.gateway.table.view import CompilerView
from headgate.gateway.tls import CertificateEntry
from headgate.gateway.worker.endure import endure
from headgate.gateway.worker.health_notes import health_notes, unfit_endpoints
from headgate.gateway.worker.heartbeat import Announcer
from headgate.gateway.worker.pages import TablePages
from headgate.gateway.worker.ports import Ports, naming
from headgate.gateway.worker.upkeep import Upkeep
from headgate.gateway.worker.wiring import make_collectors, make_serving, make_table

_log = logging.getLogger(__name__)


def _answers(role: WorkerRole) -> AnswersFolder | None:
    """Return where answers are kept together with the other workers; None: there are none."""
    return AnswersFolder(role.answers, role.workers, role.index) if role.answers is not None else None


def _peers(role: WorkerRole) -> Peers | None:
    """Return how the other workers are heard; None: there are none."""
    if role.counts_descriptor is None:
        return None
    peers = Peers(role.counts_descriptor, role.workers, role.index)
    os.close(role.counts_descriptor)
    return peers


_FEW_CHUNKS = 500
"""Of a table of about 10,000 hosts. With more of them looking for cycles takes longer than what they hold is worth: a
second at 100,000 hosts, before the first request is served."""


class Worker:
    """The life of one worker, from the first table to the drain."""

    def __init__(self, settings: GatewaySettings, role: WorkerRole) -> None:
        self._settings = settings
        self._role = role
        self._unseal = load_unsealer(settings).open
        peers = _peers(role)
        self._table = table = make_table(settings, self._unseal, self._metrics_page, peers, _answers(role))
        self._serving = serving = make_serving(settings, table, role.ticket_seed, peers)
        self._collectors = make_collectors(settings, table, serving)
        self._metrics = TableMetrics()
        self._announcer = Announcer(self._describe)
        self._ports = Ports(settings, role, table.compiler, serving, self._metrics, self._announcer.announce_soon)
        self._applier = TableApplier(
            table.compiler,
            serving.routers.swap,
            self._metrics,
            self._present_certificates,
            on_applied=(self._note_applied,),
            on_ports=self._ports.serve_table,
            replica=settings.instance,
        )
        self._last_good = LastGoodWriter(settings.last_good_path, self._applier.stored_table)
        self._rollout = RolloutWatch(serving.stats, settings.instance)
        self._tapping = Tapping(serving.stats)
        self._teller = TrafficTeller(
            settings.table,
            settings.instance,
            role.index,
            serving.stats.news,
            table.pools.news,
            self._tapping,
            partial(unfit_endpoints, table.health),
        )
        self._upkeep = Upkeep(table, serving.stats, self._rollout)
        self._follower: Follower | None = None
        self._has_table = asyncio.Event()
        self._is_heap_frozen = False

    async def run(self, context: ServiceContext, open_tables: OpenTables) -> None:
        """Serve until told to stop, then drain.

        Ports are kept from the beginning, so that a wrong one is told at once, and opened with the first table: clients
        that nobody keeps from a replica which is not ready yet are refused, and ask another one.
        """
        with ExitStack() as ports:
            self._ports.reserve(ports)
            await self._run(context, open_tables)

    async def _run(self, context: ServiceContext, open_tables: OpenTables) -> None:
        context.health.add_readiness("table", self._why_not_ready)
        fallback, writes = self._serving.fallback, self._role.writes_last_good
        if fallback:
            fallback.load()
        admin = self._admin_site(context)
        if admin:
            with naming("admin_port", self._settings.admin_port, self._settings.admin_host):
                await admin.start()
        for collector in self._collectors:
            REGISTRY.register(collector)
        try:
            await self._load_last_good()
            await run_together(
                self._serve_until(context.stopping),
                endure("following the store", lambda: self._follow(open_tables)),
                endure("retiring pools", self._upkeep.retire_pools),
                endure("reviewing series", self._upkeep.review_series),
                *([endure("reloading the fallback certificate", fallback.run)] if fallback else []),
                *([endure("writing the last good table", self._last_good.run)] if writes else []),
            )
            if writes:
                await self._last_good.flush()
        finally:
            await self._close()
            if admin:
                await admin.stop()

    async def _close(self) -> None:
        await self._table.resolver.close()
        await self._table.health.close()
        await self._table.plugins.close()
        for collector in self._collectors:
            REGISTRY.unregister(collector)
        if self._serving.access_log:
            self._serving.access_log.close()

    async def _serve_until(self, stopping: asyncio.Event) -> None:
        """Serve from the first table until told to stop; then readiness fails, and accepting goes on for the delay."""
        if not await _comes_before(self._has_table, stopping):
            return
        await self._ports.open()
        await stopping.wait()
        await self._ports.drain()

    async def _follow(self, open_tables: OpenTables) -> None:
        async with open_tables() as stores:
            # A translator that starts on a store from a backup knows by our announcement alone what was served.
            self._follower = follower = Follower(
                stores.snapshots,
                self._settings.table,
                self._applier,
                self._metrics,
                on_trouble=self._announcer.announce_soon,
            )
            try:
                await run_together(
                    follower.run(),
                    self._announcer.run(stores.heartbeats),
                    self._teller.run(stores.traffic),
                    self._tapping.run(stores.traffic, self._settings.table),
                )
            finally:
                await self._announcer.leave(stores.heartbeats)

    async def _load_last_good(self) -> None:
        """Serve the table on disk, if there is one that can be used."""
        try:
            stored = await asyncio.to_thread(read_last_good, self._settings.last_good_path, self._settings.instance)
            if stored is None:
                return
            await self._applier.apply(stored.manifest, stored.get_chunks, stored.open_chunk)
        except HeadgateError as error:
            _log.error("the table on disk is not used", extra={"error": str(error)})

    def _note_applied(self, manifest: Manifest) -> None:
        if not self._is_heap_frozen:
            self._is_heap_frozen = True
            memory.freeze_heap(collects=len(manifest.chunks) < _FEW_CHUNKS)
        if self._table.compiler.table is not None:
            self._rollout.note_applied(manifest, self._table.compiler.table)
        self._metrics.serves_next.set(self._rollout.is_next)
        self._announcer.interval_s = COUNTING_INTERVAL_S if self._rollout.is_counting else INTERVAL_S
        self._announcer.announce_soon()
        self._last_good.note_change()
        self._has_table.set()
        self._upkeep.note_swap()

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
        for store in (self._serving.certificates, self._serving.stream_certificates):
            store.change_certificates(entries, (*gone, *without_key))

    def _why_not_ready(self) -> str | None:
        if not self._applier.version:
            return f"no revision of table {self._settings.table} was applied yet"
        return None if self._ports.are_open else "the ports are not open yet"

    def _describe(self) -> Heartbeat:
        settings, now = self._settings, datetime.now(UTC)
        behind_s = self._follower.behind_s() if self._follower else 0.0
        return Heartbeat(
            replica=settings.instance,
            worker=self._role.index,
            cluster=settings.cluster,
            zone=settings.zone,
            table=settings.table,
            shard=settings.shard,
            version=self._applier.version,
            pinned=self._applier.pinned,
            routes=self._applier.routes,
            rollout=self._rollout.report(),
            refusal=self._follower.refusal if self._follower else None,
            behind_since=now - timedelta(seconds=behind_s) if behind_s else None,
            listeners=self._ports.names(),
            addresses=settings.publish_addresses,
            connections=self._serving.server.connections + self._serving.stream_stats.active,
            requests_total=self._serving.stats.requests,
            at=now,
        )

    async def _metrics_page(self) -> Response:
        """Return the metrics of all workers of this replica."""
        settings = self._settings
        if self._role.is_alone or not settings.admin_port:
            body, content_type = await metrics_page()
            return Response(200, Headers([("Content-Type", content_type)]), body)
        url = f"http://{_reachable(settings.admin_host)}:{settings.admin_port}/metrics"
        return await self._table.plugins.fetch_own(url)

    def _admin_site(self, context: ServiceContext) -> AdminSite | None:
        settings, role, compiler = self._settings, self._role, self._table.compiler
        if role.admin_socket is not None:
            admin = AdminSite(port=None, unix_socket=role.admin_socket, health=context.health)
        elif settings.admin_port:
            admin = AdminSite(settings.admin_host, settings.admin_port, health=context.health)
        else:
            return None
        applier = self._applier
        pages = TablePages(
            CompilerView(compiler),
            settings.table,
            self._ports.names,
            settings.path_normalization,
            pinned=lambda: applier.pinned,
            routes=lambda: applier.routes,
            place=self._table.place,
            health_of=partial(health_notes, self._table.health),
            own_ports=settings.own_ports,
            shard=settings.own_shard,
            preview=partial(preview_plugins, consumers=compiler.consumer_directory, unseal=self._unseal),
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


def _reachable(host: str) -> str:
    """Return an address to reach what listens on an address."""
    own = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - nothing is bound
    return f"[{own}]" if ":" in own else own
