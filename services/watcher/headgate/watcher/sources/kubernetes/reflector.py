"""One kind in one scope, kept up to date for ever by list and watch, as client-go's Reflector does it.

A cycle lists if nothing is known, then watches from the version of the list until the watch ends, for whatever reason.
Every way into the next cycle passes `patience`. What is left of the last cycle is one thing: the version to go on
from, one that has to be proven first, or None if only a new list can tell what is true.

Versions are opaque: they are only ever handed back. A store that was restored from a backup counts on from an older
version: a watch from a version that it has not reached yet is silent, and once it has, the watch says nothing of what
differs below. No restore happens without an outage, so a watch is gone on from if it ended as it should. One whose
connection broke, as load balancers break them, is gone on from if the server still has the history that was followed
(`history`); after anything else there is a new list, of the newest state (no resourceVersion).

Rejected: going on from the last version after a broken connection without a proof, and lists at the last version seen
(client-go's ways of sparing etcd when thousands of clients come back at once; there is one watcher or two for each
cluster).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random

from headgate.common.deltas import SyncState
from headgate.common.resources import JsonObject, ResourceKind
from headgate.common.service.telemetry import current_traceparent, span_from
from headgate.watcher.api.kinds import WatchTarget
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.trouble import TroubleLog
from headgate.watcher.api.wire import LineSplitter, WatchEvent, decode_event, event_error
from headgate.watcher.errors import (
    Absent,
    ApiError,
    ApiStatusError,
    ApiUnreachable,
    Forbidden,
    Throttled,
    Unauthorized,
    WatchCut,
    WatcherError,
)
from headgate.watcher.sources import Applied, Deleted, Listed, SourceEvent, Unavailable
from headgate.watcher.sources.kubernetes.history import Chain, FollowedHistory
from headgate.watcher.sources.kubernetes.listing import list_target
from headgate.watcher.sources.kubernetes.outages import Outages
from headgate.watcher.sources.kubernetes.patience import Patience

log = logging.getLogger(__name__)

Emit = Callable[[SourceEvent], Awaitable[None]]

SILENCE_S = 70.0
"""A healthy server sends a bookmark about every 60 s, for most kinds (`_Silence`)."""
INITIAL_SILENCE_S = 10.0
"""A streaming list that says nothing for this long is not one: some servers ignore the parameters."""
INITIAL_LIMIT_S = 60.0
WATCH_S = (300, 600)
OVERTIME_S = 30.0
"""A watch that the server does not end in time is left after this."""
RELIST_S = (6 * 3600.0, 12 * 3600.0)
"""A safety net: a list finds what any mistake in a watch has missed."""
RELIST_PAUSE_S = 5.0
"""From one list that was asked for to the next."""
LONG_LIVED_S = 30.0
"""A watch that lived for this long and ended cleanly may be followed by the next at once."""


class _NotStreaming(ApiError):
    """The server does not do streaming lists."""


class Reflector:
    """Reports one target's objects through `emit`, which may wait: nothing is read meanwhile."""

    def __init__(
        self,
        target: WatchTarget,
        transport: KubernetesTransport,
        emit: Emit,
        *,
        outages: Outages,
        rng: Random,
        trouble: TroubleLog,
        chain: Chain | None = None,
    ) -> None:
        """Prepare; `run` does the work. `chain` helps to prove that a server's history is the one that was followed."""
        self._target = target
        self._transport = transport
        self._emit = emit
        self._rng = rng
        self._trouble = trouble
        self._patience = Patience(outages, rng)
        self._list_took_s = 0.0
        self._version: str | None = None
        self._unproven: str | None = None
        """The last version that was seen, if the watch was cut after it."""
        self._history = FollowedHistory(target, transport, chain)
        self._relisted_at = float("-inf")
        self._relist_at = 0.0
        self._is_relist_wanted = False
        self._events: _Events | None = None
        self._may_stream = True
        self._is_forbidden = False

    @property
    def kind(self) -> ResourceKind:
        """What is reported."""
        return self._target.kind

    def relist(self) -> None:
        """List again: the watch ends, at once unless this was asked for a moment ago."""
        self._is_relist_wanted = True
        if self._events is not None:
            self._events.end_by(self._relisted_at + RELIST_PAUSE_S)

    async def run(self) -> None:
        """Report for ever.

        Raises:
            Absent: the server does not have the kind in this version (any more).
        """
        while True:
            started = _now()
            try:
                await self._cycle()
            except Absent:
                raise
            except WatcherError as error:
                await self._note(error)
                await self._patience.after(error, list_s=self._list_took_s)
            else:
                if _now() - started < LONG_LIVED_S and not self._is_relist_wanted:
                    await self._patience.after_short_watch()

    async def _cycle(self) -> None:
        if self._is_relist_wanted:
            self._relist_at = self._relisted_at = _now()
            self._is_relist_wanted = False
        if _now() >= self._relist_at:
            self._version, self._unproven, self._may_stream = None, None, True
        if self._unproven is not None:
            self._version = await self._history.prove(self._unproven)
            self._unproven = None
        if self._version is None and self._may_stream:
            try:
                return await self._stream_list()
            except _NotStreaming as refusal:
                log.debug("%s: %s; listing in pages", self._target, refusal)
                self._may_stream = False
        if self._version is None:
            await self._list()
        await self._watch()

    async def _note(self, error: WatcherError) -> None:
        if not isinstance(error, Throttled | Unauthorized):  # these say nothing about the version
            if self._version is not None:
                self._unproven = self._version if isinstance(error, WatchCut) else None
            elif not isinstance(error, ApiUnreachable):
                self._unproven = None
            self._version = None
        if not isinstance(error, _Silence):  # whether anything is wrong the list will show that comes next
            self._trouble.report(str(self._target), error, self._transport.description)
        if isinstance(error, Forbidden):
            self._may_stream = True
            if not self._is_forbidden:
                self._is_forbidden = True
                await self._emit(Unavailable(self._target.kind, SyncState.FORBIDDEN, error.message))

    # Lists

    async def _list(self) -> None:
        began_at = _now()
        objects, version = await list_target(self._transport, self._target)
        await self._report_list(objects, version, began_at)

    async def _report_list(self, objects: list[JsonObject], version: str, began_at: float) -> None:
        self._list_took_s = _now() - began_at
        await self._emit(Listed(self._target.kind, objects))
        self._is_forbidden = False
        self._version = version
        self._history.saw_list()
        self._relist_at = _now() + self._rng.uniform(*RELIST_S)

    async def _stream_list(self) -> None:
        """List and watch in one stream: the present state as ADDED events, a special BOOKMARK, then changes."""
        query, began_at = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, _now()
        try:
            async with self._open_watch("", query) as events:
                await self._report_list(*await self._read_initial(events), began_at)
                await self._follow(events)
        except ApiStatusError as error:
            if self._version is not None or isinstance(error, Unauthorized | Throttled):
                raise
            raise _NotStreaming(f"the server refuses a streaming list ({error})") from error

    async def _read_initial(self, events: "_Events") -> tuple[list[JsonObject], str]:
        # The version is not touched before the end: half of a state is nothing to go on from.
        found: dict[tuple[str, str], JsonObject] = {}
        try:
            async with asyncio.timeout(INITIAL_LIMIT_S):
                while event := await events.next(INITIAL_SILENCE_S):
                    if event.ends_initial_events:
                        return list(found.values()), event.resource_version
                    if event.type == "DELETED":
                        found.pop(_name(event.object), None)
                    elif event.type in ("ADDED", "MODIFIED"):
                        found[_name(event.object)] = self._target.complete(event.object)
        except (TimeoutError, _Silence) as error:
            raise _NotStreaming("no end of the initial state in time") from error
        raise ApiUnreachable("the streaming list ended before the initial state was complete")

    # Watches

    async def _watch(self) -> None:
        assert self._version is not None
        async with self._open_watch(self._version, {}) as events:
            await self._follow(events)

    @asynccontextmanager
    async def _open_watch(self, version: str, more: Mapping[str, str]) -> "AsyncIterator[_Events]":
        seconds = self._rng.randint(*WATCH_S)
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            "resourceVersion": version,
            **more,
            **self._target.selectors,
        }
        async with self._transport.stream(self._target.path, query, silence_s=SILENCE_S) as chunks:
            yield _Events(chunks, _now() + seconds + OVERTIME_S)

    async def _follow(self, events: "_Events") -> None:
        self._events = events
        if self._is_relist_wanted:  # while the list was under way
            self.relist()
        try:
            while event := await events.next(SILENCE_S):
                await self._report(event)
                self._version = event.resource_version or self._version
                self._note_seen(event)
        finally:
            self._events = None

    def _note_seen(self, event: WatchEvent) -> None:
        if event.type in ("ADDED", "MODIFIED"):
            self._history.saw_applied(event.object)
        elif event.type == "DELETED":
            self._history.saw_deleted()
        else:
            self._history.saw_version()

    async def _report(self, event: WatchEvent) -> None:
        kind = self._target.kind
        if event.type in ("ADDED", "MODIFIED"):
            with span_from(None, "kubernetes change"):
                await self._emit(Applied(kind, self._target.complete(event.object), current_traceparent()))
        elif event.type == "DELETED":
            await self._emit(Deleted(kind, self._target.complete(event.object)))
        elif event.type != "BOOKMARK":
            raise ApiUnreachable(f"a watch event of type {event.type!r} is not known")


