"""`headgate watcher`: one cluster, or folders of manifests, into the delta log."""

import sys
from collections.abc import Coroutine, Sequence
from typing import Any

from aiohttp import web
from nacl.public import PublicKey

from headgate.common.bus.connection import Bus
from headgate.common.bus.resync import heed_resync
from headgate.common.errors import SettingsError
from headgate.common.leadership.leadership import Elector, Leadership, Sole
from headgate.common.problems import Problem, Severity
from headgate.common.recipients import wait_for_recipients
from headgate.common.resources import ALL_KINDS, JsonObject, Kinds
from headgate.common.service import memory
from headgate.common.service.admin import AdminSite
from headgate.common.service.service import ServiceContext, leave, run_service
from headgate.common.service.settings import load_settings
from headgate.common.service.tasks import run_together
from headgate.common.stores.nats import FOR_WATCHERS, NatsStores, Upkeep
from headgate.watcher.admission.keeper import CertificateKeeper
from headgate.watcher.admission.service import make_admission_server, make_certificate_keeper, make_kept_secret
from headgate.watcher.api.lease import KubernetesLeaseBoard, pod_namespace
from headgate.watcher.publishing.publisher import DeltaPublisher, Relist
from headgate.watcher.publishing.requesters import Requesters
from headgate.watcher.settings import WatcherSettings
from headgate.watcher.sources import SourceEvent
from headgate.watcher.sources.kubernetes.source import KubernetesScope, KubernetesSource, SecretScope
from headgate.watcher.sources.manifests.source import ManifestSource
from headgate.watcher.status.log import StatusLog
from headgate.watcher.status.writer import StatusWriter

