"""The delta log on a JetStream stream: a compacted table with an order.

Eight messages of each subject are kept: the last is the state, those before it the object's recent history.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import NamedTuple

from headgate.common.bus.connection import Bus
from headgate.common.deltas import (
    CLUSTER_PREFIX,
    DELTA_PREFIX,
    LAST_GOOD_PREFIX,
    STREAM,
    SYNC_PREFIX,
    AnyDelta,
    ClusterAnnouncement,
    LogMessage,
    LogPlace,
    SyncMarker,
    cluster_subject,
    escape_token,
    parse_delta_subject,
)
from headgate.common.errors import Conflict, DecodeError, TooLarge
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.stores import (
    TOMBSTONE_AGE_S,
    DeltaSelection,
    LogBatch,
    LoggedDelta,
    LoggedObject,
    LogPosition,
    LogReplay,
)
from headgate.common.stores.nats.answers import Ack, BatchRefused
from headgate.common.stores.nats.encoding import (
    decode_delta,
    decode_message,
    decode_state,
    encode_announcement,
    encode_delta,
    encode_marker,
    tell_unreadable,
)
from headgate.common.stores.nats.following import Message, Restarted, follow, read_last, read_position, went_back
from headgate.common.stores.nats.jetstream import BATCH_BYTES, BATCH_MESSAGES, OURS, Outgoing, Stream, Upkeep
from headgate.common.stores.nats.object_states import ObjectStates
from headgate.common.stores.nats.tailing import read_after, tail

_log = logging.getLogger(__name__)

HISTORY = 8
DUPLICATE_WINDOW_S = 120
_NANO = 1_000_000_000
_REPEATS = 5


def delta_stream(bus: Bus, upkeep: Upkeep = OURS) -> Stream:
    """The log's stream."""
    config: JsonObject = {
        "name": STREAM,
        "subjects": [f"{prefix}.>" for prefix in (DELTA_PREFIX, SYNC_PREFIX, CLUSTER_PREFIX, LAST_GOOD_PREFIX)],
        "description": "What happened to the objects of all clusters",
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "max_msgs_per_subject": HISTORY,
        "duplicate_window": DUPLICATE_WINDOW_S * _NANO,
        "allow_direct": True,
        "allow_atomic": True,
        "allow_msg_ttl": True,
    }
    return Stream(bus, config, upkeep)


class _Group(NamedTuple):
    """Deltas on their way in bulk."""

    deltas: Sequence[AnyDelta]
    expected: Sequence[int | None]
    sequences: list[int]


