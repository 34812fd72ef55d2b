"""Writes to a cluster what the translator wants written: addresses of Ingresses, and Events.

An update is read from the status board, compared with the object as it is now, and written if it differs. Each object
is worked on by itself: one that cannot be written waits for its own next attempt and holds nobody back. The last
update of an object counts; what was wanted before and not written yet is forgotten, except for its Events.

Rejected: writing what the watcher saw last instead of reading the object first. It spares a request, and writes to
objects that were deleted, made anew or changed by others meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from prometheus_client import Counter

from headgate.common.resources import INGRESS, LEGACY_INGRESS, JsonObject, ObjectRef
from headgate.common.status import EventNote, StatusUpdate
from headgate.common.stores import StatusBoard
from headgate.common.tasks import run_together
from headgate.common.telemetry import span_from
from headgate.watcher.errors import Absent, ApiStatusError, Forbidden, WatcherError, WriteConflict
from headgate.watcher.sources.kubernetes.backoff import Backoff, slow_backoff
from headgate.watcher.sources.kubernetes.kinds import group_path
from headgate.watcher.sources.kubernetes.transport import KubernetesTransport
from headgate.watcher.sources.kubernetes.trouble import TroubleLog
from headgate.watcher.sources.kubernetes.wire import decode_object
from headgate.watcher.status.events import STALE, RecentNotes, event_object, event_path
from headgate.watcher.status.load_balancer import FIELD_MANAGER, addresses_to_write, status_patch
from headgate.watcher.status.token_bucket import TokenBucket
from headgate.watcher.status.work_queue import WorkQueue

log = logging.getLogger(__name__)

WORKERS = 4
ATTEMPTS_AT_ONCE = 5
"""After so many conflicts in a row the object waits: somebody else is writing it as fast."""
MAX_PENDING_EVENTS = 50
_HOPELESS = (400, 405, 413, 415, 422)
"""Answers that the same request gets for ever."""
_WITH_ADDRESSES = {(kind.group, kind.resource) for kind in (INGRESS, LEGACY_INGRESS)}

STATUS_WRITES = Counter(
    "headgate_watcher_status_writes", "Requests that wrote a status or an Event", ["what", "result"]
)


@dataclass(slots=True)
class _Wanted:
    update: StatusUpdate
    events: list[tuple[StatusUpdate, EventNote]]
    backoff: Backoff
    slow_backoff: Backoff
    """For a missing right."""


class StatusWriter:
    """Follows the status board of one cluster for ever."""

    def __init__(
        self,
        board: StatusBoard,
        cluster: str,
        transport: KubernetesTransport,
        *,
        instance: str,
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
            writes_per_s: most writes in the long run; five times as many reads are made.
            burst: most writes at once.
            rng: for jitter.
            now: the wall clock.
        """
        self._board = board
        self._cluster = cluster
        self._transport = transport
        self._instance = instance
        self._writes = TokenBucket(writes_per_s, burst)
        self._reads = TokenBucket(writes_per_s * 5, burst * 5)
        self._rng = rng or Random()  # noqa: S311 - jitter
        self._now = now
        self._queue: WorkQueue[ObjectRef] = WorkQueue()
        self._wanted: dict[ObjectRef, _Wanted] = {}
        self._notes = RecentNotes()
        self._trouble = TroubleLog()

    async def run(self) -> None:
        """Write what is wanted, for ever; errors of the API server are logged and outwaited."""
        try:
            await run_together(self._follow(), *(self._work() for _ in range(WORKERS)))
        finally:
            self._queue.close()

    @property
    def pending(self) -> int:
        """How many objects have something that is not written yet."""
        return len(self._wanted)

    async def _follow(self) -> None:
        async for update in self._board.follow(self._cluster):
            before = self._wanted.get(update.ref)
            left = before.events if before is not None and before.update.uid == update.uid else []
            fresh = update.events if self._now() - update.at < STALE else ()
            events = [*left, *((update, note) for note in fresh)][-MAX_PENDING_EVENTS:]
            self._wanted[update.ref] = _Wanted(update, events, Backoff(self._rng), slow_backoff(self._rng))
            self._queue.add(update.ref)

    async def _work(self) -> None:
        while True:
            ref = await self._queue.get()
            wanted = self._wanted[ref]
            try:
                with span_from(wanted.update.traceparent, "write status"):
                    await self._write(wanted)
            except WatcherError as error:
                self._retry_later(ref, wanted, error)
            else:
                if self._wanted[ref] is wanted:
                    del self._wanted[ref]
            finally:
                self._queue.done(ref)

    def _retry_later(self, ref: ObjectRef, wanted: _Wanted, error: WatcherError) -> None:
        self._trouble.report(f"status of {ref}", error, self._transport.description)
        backoff = wanted.slow_backoff if isinstance(error, Forbidden) else wanted.backoff
        asked_s = error.retry_after_s if isinstance(error, ApiStatusError) else None
        self._queue.add_later(ref, backoff.next_delay(asyncio.get_running_loop().time(), asked_s))

    async def _write(self, wanted: _Wanted) -> None:
        update = wanted.update
        if update.addresses is not None and (update.ref.group, update.ref.resource) in _WITH_ADDRESSES:
            await self._write_addresses(update)
        while wanted.events:
            await self._write_event(*wanted.events[0])
            wanted.events.pop(0)

    # Addresses

    async def _write_addresses(self, update: StatusUpdate) -> None:
        for attempt in range(ATTEMPTS_AT_ONCE):
            try:
                return await self._write_addresses_once(update)
            except Absent:
                return  # gone; nothing is wanted of it any more
            except WriteConflict:
                if attempt == ATTEMPTS_AT_ONCE - 1:
                    raise
            except ApiStatusError as error:
                if error.status not in _HOPELESS:
                    raise
                log.warning("%s: the API server does not take its addresses: %s", update.ref, error)
                return

    async def _write_addresses_once(self, update: StatusUpdate) -> None:
        path = _object_path(update)
        await self._reads.take()
        current = decode_object(await self._transport.request("GET", path))
        addresses = addresses_to_write(update, current)
        if addresses is None:
            return
        await self._send("PATCH", f"{path}/status", status_patch(current, addresses), "application/merge-patch+json")

    # Events

    async def _write_event(self, update: StatusUpdate, note: EventNote) -> None:
        clock = asyncio.get_running_loop().time
        if self._notes.is_repeated(update, note, clock()):
            return
        event = event_object(update, note, self._instance, self._now())
        try:
            await self._send("POST", event_path(update.ref), event)
        except WriteConflict:
            pass  # this very Event is there already
        except (Absent, Forbidden) as error:
            # The namespace is gone or going, or we may not: an Event is not worth waiting for.
            self._trouble.report(f"Event about {update.ref}", error, self._transport.description)
        except ApiStatusError as error:
            if error.status not in _HOPELESS:
                raise
            log.warning("%s: the API server does not take an Event: %s", update.ref, error)
        self._notes.remember(update, note, clock())

    async def _send(self, method: str, path: str, body: JsonObject, content_type: str = "application/json") -> None:
        await self._writes.take()
        what = "event" if method == "POST" else "status"
        try:
            await self._transport.request(
                method, path, body=body, content_type=content_type, query={"fieldManager": FIELD_MANAGER}
            )
        except WatcherError as error:
            STATUS_WRITES.labels(what, str(error.status) if isinstance(error, ApiStatusError) else "no answer").inc()
            raise
        STATUS_WRITES.labels(what, "ok").inc()


def _object_path(update: StatusUpdate) -> str:
    ref = update.ref
    inside: Sequence[str] = (f"namespaces/{ref.namespace}",) if ref.namespace else ()
    return "/".join((group_path(update.api_version), *inside, ref.resource, ref.name))
