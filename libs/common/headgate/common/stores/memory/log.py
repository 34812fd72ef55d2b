"""The delta log and the log of last good versions on dictionaries."""

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime

from headgate.common.deltas import (
    AnyDelta,
    ClusterAnnouncement,
    Delta,
    LastGood,
    LogMessage,
    LogPlace,
    Operation,
    SyncMarker,
    as_delta,
    cluster_subject,
    delta_subject,
    last_good_subject,
    sync_subject,
)
from headgate.common.errors import Conflict
from headgate.common.resources import ObjectRef
from headgate.common.stores import (
    TOMBSTONE_AGE_S,
    DeltaSelection,
    LogBatch,
    LoggedDelta,
    LoggedObject,
    LogPosition,
    LogReplay,
)
from headgate.common.stores.memory.changes import Changes

BATCH = 256
HISTORY = 8
Clock = Callable[[], float]


class MemoryDeltaLog:
    """`DeltaLogWriter`, `DeltaLogReader` and `LastGoodLog` on a dictionary of the last message of each subject."""

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self._changes = Changes()
        self.incarnation = 0
        self._clear()

    def _clear(self) -> None:
        self.incarnation += 1
        self.last_sequence = 0
        self.messages: dict[str, tuple[int, LogMessage, float]] = {}
        """Subject to sequence, message, time; in order of sequence."""
        self._histories: dict[ObjectRef, deque[Delta]] = {}

    def lose(self) -> None:
        """Lose everything, as a server does whose disk was replaced: readers see a replay."""
        self._clear()
        self._changes.tell()

    async def read_state(self, cluster: str) -> Mapping[ObjectRef, LoggedObject]:
        """Return the last delta of every object of a cluster, tombstones included."""
        return {
            delta.ref: LoggedObject(delta.uid, delta.resource_version, _is_deletion(delta), sequence, delta.digest)
            for sequence, delta, _ in self.messages.values()
            if isinstance(delta, Delta) and delta.ref.cluster == cluster
        }

    def forget_state(self, cluster: str) -> None:
        """Nothing is kept between two readings."""

    async def append(self, delta: AnyDelta, expected_last: int | None = None) -> int:
        """Append one delta; what is the object's last delta already is not stored again."""
        last, before, _ = self.messages.get(delta_subject(delta.ref), (0, None, 0.0))
        if isinstance(before, Delta) and before.message_id == delta.message_id:
            return last
        if expected_last is not None and expected_last != last:
            raise Conflict(f"{delta.ref}: expected sequence {expected_last}, found {last}")
        return self._store(delta_subject(delta.ref), as_delta(delta))

    async def append_all(self, deltas: Sequence[AnyDelta], expected: Sequence[int] | None = None) -> Sequence[int]:
        """Append many deltas."""
        return [await self.append(delta) for delta in deltas]

    async def announce(self, announcement: ClusterAnnouncement) -> None:
        """Say which kinds the cluster's deltas are going to have."""
        self._store(cluster_subject(announcement.cluster), announcement)

    async def mark_synced(self, marker: SyncMarker) -> None:
        """Say that a kind is completely in the log."""
        self._store(sync_subject(marker.cluster, marker.kind.group, marker.kind.resource), marker)

    def _store(self, subject: str, message: LogMessage) -> int:
        self.last_sequence += 1
        sequence = self.last_sequence
        message = message.model_copy(update={"sequence": sequence})
        self.messages.pop(subject, None)
        self.messages[subject] = (sequence, message, self._clock())
        if isinstance(message, Delta):
            self._histories.setdefault(message.ref, deque(maxlen=HISTORY)).append(message)
        self._changes.tell()
        return sequence

    async def purge_tombstones(self, cluster: str, older_than_s: float = TOMBSTONE_AGE_S) -> int:
        """Forget deletions that are older than this; return how many."""
        limit = self._clock() - older_than_s
        old = [
            subject
            for subject, (_, message, at) in self.messages.items()
            if isinstance(message, Delta) and _is_deletion(message) and message.ref.cluster == cluster and at < limit
        ]
        for subject in old:
            _, message, _ = self.messages.pop(subject)
            if isinstance(message, Delta):
                del self._histories[message.ref]
        return len(old)

    async def forget_cluster(self, cluster: str, up_to: int) -> None:
        """Forget what a cluster's watchers announced and marked, up to a sequence; its objects stay."""
        said = [
            subject
            for subject, (sequence, message, _) in self.messages.items()
            if isinstance(message, ClusterAnnouncement | SyncMarker)
            and message.cluster == cluster
            and sequence <= up_to
        ]
        for subject in said:
            del self.messages[subject]

    async def histories(self, refs: Sequence[ObjectRef]) -> Mapping[ObjectRef, Sequence[Delta]]:
        """Return the last deltas of objects, oldest first."""
        return {ref: tuple(self._histories.get(ref, ())) for ref in refs}

    async def write(self, record: LastGood) -> None:
        """Write down what stands in for a version."""
        self._store(last_good_subject(record.ref, record.table), record)

    async def position(self) -> LogPosition:
        """Return where the log stands."""
        last = next(reversed(self.messages.values()), (0,))[0]
        return LogPosition(str(self.incarnation), last)

    async def went_back(self, place: LogPlace) -> bool:
        """Return whether this is an older copy of the log that had a message there."""
        if place.incarnation != str(self.incarnation):
            return self.incarnation < int(place.incarnation)
        times = (at for sequence, _, at in self.messages.values() if sequence == place.sequence)
        return self.last_sequence < place.sequence or any(_microseconds(at) != place.stored_at_us for at in times)

    async def follow(self, known: LogPlace | None = None) -> AsyncIterator[LogBatch | LogReplay]:
        """Yield the log for ever; see `DeltaLogReader.follow`."""
        changed = self._changes.listen()
        incarnation = seen = 0
        try:
            while True:
                changed.clear()
                if incarnation != self.incarnation:
                    incarnation, seen = self.incarnation, 0
                    yield LogReplay(await self.position(), known is not None and await self.went_back(known))
                    known = None
                while batch := self._after(seen, incarnation):
                    seen, _, at = batch[-1]
                    last = LogPlace(str(incarnation), seen, _microseconds(at))
                    yield LogBatch((message for _, message, _ in batch), last)
                if incarnation == self.incarnation:
                    await changed.wait()
        finally:
            self._changes.forget(changed)

    async def announcement(self, cluster: str) -> ClusterAnnouncement | None:
        """Return the last announcement of one cluster."""
        return next((each for each in await self.announcements() if each.cluster == cluster), None)

    async def announcements(self) -> Sequence[ClusterAnnouncement]:
        """Return the last announcement of each cluster."""
        return [message for _, message, _ in self.messages.values() if isinstance(message, ClusterAnnouncement)]

    async def read_after(
        self, selection: DeltaSelection, after: int, *, with_objects: bool = True
    ) -> AsyncGenerator[Sequence[LoggedDelta]]:
        """Yield the deltas after a sequence; of each object there is but the last one here."""
        if found := self._selected(selection, after, with_objects):
            yield found

    async def tail(
        self, selection: DeltaSelection, after: int, *, with_objects: bool = True
    ) -> AsyncGenerator[Sequence[LoggedDelta]]:
        """Yield the deltas after a sequence, then everything new, for ever."""
        changed = self._changes.listen()
        incarnation = self.incarnation
        try:
            while True:
                changed.clear()
                if incarnation != self.incarnation or self.last_sequence < after:
                    incarnation, after = self.incarnation, 0
                found, after = self._selected(selection, after, with_objects), self.last_sequence
                if found:
                    yield found
                else:
                    await changed.wait()
        finally:
            self._changes.forget(changed)

    def _selected(self, selection: DeltaSelection, after: int, with_objects: bool) -> list[LoggedDelta]:
        return [
            LoggedDelta(
                message if with_objects else message.model_copy(update={"object": None}),
                datetime.fromtimestamp(at, UTC),
            )
            for sequence, message, at in self.messages.values()
            if sequence > after and isinstance(message, Delta) and _is_selected(message.ref, selection)
        ]

    def _after(self, seen: int, incarnation: int) -> list[tuple[int, LogMessage, float]]:
        if incarnation != self.incarnation:
            return []
        # From the newest backwards: a follower that keeps up looks at a few messages, not at the whole log.
        found: list[tuple[int, LogMessage, float]] = []
        for message in reversed(self.messages.values()):
            if message[0] <= seen:
                break
            found.append(message)
        found.reverse()
        return found[:BATCH]


def _is_selected(ref: ObjectRef, selection: DeltaSelection) -> bool:
    wanted = ((selection.cluster, ref.cluster), (selection.namespace, ref.namespace), (selection.name, ref.name))
    is_of_kind = not selection.kinds or (ref.group, ref.resource) in selection.kinds
    return is_of_kind and all(part in ("", present) for part, present in wanted)


def _microseconds(seconds: float) -> int:
    return int(seconds * 1_000_000)


def _is_deletion(delta: Delta) -> bool:
    return delta.operation is Operation.DELETE