class NatsDeltaLogWriter:
    """`DeltaLogWriter` on JetStream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._states: dict[str, ObjectStates] = {}

    async def read_state(self, cluster: str) -> Mapping[ObjectRef, LoggedObject]:
        """Return the last delta of every object of a cluster; goes on where the last call ended, or was interrupted."""
        if cluster not in self._states:
            self._states[cluster] = ObjectStates(self._stream, cluster)
        return await self._states[cluster].read()

    def forget_state(self, cluster: str) -> None:
        """Read everything again at the next `read_state`."""
        self._states.pop(cluster, None)

    async def _last_of(self, cluster: str) -> list[tuple[Message, ObjectRef, LoggedObject]]:
        pattern = f"{DELTA_PREFIX}.{escape_token(cluster)}.*.*.*.*"
        found = []
        for message in await read_last(self._stream, pattern, headers_only=True):
            try:
                ref = parse_delta_subject(message.subject)
                found.append((message, ref, decode_state(message.sequence, message.headers)))
            except DecodeError as error:
                tell_unreadable(error)
        return found

    async def append(self, delta: AnyDelta, expected_last: int | None = None) -> int:
        """Append one delta and return its sequence.

        The same delta again, as from the second of two watchers, is stored once. It is stored again if something
        else was said about the object in between: an object may return to what it was.
        """
        message = encode_delta(delta, expected_last)
        return await self._settle(delta, message, await self._stream.publish(message), expected_last)

    async def _settle(self, delta: AnyDelta, message: Outgoing, ack: Ack, expected_last: int | None = None) -> int:
        for _ in range(_REPEATS):
            if not ack.is_duplicate:
                return ack.sequence
            last = await self._stream.last(message.subject)
            if last is None or last.sequence <= ack.sequence:
                return ack.sequence
            if expected_last is not None and expected_last != last.sequence:
                # The server looks at message ids first: the other watcher said this too, and more since.
                raise Conflict(f"{delta.ref}: expected sequence {expected_last}, found {last.sequence}")
            try:
                ack = await self._stream.publish(encode_delta(delta, again_after=last.sequence))
            except Conflict:
                continue
        raise Conflict(f"{delta.ref}: others write about this object all the time")

    async def append_all(self, deltas: Sequence[AnyDelta], expected: Sequence[int] | None = None) -> Sequence[int]:
        """Append many deltas, in atomic batches of up to 1,000.

        The server takes no batch that has a message id which it knows within the last two minutes (as when two
        watchers list the same cluster at once), and servers before 2.12 take no batch at all: such a batch is
        published message by message, where a known id is no error.
        """
        group = _Group(deltas, expected or [None] * len(deltas), [0] * len(deltas))
        places: list[int] = []
        messages: list[Outgoing] = []
        size = 0
        for place, delta in enumerate(deltas):
            message = encode_delta(delta)
            if not self._fits(message):
                continue
            if len(messages) == BATCH_MESSAGES or size + message.size > BATCH_BYTES:
                await self._append_group(group, places, messages)
                places, messages, size = [], [], 0
            places.append(place)
            messages.append(message)
            size += message.size
            if place % 256 == 0:
                await asyncio.sleep(0)
        if messages:
            await self._append_group(group, places, messages)
        return group.sequences

    def _fits(self, message: Outgoing) -> bool:
        try:
            self._stream.check_size(message)
        except TooLarge as error:
            _log.error("an object is too large for the log and is left out", extra={"reason": str(error)})
            return False
        return True

    async def _append_group(self, group: _Group, places: Sequence[int], messages: Sequence[Outgoing]) -> None:
        try:
            stored: Sequence[int] = await self._stream.publish_batch(messages)
        except BatchRefused as error:
            _log.debug("a batch was refused, publishing one by one", extra={"reason": str(error)})
            acks = await self._stream.publish_pipelined(messages)
            stored = [
                await self._settle_in(group, place, message, ack)
                for place, message, ack in zip(places, messages, acks, strict=True)
            ]
        for place, sequence in zip(places, stored, strict=True):
            group.sequences[place] = sequence

    async def _settle_in(self, group: _Group, place: int, message: Outgoing, ack: Ack) -> int:
        expected_last = group.expected[place]
        try:
            return await self._settle(group.deltas[place], message, ack, expected_last)
        except Conflict:
            if expected_last is None:
                raise
            return 0

    async def announce(self, announcement: ClusterAnnouncement) -> None:
        """Say which kinds the cluster's deltas are going to have."""
        await self._stream.publish(encode_announcement(announcement))

    async def mark_synced(self, marker: SyncMarker) -> None:
        """Say that a kind is completely in the log."""
        await self._stream.publish(encode_marker(marker))

    async def purge_tombstones(self, cluster: str, older_than_s: float = TOMBSTONE_AGE_S) -> int:
        """Forget deletions that are older than this, with their objects' history; return how many.

        A delta that comes meanwhile stays: only messages up to the tombstone are removed.
        """
        limit_us = (time.time() - older_than_s) * 1_000_000
        count = 0
        for message, _, state in await self._last_of(cluster):
            if state.is_deleted and message.time_us < limit_us:
                await self._stream.purge(message.subject, before=message.sequence + 1)
                count += 1
        return count

    async def forget_cluster(self, cluster: str, up_to: int) -> None:
        """Forget what a cluster's watchers announced and marked, up to a sequence; its objects stay."""
        for subject in (cluster_subject(cluster), f"{SYNC_PREFIX}.{escape_token(cluster)}.>"):
            await self._stream.purge(subject, before=up_to + 1)