class _Silence(WatchCut):
    """The watch says nothing, not even a bookmark.

    The connection is dead, or the version is one that the store has not reached. Or nothing is wrong: servers send no
    bookmarks for a kind of which they have seen no event since they started, unless their etcd tells of progress.
    """


class _Events:
    """The events of one open watch."""

    def __init__(self, chunks: AsyncIterator[bytes], ends_at: float) -> None:
        self._chunks = chunks
        self._ends_at = ends_at
        self._splitter = LineSplitter()
        self._lines: list[bytes] = []
        self._waiting: asyncio.Timeout | None = None

    def end_by(self, time: float) -> None:
        """End at this time at the latest."""
        self._ends_at = min(self._ends_at, time)
        if self._waiting is not None and self._ends_at < (self._waiting.when() or 0.0):
            self._waiting.reschedule(max(self._ends_at, _now()))

    async def next(self, silence_s: float) -> WatchEvent | None:
        """Return the next event, or None at the end of the watch.

        Raises:
            ApiStatusError: the next event is an ERROR.
            ApiUnreachable: the watch broke off, says nothing or says nonsense.
        """
        while not self._lines:
            try:
                async with asyncio.timeout_at(min(_now() + silence_s, self._ends_at)) as self._waiting:
                    chunk = await anext(self._chunks, None)
            except TimeoutError as error:
                if _now() >= self._ends_at:
                    return None
                raise _Silence(f"the watch said nothing for {silence_s:.0f} s") from error
            finally:
                self._waiting = None
            if chunk is None or _now() >= self._ends_at:
                return None  # lines that are left over, or half of one, are asked for again
            self._lines = list(self._splitter.feed(chunk))[::-1]
        return _decode(self._lines.pop())


def _decode(line: bytes) -> WatchEvent:
    event = decode_event(line)
    if event.type == "ERROR":
        raise event_error(event)
    return event


def _name(item: JsonObject) -> tuple[str, str]:
    metadata = item.get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")


def _now() -> float:
    return asyncio.get_running_loop().time()
