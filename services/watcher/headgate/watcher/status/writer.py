"""Writes to a cluster what the translator wants written: addresses, conditions, and Events.

An update is read from the status board, compared with the object as it is now, and written if it differs. Each object
is worked on by itself: one that cannot be written waits for its own next attempt and holds no other back. Each table's
last update of an object counts (`status.merging`); Events have a queue of their own (`status.event_writer`).

Addresses that are gone from an object as the cluster reports it were cleared by another controller, as some do when
they are removed: they are written again, ever more slowly, so that two that disagree do not chase each other.

One of a cluster's watchers writes. When it begins it reads the whole board and compares it with the cluster,
so nothing that another one left undone is lost; what is new goes before that.

Rejected: writing what the watcher saw last instead of reading the object first. It spares a request, and writes to
objects that were deleted, made again or changed by others meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from prometheus_client import Gauge

from headgate.common.leadership.leadership import Leadership, Sole, run_while_leading
from headgate.common.resources import ALL_KINDS, JsonObject, Kinds, ObjectRef, ResourceKind, StatusShape
from headgate.common.service.tasks import run_together
from headgate.common.service.telemetry import span_from
from headgate.common.status import StatusUpdate
from headgate.common.stores import StatusBoard
from headgate.watcher.api.backoff import Backoff, slow_backoff
from headgate.watcher.api.kinds import group_path
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.trouble import TroubleLog
from headgate.watcher.errors import Absent, ApiStatusError, Forbidden, WatcherError, WriteConflict
from headgate.watcher.sources import Applied, Listed, SourceEvent
from headgate.watcher.status.accounts import GatewayAccounts
from headgate.watcher.status.conditions import (
    acceptance_status,
    conditions_status,
    export_status,
    prefixed_conditions_status,
)
from headgate.watcher.status.event_writer import EventWriter
from headgate.watcher.status.events import RecentNotes
from headgate.watcher.status.load_balancer import ingress_status
from headgate.watcher.status.merging import Parts
from headgate.watcher.status.parts import (
    ancestors_status,
    gateway_ancestors_status,
    listeners_status,
    parents_status,
)
from headgate.watcher.status.requests import HOPELESS, StatusRequests
from headgate.watcher.status.work_queue import WorkQueue

log = logging.getLogger(__name__)

WORKERS = 4
ATTEMPTS_AT_ONCE = 5
"""After so many conflicts in a row the object waits: somebody else is writing it as fast."""
OLD = timedelta(seconds=30)
"""An update that was made before is no news: it was written already, or by another watcher."""
SETTLE_S = 1.0
"""What is no news waits so long, until every table's word of the object was read."""
REPAIR_S = (5.0, 3600.0)
"""Between two repairs of the same object: the first, and the longest that doubling leads to."""
REPAIRS_FORGOTTEN_S = 2 * 3600.0
_TOGETHER = 64
PENDING = Gauge(
    "headgate_watcher_status_pending", "Objects with a status, or Events, that are not written yet", ["what"]
)

Compare = Callable[[StatusUpdate, JsonObject], JsonObject | None]
_COMPARE: Mapping[StatusShape, Compare] = {
    StatusShape.INGRESS: ingress_status,
    StatusShape.CONDITIONS: conditions_status,
    StatusShape.ACCEPTANCE: acceptance_status,
    StatusShape.EXPORT: export_status,
    StatusShape.PREFIXED_CONDITIONS: prefixed_conditions_status,
    StatusShape.ANCESTORS: ancestors_status,
    StatusShape.GATEWAY_ANCESTORS: gateway_ancestors_status,
    StatusShape.PARENTS: parents_status,
    StatusShape.LISTENERS: listeners_status,
}
"""What of an object's status to write, if anything."""


@dataclass(slots=True)
class _PendingStatus:
    update: StatusUpdate
    backoff: Backoff
    slow_backoff: Backoff
    """For a missing right."""