class NatsDeltaLogReader:
    """`DeltaLogReader` on JetStream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def position(self) -> LogPosition:
        """Return the stream's creation time as incarnation, and the sequence of its last message."""
        return await read_position(self._stream)

    async def went_back(self, place: LogPlace) -> bool:
        """Return whether the stream is an older copy of the one that had a message there."""
        return await went_back(self._stream, place)

    async def follow(self, known: LogPlace | None = None) -> AsyncIterator[LogBatch | LogReplay]:
        """Yield the log for ever; see `DeltaLogReader.follow`. A message that cannot be read is logged and skipped."""
        async with aclosing(follow(self._stream, [">"], known)) as items:
            async for item in items:
                if isinstance(item, Restarted):
                    yield LogReplay(item.position, item.went_back)
                else:
                    yield LogBatch(_decode(item), item.last)

    async def announcement(self, cluster: str) -> ClusterAnnouncement | None:
        """Return what a cluster's watcher said last of itself; a watcher has the right to ask for its own cluster.

        What cannot be read is told in the log, and counts as nothing.
        """
        stored = await self._stream.last(cluster_subject(cluster))
        if stored is None:
            return None
        try:
            found = decode_message(stored.subject, stored.sequence, {}, stored.data)
        except DecodeError as error:
            tell_unreadable(error)
            return None
        return found if isinstance(found, ClusterAnnouncement) else None

    async def announcements(self) -> Sequence[ClusterAnnouncement]:
        """Return the last announcement of each cluster."""
        last = _decode(await read_last(self._stream, f"{CLUSTER_PREFIX}.>"))
        return [message for message in last if isinstance(message, ClusterAnnouncement)]

    async def read_after(
        self, selection: DeltaSelection, after: int, *, with_objects: bool = True
    ) -> AsyncGenerator[Sequence[LoggedDelta]]:
        """Yield the deltas after a sequence that the stream still has, then end; see `DeltaLogReader.read_after`."""
        past = read_after(self._stream, _patterns(selection), after, headers_only=not with_objects)
        async with aclosing(past) as batches:
            async for batch in batches:
                yield _decode_past(batch)

    async def tail(
        self, selection: DeltaSelection, after: int, *, with_objects: bool = True
    ) -> AsyncGenerator[Sequence[LoggedDelta]]:
        """Yield the deltas after a sequence, then everything new, for ever."""
        news = tail(self._stream, _patterns(selection), after, headers_only=not with_objects)
        async with aclosing(news) as batches:
            async for batch in batches:
                yield _decode_past(batch)


def _patterns(selection: DeltaSelection) -> list[str]:
    kinds = [".".join(map(escape_token, kind)) for kind in selection.kinds] or ["*.*"]
    wanted = (selection.cluster, selection.namespace, selection.name)
    cluster, namespace, name = (escape_token(part) if part else "*" for part in wanted)
    return [f"{DELTA_PREFIX}.{cluster}.{kind}.{namespace}.{name}" for kind in kinds]


def _decode_past(batch: Sequence[Message]) -> list[LoggedDelta]:
    decoded = []
    for message in batch:
        try:
            delta = decode_delta(message.subject, message.sequence, message.headers, message.data)
        except DecodeError as error:
            tell_unreadable(error)
        else:
            decoded.append(LoggedDelta(delta, datetime.fromtimestamp(message.time_us / 1_000_000, UTC)))
    return decoded


def _decode(batch: Sequence[Message]) -> list[LogMessage]:
    decoded: list[LogMessage] = []
    for message in batch:
        try:
            decoded.append(decode_message(message.subject, message.sequence, message.headers, message.data))
        except DecodeError as error:
            tell_unreadable(error)
    return decoded