SUMMARY = (
    "Watch one cluster, or folders of manifests, and publish every change of the objects that routing needs. "
    "Run a pair for each cluster: one publishes and writes, by a Lease, and the other follows, ready to go on."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the watcher until it is told to stop, and end the process; return the exit code if it does not begin."""
    memory.expect_growth()
    try:
        settings = load_settings(WatcherSettings, argv, program="headgate watcher", summary=SUMMARY)
        watcher = Watcher(settings)
    except SettingsError as error:
        print(f"headgate watcher: {error}", file=sys.stderr)
        return 2
    leave(run_service("watcher", settings, watcher.serve, prepare=watcher.prepare))


class Watcher:
    """The parts of a watcher, wired."""

    def __init__(self, settings: WatcherSettings, kinds: Kinds = ALL_KINDS) -> None:
        """Choose the source.

        Raises:
            SettingsError: the data directory cannot be used.
        """
        self._settings, self._kinds = settings, kinds
        self._source = _make_source(settings, kinds)
        self._leadership = self._make_leadership()
        self._requesters = Requesters()
        self._publisher: DeltaPublisher | None = None
        self._status_log: StatusLog | None = None
        self._status_writer: StatusWriter | None = None
        self._keeper: CertificateKeeper | None = None

    def prepare(self, admin: AdminSite) -> None:
        """Add what the admin site shows of a watcher."""
        admin.add_readiness("published", self._readiness)
        admin.add_route("GET", "/problems", self._show_problems)

    async def serve(self, context: ServiceContext) -> None:
        """Work until asked to stop."""
        await run_together(self._work(context), context.stopping.wait())

    async def _work(self, context: ServiceContext) -> None:
        settings = self._settings
        recipients = await wait_for_recipients(settings.sealing_public_keys, settings.data_dir)
        bus = await Bus.connect(settings.nats, name=f"headgate watcher {settings.cluster} {settings.instance}")
        try:
            stores = await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_WATCHERS)
            self._publisher = DeltaPublisher(
                self._source,
                stores.log_writer,
                settings.cluster,
                recipients,
                origin="manifests" if isinstance(self._source, ManifestSource) else "kubernetes",
                instance=settings.instance,
                log_reader=stores.log_reader,
                author_of=(self._source if isinstance(self._source, ManifestSource) else self._requesters).author_of,
                leadership=self._leadership,
                relist=self._relist,
                troubles=self._troubles,
                observe=self._observe,
            )
            bus.on_reconnect(self._publisher.compare_with_log)
            resync = heed_resync(bus, self._publisher.compare_with_all_of_log)
            work = [self._publisher.run(), self._write_statuses(stores), resync]
            work += self._admission(context, bus, recipients)
            frozen = memory.freeze_after(lambda: self._readiness() is None)
            await run_together(self._leadership.run(), frozen, *work)
        finally:
            await self._leadership.release()
            if isinstance(self._source, KubernetesSource):
                await self._source.transport.close()
            await bus.close()

    def _admission(
        self, context: ServiceContext, bus: Bus, recipients: Sequence[PublicKey]
    ) -> list[Coroutine[Any, Any, None]]:
        if isinstance(self._source, ManifestSource):
            return []
        work = []
        transport = self._source.transport
        kept = make_kept_secret(self._settings, transport, self._namespace)
        find = self._source.find_unreported
        if server := make_admission_server(self._settings, bus, recipients, find, kept, self._requesters, self._kinds):
            context.admin.add_readiness("admission", server.readiness)
            work.append(server.run())
        if kept:
            self._keeper = make_certificate_keeper(self._settings, kept, transport, self._leadership)
            work.append(self._keeper.run())
        return work

    @property
    def _namespace(self) -> str:
        """The watcher's own, where its Lease is."""
        settings = self._settings
        return settings.lease_namespace or pod_namespace() or next(iter(settings.namespaces), "default")

    @property
    def _relist(self) -> Relist | None:
        """How to look again where another watcher may have written; folders of manifests are read by one."""
        if isinstance(self._source, KubernetesSource) and self._settings.leader_election:
            return self._source.relist
        return None

    def _make_leadership(self) -> Leadership:
        settings = self._settings
        if not (isinstance(self._source, KubernetesSource) and settings.leader_election):
            return Sole()
        board = KubernetesLeaseBoard(self._source.transport, self._namespace)
        self._source.chain = board.chain
        name = settings.lease_name or f"headgate-watcher-{settings.cluster}"
        return Elector(board, name, settings.instance, settings.timing, is_ready=self._is_listed)

    def _is_listed(self) -> bool:
        return self._publisher is not None and self._publisher.is_listed

    def _write_statuses(self, stores: NatsStores) -> Coroutine[Any, Any, None]:
        cluster = self._settings.cluster
        if isinstance(self._source, ManifestSource):
            self._status_log = StatusLog(stores.statuses, cluster, self._source.locate)
            return self._status_log.run()
        self._status_writer = StatusWriter(
            stores.statuses,
            cluster,
            self._source.transport,
            instance=self._settings.instance,
            kinds=self._kinds,
            leadership=self._leadership,
            makes_accounts=self._settings.gateway_infrastructure,
        )
        return self._status_writer.run()

    def _readiness(self) -> str | None:
        return self._publisher.readiness() if self._publisher else "not connected to NATS yet"

    async def _show_problems(self, request: web.Request) -> web.Response:
        return web.json_response({"problems": self._problems()})

    async def _observe(self, event: SourceEvent) -> None:
        if self._status_writer is not None:
            await self._status_writer.observe(event)

    def _troubles(self) -> Sequence[str]:
        """What went wrong with the API server of late."""
        if isinstance(self._source, ManifestSource):
            return ()
        written = self._status_writer.troubles if self._status_writer else ()
        kept = self._keeper.troubles if self._keeper else ()
        return (*self._source.troubles, *written, *kept)

    def _problems(self) -> list[JsonObject]:
        """Files or the API server first, then objects that are not published, then what the translator complains of."""
        found: list[JsonObject] = []
        if isinstance(self._source, ManifestSource):
            found += (problem.as_json() for problem in self._source.problems)
        else:
            found += (_as_json("API server", _trouble(text)) for text in self._troubles())
        if self._publisher:
            found += (_as_json(str(ref), problem) for ref, problem in self._publisher.refused)
        if self._status_log:
            for ref, problems in self._status_log.problems.items():
                found += (_as_json(str(ref), problem) for problem in problems)
        return found


def _trouble(text: str) -> Problem:
    return Problem(severity=Severity.WARNING, reason="ApiServerTrouble", message=text)


def _as_json(name: str, problem: Problem) -> JsonObject:
    return {"object": name, "problem": problem.model_dump(mode="json")}


def _make_source(settings: WatcherSettings, kinds: Kinds) -> ManifestSource | KubernetesSource:
    if settings.manifests:
        return ManifestSource(settings.manifests, settings.cluster, settings.data_dir, kinds=kinds)
    scope = KubernetesScope(
        tuple(settings.namespaces),
        settings.ingress_selector,
        secrets=SecretScope(settings.watch_secrets),
        reads_pods=settings.watch_pods,
        config_maps=tuple(settings.watch_config_maps),
        follows_config_maps=settings.watch_referenced_config_maps,
        nginx_prefix=settings.nginx_annotations_prefix,
        reads_cluster_scoped=settings.watch_cluster_scoped,
    )
    return KubernetesSource(scope, settings.kubeconfig, settings.context or None, choices=kinds.choices)


if __name__ == "__main__":
    sys.exit(main())