class StatusWriter:
    """Follows the status board of one cluster for ever, and writes while it leads."""

    def __init__(
        self,
        board: StatusBoard,
        cluster: str,
        transport: KubernetesTransport,
        *,
        instance: str,
        kinds: Kinds = ALL_KINDS,
        leadership: Leadership | None = None,
        makes_accounts: bool = False,
        writes_per_s: float = 20.0,
        burst: int = 50,
        rng: Random | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare; `run` does the work.

        Args:
            board: what is wanted.
            cluster: whose objects are written.
            transport: the cluster's API server.
            instance: name of this watcher, for `reportingInstance` of Events.
            kinds: whose rows say which status is written.
            leadership: which one of several watchers writes; without it this one does.
            makes_accounts: whether each Gateway gets a ServiceAccount with its labels and annotations.
            writes_per_s: most status writes in the long run; five times as many reads are made, and half as many
                Events.
            burst: most status writes at once.
            rng: for jitter.
            now: the wall clock.
        """
        self._board = board
        self._cluster = cluster
        self._kinds = kinds
        self._requests = StatusRequests(transport, writes_per_s, burst)
        self._instance = instance
        self._makes_accounts = makes_accounts
        self._leadership = leadership or Sole()
        self._rng = rng or Random()  # noqa: S311 - jitter
        self._now = now
        self._notes = RecentNotes()
        self._trouble = TroubleLog()
        self._begin()

    def _begin(self) -> None:
        self._queue: WorkQueue[ObjectRef] = WorkQueue()
        self._wanted: dict[ObjectRef, _PendingStatus] = {}
        self._parts = Parts()
        self._repairs: dict[ObjectRef, Backoff] = {}
        self._accounts = GatewayAccounts(self._requests) if self._makes_accounts else None
        self._events = EventWriter(
            self._requests, self._notes, self._trouble, instance=self._instance, rng=self._rng, now=self._now
        )

    @property
    def pending(self) -> int:
        """How many objects have something that is not written yet."""
        return len(self._wanted) + self._events.pending

    @property
    def troubles(self) -> Sequence[str]:
        """What went wrong within the last minute."""
        return self._trouble.recent

    async def run(self) -> None:
        """Write what is wanted, for ever; errors of the API server are logged and outwaited."""
        await run_while_leading(self._leadership, self._write_for_ever)

    async def _write_for_ever(self) -> None:
        self._begin()
        try:
            await run_together(self._follow(), self._events.run(), *(self._work() for _ in range(WORKERS)))
        finally:
            self._queue.close()
            self._measure()

    async def _follow(self) -> None:
        async for update in self._board.follow(self._cluster):
            is_urgent = self._now() - update.at < OLD
            self._events.want(update, is_urgent=is_urgent)
            if self._compare(update.ref) is not None:
                merged = self._parts.take(update)
                self._wanted[update.ref] = _PendingStatus(merged, Backoff(self._rng), slow_backoff(self._rng))
                if is_urgent:
                    self._queue.add(update.ref)
                else:
                    self._queue.add_later(update.ref, SETTLE_S, is_urgent=False)
            self._measure()

    async def observe(self, event: SourceEvent) -> None:
        """Take in what the cluster reports: addresses that another controller cleared are written again."""
        if not self._leadership.is_leader or event.kind.status is not StatusShape.INGRESS:
            return
        match event:
            case Applied(_, manifest):
                self._look(event.kind, manifest)
            case Listed(_, manifests):
                for count, manifest in enumerate(manifests, start=1):
                    self._look(event.kind, manifest)
                    if count % _TOGETHER == 0:
                        await asyncio.sleep(0)

    def _look(self, kind: ResourceKind, manifest: JsonObject) -> None:
        metadata = manifest["metadata"]
        ref = ObjectRef(self._cluster, kind.group, kind.resource, metadata.get("namespace", ""), metadata["name"])
        if ref in self._wanted or (update := self._parts.of(ref)) is None:
            return
        is_meant = not update.uid or update.uid == metadata.get("uid")
        if is_meant and update.is_accepted and ingress_status(update, manifest) is not None:
            first_s, longest_s = REPAIR_S
            slowly = Backoff(self._rng, first_s=first_s, longest_s=longest_s, healthy_s=REPAIRS_FORGOTTEN_S, jitter=0.5)
            repair = self._repairs.setdefault(ref, slowly)
            self._wanted[ref] = _PendingStatus(update, Backoff(self._rng), slow_backoff(self._rng))
            self._queue.add_later(ref, repair.next_delay(asyncio.get_running_loop().time()))
            self._measure()

    def _measure(self) -> None:
        PENDING.labels("status").set(len(self._wanted))
        PENDING.labels("event").set(self._events.pending)

    async def _work(self) -> None:
        while True:
            ref = await self._queue.get()
            wanted, what, done = self._wanted[ref], "status", "written"
            try:
                with span_from(wanted.update.traceparent, "write status"):
                    current = await self._write(wanted.update)
                    what, done = "ServiceAccount", "made"
                    await self._keep_account(wanted.update, current)
            except WatcherError as error:
                self._retry_later(ref, wanted, error, (what, done))
            else:
                if self._wanted[ref] is wanted:
                    del self._wanted[ref]
            finally:
                self._queue.done(ref)
                self._measure()

    def _retry_later(
        self, ref: ObjectRef, wanted: _PendingStatus, error: WatcherError, unfinished: tuple[str, str]
    ) -> None:
        what, done = unfinished
        self._trouble.report(f"the {what} of {ref}", error, self._requests.server, done)
        backoff = wanted.slow_backoff if isinstance(error, Forbidden) else wanted.backoff
        asked_s = error.retry_after_s if isinstance(error, ApiStatusError) else None
        self._queue.add_later(ref, backoff.next_delay(asyncio.get_running_loop().time(), asked_s))

    async def _keep_account(self, update: StatusUpdate, gateway: JsonObject | None) -> None:
        """Make sure of a Gateway's ServiceAccount, if accounts are made; `gateway` is None if it is gone."""
        if self._accounts is None or not self._leadership.is_leader:
            return
        if gateway is None:
            self._accounts.forget(update.ref)
            return
        try:
            clash = await self._accounts.keep(update, gateway)
        except ApiStatusError as error:
            if error.status not in HOPELESS:
                raise
            log.warning("%s: the API server does not take its ServiceAccount: %s", update.ref, error)
            return
        if clash is not None:
            self._events.want(update.model_copy(update={"events": (*update.events, clash)}), is_urgent=True)

    async def _write(self, update: StatusUpdate) -> JsonObject | None:
        """Write a status; return the object as it was before, or None if it is not there."""
        for attempt in range(ATTEMPTS_AT_ONCE):
            try:
                return await self._write_once(update)
            except Absent:
                return None  # gone; nothing is wanted of it any more
            except WriteConflict:
                if attempt == ATTEMPTS_AT_ONCE - 1:
                    raise
            except ApiStatusError as error:
                if error.status not in HOPELESS:
                    raise
                log.warning("%s: the API server does not take its status: %s", update.ref, error)
                return None
        return None

    def _compare(self, ref: ObjectRef) -> Compare | None:
        kind = self._kinds.find(ref.group, ref.resource)
        return _COMPARE.get(kind.status) if kind else None

    async def _write_once(self, update: StatusUpdate) -> JsonObject | None:
        path = _object_path(update)
        compare = self._compare(update.ref)
        if compare is None:
            return None
        current = await self._requests.read(path)
        if update.uid and current["metadata"].get("uid") != update.uid:
            return None  # made again: what is wanted of that one is said by another update
        status = compare(update, current)
        if status is not None and self._leadership.is_leader:
            await self._requests.patch_status(path, current, status)
        return current


def _object_path(update: StatusUpdate) -> str:
    ref = update.ref
    inside: Sequence[str] = (f"namespaces/{ref.namespace}",) if ref.namespace else ()
    return "/".join((group_path(update.api_version), *inside, ref.resource, ref.name))
