"""A source that says what a test wants said, a log that can be away, and a publisher between them."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Literal

from fakes.waiting import until
from headgate.common.deltas import AnyDelta, ClusterAnnouncement, Delta, LogMessage, SyncMarker, as_delta
from headgate.common.errors import StoreUnavailable
from headgate.common.leadership.leadership import Leadership
from headgate.common.resources import INGRESS, SECRET, SERVICE, ObjectRef, ResourceKind
from headgate.common.service.tasks import cancel
from headgate.common.stores import DeltaLogReader, LoggedObject, LogReplay
from headgate.common.stores.memory.log import MemoryDeltaLog
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.publishing.publisher import DeltaPublisher, Relist
from headgate.watcher.sources import Applied, Deleted, Listed, SourceEvent

_marks = itertools.count()

KINDS = (SERVICE, INGRESS, SECRET)


class ScriptedSource:
    """Says what it is told to say."""

    def __init__(self, kinds: Sequence[ResourceKind] = KINDS) -> None:
        self.kinds = kinds
        self.heard_at: datetime | None = None
        self.away_since: datetime | None = None
        self._events: asyncio.Queue[SourceEvent] = asyncio.Queue()

    def say(self, *events: SourceEvent) -> None:
        for event in events:
            self._events.put_nowait(event)

    def list(self, *services: Any) -> None:
        """Say that there are these Services, and nothing else."""
        self.say(*(Listed(kind, services if kind == SERVICE else ()) for kind in self.kinds))

    def apply(self, manifest: Any, kind: ResourceKind = SERVICE, traceparent: str | None = None) -> None:
        self.say(Applied(kind, manifest, traceparent))

    def delete(self, manifest: Any, kind: ResourceKind = SERVICE) -> None:
        self.say(Deleted(kind, manifest))

    async def events(self) -> AsyncIterator[SourceEvent]:
        while True:
            yield await self._events.get()


class ObservedLog(MemoryDeltaLog):
    """A log that can be away, and that keeps what it was asked to do."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.loses_answers = False
        """What is appended is kept, but the answer does not come."""
        self.appended: list[Delta] = []
        self.batches: list[int] = []
        self.said: list[ClusterAnnouncement | SyncMarker] = []
        self.reads = 0

    def _check(self) -> None:
        if self.is_away:
            raise StoreUnavailable("away")

    async def read_state(self, cluster: str) -> Mapping[ObjectRef, LoggedObject]:
        self._check()
        self.reads += 1
        return await super().read_state(cluster)

    async def append(self, delta: AnyDelta, expected_last: int | None = None) -> int:
        self._check()
        sequence = await super().append(delta, expected_last)
        self.appended.append(as_delta(delta))
        if self.loses_answers:
            self.loses_answers = False
            raise StoreUnavailable("no answer")
        return sequence

    async def append_all(self, deltas: Sequence[AnyDelta], expected: Sequence[int] | None = None) -> Sequence[int]:
        self._check()
        self.batches.append(len(deltas))
        return await super().append_all(deltas, expected)

    async def announce(self, announcement: ClusterAnnouncement) -> None:
        self._check()
        self.said.append(announcement)
        await super().announce(announcement)

    async def mark_synced(self, marker: SyncMarker) -> None:
        self._check()
        self.said.append(marker)
        await super().mark_synced(marker)

    def shown(self) -> list[str]:
        """What was appended, in short: `apply a 1`."""
        return [f"{delta.operation} {delta.ref.name} {delta.resource_version}" for delta in self.appended]


class Publishing:
    """A publisher at work."""

    def __init__(
        self,
        log: ObservedLog,
        origin: Literal["kubernetes", "manifests"] = "kubernetes",
        recipients: Any = None,
        log_reader: DeltaLogReader | None = None,
        leadership: Leadership | None = None,
        relist: Relist | None = None,
        kinds: Sequence[ResourceKind] = KINDS,
    ) -> None:
        self.log = log
        self.source = ScriptedSource(kinds)
        self.publisher = DeltaPublisher(
            self.source,
            log,
            "a",
            throwaway_recipients() if recipients is None else recipients,
            origin=origin,
            instance="test",
            log_reader=log_reader,
            leadership=leadership,
            relist=relist,
        )

    async def until_ready(self) -> None:
        """Wait until every kind is listed and published."""
        await until(lambda: self.publisher.readiness() is None)

    async def until_shown(self, *expected: str) -> None:
        """Wait until exactly this was appended."""
        try:
            await until(lambda: self.log.shown() == list(expected), within_s=5)
        except TimeoutError:
            assert self.log.shown() == list(expected)

    async def settle(self) -> None:
        """Wait until everything said so far was dealt with: a change said after it was published."""
        mark = service(f"mark-{next(_marks)}", "1")
        self.source.apply(mark)
        await until(lambda: any(delta.ref.name == mark["metadata"]["name"] for delta in self.log.appended))
        del self.log.appended[-1]


@asynccontextmanager
async def publishing(log: ObservedLog | None = None, **options: Any) -> AsyncIterator[Publishing]:
    """Run a publisher on a log."""
    one = Publishing(log or ObservedLog(), **options)
    task = asyncio.create_task(one.publisher.run())
    try:
        yield one
        assert not task.done(), task.result()
    finally:
        await cancel(task)


def service(name: str, version: str, port: int = 80, **metadata: Any) -> Any:
    """Return a Service as a cluster has it."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": version,
            **metadata,
        },
        "spec": {"ports": [{"port": port}]},
    }


async def read_log(log: DeltaLogReader) -> list[LogMessage]:
    """Return everything that the log has, in order."""
    found: list[LogMessage] = []
    async for batch in log.follow():
        if isinstance(batch, LogReplay):
            last = batch.position.last_sequence
            if not last:
                return []
            continue
        found += batch
        if found and getattr(found[-1], "sequence", last) >= last:
            return found
    raise AssertionError("following a log never ends")
