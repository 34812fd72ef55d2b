"""One choice of kinds: finds out which of them a server has, and reports the objects of that one.

An Ingress is read as `networking.k8s.io` or, from a server that has only that, as `extensions`; endpoints from slices
or, where there are none, from Endpoints. What is not read is reported too, so that no translator waits for it.
"""

import logging
from collections.abc import Callable, Sequence
from random import Random

from headgate.common.deltas import SyncState
from headgate.common.resources import KindChoice, ResourceKind
from headgate.common.service.tasks import run_together
from headgate.watcher.api.backoff import slow_backoff
from headgate.watcher.api.kinds import Discovery, WatchTarget
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.trouble import TroubleLog
from headgate.watcher.errors import Absent, WatcherError
from headgate.watcher.sources import Listed, SourceEvent, Unavailable
from headgate.watcher.sources.kubernetes.history import Chain
from headgate.watcher.sources.kubernetes.merge import PartMerge
from headgate.watcher.sources.kubernetes.outages import Outages
from headgate.watcher.sources.kubernetes.patience import Patience
from headgate.watcher.sources.kubernetes.reflector import Emit, Reflector

log = logging.getLogger(__name__)

TargetsOf = Callable[[ResourceKind, str], Sequence[WatchTarget]]


class KindFollower:
    """Reports the first kind of a choice that the server has, and changes over when that changes."""

    def __init__(
        self,
        choice: KindChoice,
        targets_of: TargetsOf,
        transport: KubernetesTransport,
        discovery: Discovery,
        emit: Emit,
        *,
        outages: Outages,
        rng: Random,
        trouble: TroubleLog,
        chain: Chain | None = None,
    ) -> None:
        """Prepare; `targets_of` says which collections a kind in a version is read from."""
        self._choice = choice
        self._targets_of = targets_of
        self._transport = transport
        self._discovery = discovery
        self._emit = emit
        self._rng = rng
        self._trouble = trouble
        self._outages, self._chain = outages, chain
        self._patience = Patience(outages, rng)
        self._slow_backoff = slow_backoff(rng)
        self._said: dict[ResourceKind, SyncState] = {}
        self._reading: list[Reflector] = []

    def relist(self, kind: ResourceKind) -> bool:
        """List a kind again, soon; return whether it is the one that is read."""
        found = [reflector for reflector in self._reading if reflector.kind == kind]
        for reflector in found:
            reflector.relist()
        return bool(found)

    async def run(self) -> None:
        """Report for ever."""
        while True:
            try:
                served = await self._discovery.find(self._choice)
            except WatcherError as error:
                self._trouble.report(f"discovery of {self._choice[0]}", error, self._transport.description)
                await self._patience.after(error)
                continue
            try:
                if served is not None:
                    await self._read(*served)
                    continue  # a better kind or version has come up
            except Absent as error:
                log.info("%s: the API server has it no more", error.message or served)
            await self._say_absent(self._choice)
            await self._slow_backoff.wait()

    async def _read(self, kind: ResourceKind, version: str) -> None:
        """Report a kind until a better one comes up; raises `Absent` when this one goes away."""
        place = self._choice.index(kind)
        await self._say_absent(self._choice[:place], instead=kind)
        self._said.pop(kind, None)
        others = self._choice[place + 1 :]

        async def emit(event: SourceEvent) -> None:
            await self._emit(event)
            await self._settle(others, event)

        self._reading = reflectors = self._reflectors(self._targets_of(kind, version), emit)
        waiting = [self._await_better(kind, version)] if (kind, version) != self._best() else []
        try:
            await run_together(*(reflector.run() for reflector in reflectors), *waiting)
        finally:
            self._reading = []

    def _reflectors(self, targets: Sequence[WatchTarget], emit: Emit) -> list[Reflector]:
        sinks = [emit]
        if len(targets) > 1:
            merge = PartMerge(targets[0].kind, [_part(target) for target in targets], emit)
            sinks = [merge.sink(_part(target)) for target in targets]
        return [
            Reflector(
                target,
                self._transport,
                sink,
                outages=self._outages,
                rng=self._rng,
                trouble=self._trouble,
                chain=self._chain,
            )
            for target, sink in zip(targets, sinks, strict=True)
        ]

    def _best(self) -> tuple[ResourceKind, str]:
        return self._choice[0], self._choice[0].versions[0]

    async def _await_better(self, kind: ResourceKind, version: str) -> None:
        while True:
            await self._slow_backoff.wait()
            try:
                if await self._discovery.find(self._choice) not in (None, (kind, version)):
                    return
            except WatcherError as error:
                self._trouble.report(f"discovery of {kind}", error, self._transport.description)

    async def _say_absent(self, kinds: Sequence[ResourceKind], instead: ResourceKind | None = None) -> None:
        for kind in kinds:
            if self._said.get(kind) is not SyncState.ABSENT:
                self._said[kind] = SyncState.ABSENT
                reason = f"; {instead} are read instead" if instead else ""
                await self._emit(Unavailable(kind, SyncState.ABSENT, f"the API server does not have {kind}{reason}"))

    async def _settle(self, others: Sequence[ResourceKind], event: SourceEvent) -> None:
        """Report on the kinds that are not needed, once it is known how the needed one stands."""
        for kind in others:
            if isinstance(event, Listed) and self._said.get(kind) is not SyncState.SYNCED:
                # Whatever was read of it before, from an older server, is in this list now.
                self._said[kind] = SyncState.SYNCED
                await self._emit(Listed(kind, ()))
            elif isinstance(event, Unavailable) and kind not in self._said:
                self._said[kind] = SyncState.ABSENT
                await self._emit(Unavailable(kind, SyncState.ABSENT, f"not needed: {event.kind} exist"))


def _part(target: WatchTarget) -> str:
    """Return what tells a collection from others of its kind: its namespace, and the object that is read of it."""
    name = target.field_selector.removeprefix("metadata.name=")
    return f"{target.namespace}/{name}" if name != target.field_selector else target.namespace
