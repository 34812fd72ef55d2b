"""All kinds of one cluster, as one stream of events."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from random import Random

from headgate.common.resources import ALL_KINDS, JsonObject, KindChoice, Narrowing, ResourceKind, WatchMode
from headgate.common.resources.references import CONFIG_MAPS, NGINX_PREFIX, Referent
from headgate.common.service.tasks import cancel, run_together
from headgate.watcher.api.kinds import Discovery, WatchTarget
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.trouble import TroubleLog
from headgate.watcher.objects.secrets import TLS_TYPE
from headgate.watcher.sources import SourceEvent
from headgate.watcher.sources.kubernetes.follower import KindFollower
from headgate.watcher.sources.kubernetes.history import Chain
from headgate.watcher.sources.kubernetes.listing import list_target
from headgate.watcher.sources.kubernetes.named_only import KindObject, NamedOnly
from headgate.watcher.sources.kubernetes.outages import Outages
from headgate.watcher.sources.kubernetes.references import References

QUEUE = 256
"""Events that wait for the publisher; when there are more nothing is read from the API server."""
TLS_SELECTOR = f"type={TLS_TYPE}"
OTHER_SECRETS_SELECTOR = "type!=kubernetes.io/service-account-token,type!=helm.sh/release.v1"
OTHER_CONFIG_MAPS_SELECTOR = "metadata.name!=kube-root-ca.crt"
"""That one is in every namespace."""


class SecretScope(StrEnum):
    """Which Secrets are read."""

    TLS = "tls"
    """Those of type kubernetes.io/tls; others never reach us."""
    REFERENCED = "referenced"
    """Those, and others that an object names; of what else is seen nothing is kept."""
    ALL = "all"
    """All that people write."""


@dataclass(frozen=True, slots=True)
class KubernetesScope:
    """Which objects of a cluster are read."""

    namespaces: tuple[str, ...] = ()
    """Only these; empty for all. With a list, namespaced Roles are enough."""
    ingress_selector: str = ""
    """Label selector for Ingresses, as kubectl takes it; empty for all."""
    secrets: SecretScope = SecretScope.TLS
    reads_pods: bool = False
    config_maps: tuple[str, ...] = ()
    """ConfigMaps that are read, as `namespace/name`."""
    follows_config_maps: bool = False
    """Whether those are read too that objects name."""
    nginx_prefix: str = NGINX_PREFIX
    """Of the annotations of ingress-nginx that name Secrets and ConfigMaps."""
    reads_cluster_scoped: bool = True
    """What has no namespace, as IngressClasses, and no Role can permit. Without it and with a list of namespaces no
    list and no watch goes beyond these."""

    def select(self, choices: Sequence[KindChoice]) -> Sequence[KindChoice]:
        """Return the choices that are read."""
        return [choice for choice in choices if self._reads(choice[0])]

    def _reads(self, kind: ResourceKind) -> bool:
        is_wanted = self.reads_pods or kind.watch is not WatchMode.PODS
        if kind.watch is WatchMode.NAMED:
            is_wanted = self.follows_config_maps or bool(self._named())
        return is_wanted and (self.reads_cluster_scoped or kind.namespaced)

    def _named(self) -> list[tuple[str, str]]:
        """Return namespaces and names of ConfigMaps; a watcher that is confined to namespaces asks for no others."""
        places = (place.partition("/") for place in self.config_maps)
        return [
            (namespace, name) for namespace, _, name in places if not self.namespaces or namespace in self.namespaces
        ]

    def targets_of(self, kind: ResourceKind, version: str) -> list[WatchTarget]:
        """Return the collections that a kind is read from."""
        if kind.watch is WatchMode.NAMED and not self.follows_config_maps:
            return [
                WatchTarget(kind, version, namespace, "", f"metadata.name={name}") for namespace, name in self._named()
            ]
        if kind.names:
            return [WatchTarget(kind, version, "", "", f"metadata.name={name}") for name in kind.names]
        labels = self.ingress_selector if kind.narrowed_by is Narrowing.LABELS else ""
        namespaces = self.namespaces if kind.namespaced and self.namespaces else ("",)
        fields = self._field_selector(kind)
        return [WatchTarget(kind, version, namespace, labels, fields) for namespace in namespaces]

    def _field_selector(self, kind: ResourceKind) -> str:
        if kind.narrowed_by is Narrowing.SECRET_TYPES:
            return TLS_SELECTOR if self.secrets is SecretScope.TLS else OTHER_SECRETS_SELECTOR
        return OTHER_CONFIG_MAPS_SELECTOR if kind.watch is WatchMode.NAMED else ""

    def is_by_reference(self, kind: ResourceKind) -> bool:
        """Whether only those objects of a kind are reported that others name."""
        if kind.narrowed_by is Narrowing.SECRET_TYPES:
            return self.secrets is SecretScope.REFERENCED
        return kind.watch is WatchMode.NAMED and self.follows_config_maps

    def passes_unnamed(self, kind: ResourceKind, manifest: JsonObject) -> bool:
        """Whether an object of such a kind is reported although no other names it."""
        return kind.narrowed_by is Narrowing.SECRET_TYPES and manifest.get("type") == TLS_TYPE

    def referents(self) -> list[Referent]:
        """Return what the settings name."""
        return [Referent(CONFIG_MAPS, *place) for place in self._named()]

    def target_of(self, kind: ResourceKind, referent: Referent) -> WatchTarget | None:
        """Return where one object is asked for by its name; None outside of the namespaces that are read."""
        if self.namespaces and referent.namespace not in self.namespaces:
            return None
        selectors = filter(None, (f"metadata.name={referent.name}", self._field_selector(kind)))
        return WatchTarget(kind, kind.versions[0], referent.namespace, "", ",".join(selectors))


class KubernetesSource:
    """Reads a cluster through its API server."""

    def __init__(
        self,
        scope: KubernetesScope = KubernetesScope(),
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        transport: KubernetesTransport | None = None,
        choices: Sequence[KindChoice] = ALL_KINDS.choices,
        rng: Random | None = None,
    ) -> None:
        """Choose what is read; nothing is asked for before `events` is iterated.

        Args:
            scope: which objects.
            kubeconfig: file that names the server; None looks where kubectl looks, and for a service account.
            context: one of the file's contexts; None takes its current one.
            transport: used instead of what `kubeconfig` and `context` say, as to share it with a status writer.
            choices: which kinds.
            rng: for jitter.
        """
        choices = scope.select(choices)
        self.kinds: Sequence[ResourceKind] = [kind for choice in choices for kind in choice]
        self.transport = transport or KubernetesTransport(kubeconfig, context)
        self._owns_transport = transport is None
        self.chain: Chain | None = None
        """Writes of ours to the cluster, by which its history is recognised after a watch was cut."""
        self._trouble = TroubleLog()
        self._scope = scope
        self._choices = choices
        self._rng = rng or Random()  # noqa: S311 - jitter
        self._followers: list[KindFollower] = []
        self._named = NamedOnly(
            self.kinds,
            [kind for kind in self.kinds if scope.is_by_reference(kind)],
            References(scope.nginx_prefix, scope.referents()),
            self._find,
            self.relist,
            scope.passes_unnamed,
        )

    @property
    def heard_at(self) -> datetime | None:
        """When the API server last answered, or a watch last said something."""
        return self.transport.heard_at

    @property
    def away_since(self) -> datetime | None:
        """When the API server began to give no answer; None: it answers."""
        return self.transport.away_since

    @property
    def troubles(self) -> list[str]:
        """What went wrong with the API server within the last minute."""
        return self._trouble.recent

    def relist(self, kind: ResourceKind) -> bool:
        """List a kind again, soon; return whether it is read at all, so that a `Listed` of what is true now follows."""
        return any([follower.relist(kind) for follower in self._followers])

    async def events(self) -> AsyncIterator[SourceEvent]:
        """Yield what the cluster has and what changes, for ever; errors of the server are logged and outwaited."""
        queue: asyncio.Queue[SourceEvent] = asyncio.Queue(QUEUE)
        discovery, outages = Discovery(self.transport), Outages(self.transport, self._rng)
        self._followers = [
            KindFollower(
                choice,
                self._scope.targets_of,
                self.transport,
                discovery,
                queue.put,
                outages=outages,
                rng=self._rng,
                trouble=self._trouble,
                chain=self.chain,
            )
            for choice in self._choices
        ]
        working = asyncio.create_task(
            run_together(*(follower.run() for follower in self._followers)), name="kubernetes"
        )
        try:
            while True:
                for event in await self._named.take(await _get(queue, working)):
                    yield event
        finally:
            await cancel(working)
            if self._owns_transport:
                await self.transport.close()

    async def find_unreported(self, kind: ResourceKind, manifest: JsonObject) -> Sequence[KindObject]:
        """Return Secrets and ConfigMaps that an object would be the first to name."""
        return await self._named.find_unreported(kind, manifest)

    async def _find(self, kind: ResourceKind, referent: Referent) -> Sequence[JsonObject]:
        target = self._scope.target_of(kind, referent)
        return (await list_target(self.transport, target))[0] if target else ()


async def _get(queue: asyncio.Queue[SourceEvent], working: "asyncio.Task[None]") -> SourceEvent:
    """Wait for an event, or for the mistake of ours that ended the work."""
    if not queue.empty():
        return queue.get_nowait()
    getting = asyncio.create_task(queue.get())
    try:
        await asyncio.wait((getting, working), return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            return getting.result()
        working.result()
        raise AssertionError("following a cluster never ends by itself")
    finally:
        getting.cancel()
