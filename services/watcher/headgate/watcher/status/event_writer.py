"""Writes Events: each table's of an object in order, each once, for as long as API servers would keep them.

What has to be written is found in every status update, which repeats the notes of the last hour: so nothing is lost
when this process is, or when another update comes before the last one's notes were written.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import run_together
from headgate.common.status import NOTE_BYTES, EventNote, StatusUpdate, in_table, shorten
from headgate.watcher.api.backoff import Backoff, slow_backoff
from headgate.watcher.api.trouble import TroubleLog
from headgate.watcher.errors import Absent, ApiStatusError, Forbidden, WatcherError, WriteConflict
from headgate.watcher.status.events import STALE, RecentNotes, event_object, event_path
from headgate.watcher.status.requests import HOPELESS, StatusRequests
from headgate.watcher.status.work_queue import WorkQueue

log = logging.getLogger(__name__)

WORKERS = 2
_ENDING = "is being terminated"
"""What API servers say of a namespace that takes nothing new."""
_Key = tuple[ObjectRef, str]
"""An object, and the table that says something of it."""


@dataclass(slots=True)
class _PendingEvents:
    update: StatusUpdate
    backoff: Backoff
    notes: list[EventNote] = field(default_factory=list)


class EventWriter:
    """The queue of Events of one cluster."""

    def __init__(
        self,
        requests: StatusRequests,
        notes: RecentNotes,
        trouble: TroubleLog,
        *,
        instance: str,
        rng: Random,
        now: Callable[[], datetime],
    ) -> None:
        """Prepare; `run` does the work.

        Args:
            requests: to the API server.
            notes: what was written already; outlives this writer.
            trouble: where what goes wrong is told.
            instance: name of this watcher, for `reportingInstance`.
            rng: for jitter.
            now: the wall clock.
        """
        self._requests = requests
        self._notes = notes
        self._trouble = trouble
        self._instance = instance
        self._rng = rng
        self._now = now
        self._queue: WorkQueue[_Key] = WorkQueue()
        self._wanted: dict[_Key, _PendingEvents] = {}
        self._refused = slow_backoff(rng)
        self._closed_until = 0.0
        """Of the loop's clock: a missing right is missing for all."""

    @property
    def pending(self) -> int:
        """How many objects have Events that are not written yet, counted for each table."""
        return len(self._wanted)

    def want(self, update: StatusUpdate, *, is_urgent: bool) -> None:
        """Want what an update says that was not said yet."""
        key = update.ref, update.table
        said = (_in_table(update.table, note) for note in update.events)
        notes = [note for note in said if self._is_due(update, note)]
        if not notes:
            self._wanted.pop(key, None)
            return
        self._wanted[key] = _PendingEvents(update, Backoff(self._rng), notes)
        self._queue.add(key, is_urgent=is_urgent)

    def _is_due(self, update: StatusUpdate, note: EventNote) -> bool:
        return self._now() - note.at < STALE and not self._notes.is_repeated(update, note)

    async def run(self) -> None:
        """Write for ever."""
        try:
            await run_together(*(self._work() for _ in range(WORKERS)))
        finally:
            self._queue.close()

    async def _work(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            key = await self._queue.get()
            try:
                await asyncio.sleep(max(0.0, self._closed_until - clock()))
                if (wanted := self._wanted.get(key)) is not None:
                    await self._write_all(key, wanted)
            finally:
                self._queue.done(key)

    async def _write_all(self, key: _Key, wanted: _PendingEvents) -> None:
        try:
            while wanted.notes:
                await self._write(wanted.update, wanted.notes[0])
                wanted.notes.pop(0)
        except WatcherError as error:
            self._retry_later(key, wanted, error)
        else:
            if self._wanted.get(key) is wanted:
                del self._wanted[key]

    def _retry_later(self, key: _Key, wanted: _PendingEvents, error: WatcherError) -> None:
        self._trouble.report(f"Events about {key[0]}", error, self._requests.server, "written")
        now = asyncio.get_running_loop().time()
        if isinstance(error, Forbidden):
            self._closed_until = now + self._refused.next_delay(now)
            self._queue.add_later(key, 0.0)
        else:
            asked_s = error.retry_after_s if isinstance(error, ApiStatusError) else None
            self._queue.add_later(key, wanted.backoff.next_delay(now, asked_s))

    async def _write(self, update: StatusUpdate, note: EventNote) -> None:
        if not self._is_due(update, note):
            return
        event = event_object(update, note, self._instance, self._now())
        try:
            await self._requests.create_event(event_path(update.ref), event)
        except WriteConflict:
            pass  # this very Event is there already
        except Absent:
            log.debug("%s: no Event, as its namespace is gone", update.ref)
        except ApiStatusError as error:
            if error.status not in HOPELESS and _ENDING not in error.message:
                raise
            log.warning("%s: the API server does not take an Event: %s", update.ref, error)
        self._notes.remember(update, note)


def _in_table(table: str, note: EventNote) -> EventNote:
    text = in_table(table, note.note)
    return note if text == note.note else note.model_copy(update={"note": shorten(text, NOTE_BYTES)})
