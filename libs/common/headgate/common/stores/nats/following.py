"""Following a stream without trusting the subscription.

Each follower has an ordered push consumer of its own, held in the server's memory, with a heartbeat every second. It
is given up and made again whenever something may be missing:

- a message or a heartbeat whose consumer sequence is not the next one (dropped anywhere, also in our own client);
- nothing heard for 2.5 heartbeats (server restarted, consumer lost, stream deleted), counted in time in which this
  process ran: one that stood still may have been sent a lot. Twice as long each time that this was in vain;
- the bus reconnected, or dropped messages as a slow consumer.

A new consumer goes on after the last message seen if that very message is still in the same stream; otherwise the
follower starts over with the last message of each subject and says so. Sequences alone prove nothing: a stream that
was lost, or restored from a backup, counts again from a smaller number.

Rejected: `kv.watch` and ordered subscriptions of nats-py: blind for 18 s after a crash, for ever after a stream was
made again, and unaware of what their own buffers dropped.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import NamedTuple

import nats.errors
from nats.aio.subscription import Subscription
from prometheus_client import Counter

from headgate.common.bus.encoded import decode_headers
from headgate.common.deltas import LogPlace
from headgate.common.errors import StoreError, StoreUnavailable
from headgate.common.resources import JsonObject
from headgate.common.service.tasks import heed_cancellation
from headgate.common.stores import LogPosition
from headgate.common.stores.nats.answers import StreamMissing
from headgate.common.stores.nats.jetstream import Stream, StreamState

_log = logging.getLogger(__name__)
_RENEWALS = Counter(
    "headgate_follower_renewals", "Consumers given up because something might have been missed", ["stream"]
)

HEARTBEAT_S = 1.0
SILENCE_S = 2.5 * HEARTBEAT_S
LONGEST_SILENCE_S = 8 * SILENCE_S
_LOOKS = 5
"""Silence is counted in so many waits, so that a loop that stood still reads what came meanwhile before it gives up."""
INACTIVE_S = 2
"""A consumer without a listener goes by itself: the right to delete it would be one to delete those of others."""
BATCH = 256
_NANO = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.02, 2.0


class Message(NamedTuple):
    """A message of a stream."""

    subject: str
    sequence: int
    time_us: int
    """When it was stored, in microseconds since 1970."""
    header_block: bytes
    """As the server sent it; empty for none."""
    data: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers, decoded each time: most readers want them once, or never."""
        return decode_headers(self.header_block) if self.header_block else {}


class Restarted(NamedTuple):
    """What follows starts from the beginning and is complete at the position's sequence."""

    position: LogPosition
    went_back: bool = False
    """Whether the stream is an older copy of the one that was followed before."""


class Interrupted(Exception):
    """Something may be missing: make a new consumer."""


class Patience:
    """For how long silence is borne: longer where servers or this process are slow."""

    def __init__(self) -> None:
        self.silence_s = SILENCE_S

    def run_out(self) -> None:
        """Nothing came for so long: bear it for longer the next time."""
        self.silence_s = min(LONGEST_SILENCE_S, self.silence_s * 2)

    def renew(self) -> None:
        """Something came."""
        self.silence_s = SILENCE_S


class Batch(list[Message]):
    """Messages of a stream, in order."""

    def __init__(self, messages: Iterable[Message], incarnation: str) -> None:
        """Take messages of an incarnation of a stream, at least one."""
        super().__init__(messages)
        self.last = LogPlace(incarnation, self[-1].sequence, self[-1].time_us)


async def follow(
    stream: Stream, subjects: Sequence[str], known: LogPlace | None = None
) -> AsyncGenerator[Restarted | Batch, None]:
    """Yield the last message of every subject, then everything new, for ever; never raises because of the bus.

    Args:
        stream: made if it is missing.
        subjects: patterns to follow.
        known: a message that somebody saw before: it is looked for at the beginning, and nothing is left out for it.
    """
    seen: LogPlace | None = None
    pause_s, patience = _FIRST_PAUSE_S, Patience()
    while True:
        consumer = OrderedConsumer(stream, subjects, patience=patience)
        try:
            state = await _state(stream)
            place = seen or known
            found = await find_place(place, stream, state) if place else Found.GONE
            if seen is None or found is not Found.THERE:
                await consumer.open(after=None)
                position = await _position(stream, state.created)
                seen = known = None
                yield Restarted(position, found is Found.WENT_BACK)
            else:
                await consumer.open(after=seen.sequence)
            while True:
                batch = Batch(await consumer.next_batch(), state.created)
                seen = batch.last
                pause_s = _FIRST_PAUSE_S
                yield batch
        except (Interrupted, StoreError) as error:
            _RENEWALS.labels(stream.name).inc()
            _log.debug("following again", extra={"stream": stream.name, "reason": str(error)})
        finally:
            await consumer.close()
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
        pause_s = min(_LAST_PAUSE_S, pause_s * 2)


async def read_last(stream: Stream, subject: str, *, headers_only: bool = False) -> list[Message]:
    """Return the last message of every subject below a pattern; nothing if the stream is missing.

    Raises:
        StoreUnavailable: interrupted; ask again.
    """
    found = await _read(OrderedConsumer(stream, [subject], headers_only=headers_only), after=None)
    # What is published meanwhile comes too.
    return list({message.subject: message for message in found}.values())


async def read_all(stream: Stream, subjects: Sequence[str]) -> list[Message]:
    """Return everything that a stream has of some subjects, in order; nothing if the stream is missing.

    Raises:
        StoreUnavailable: interrupted; ask again.
    """
    return await _read(OrderedConsumer(stream, subjects), after=0)


async def _read(consumer: "OrderedConsumer", after: int | None) -> list[Message]:
    try:
        return [message async for batch in consumer.read(after) for message in batch]
    except StreamMissing as error:
        if error.is_certain:
            return []
        raise
    except Interrupted as error:
        raise StoreUnavailable(f"reading {', '.join(consumer.subjects[:3])} was interrupted: {error}") from error
    finally:
        await consumer.close()


async def went_back(stream: Stream, place: LogPlace) -> bool:
    """Return whether a stream is an older copy of the one that had a message there.

    Raises:
        StoreUnavailable: not now.
    """
    return await find_place(place, stream, await _state(stream)) is Found.WENT_BACK


async def read_position(stream: Stream) -> LogPosition:
    """Return the stream's incarnation and the sequence of its last message that is still there."""
    return await _position(stream, (await _state(stream)).created)


async def _state(stream: Stream) -> StreamState:
    try:
        return await stream.state()
    except StreamMissing:
        await stream.ensure()
        return await stream.state()


async def _position(stream: Stream, incarnation: str) -> LogPosition:
    # Not the stream's own last_seq: that message may have been purged, and a reader would wait for it. `*.>` and not
    # `>`, for which the server takes the same shortcut.
    last = await stream.last("*.>")
    return LogPosition(incarnation, last.sequence if last else 0)


class Found(Enum):
    THERE = "there"
    GONE = "gone"
    """Made again, or compacted away."""
    WENT_BACK = "went back"


async def find_place(place: LogPlace, stream: Stream, state: StreamState) -> Found:
    """Look for a message that was seen."""
    if state.created != place.incarnation:
        is_older = _microseconds(state.created) < _microseconds(place.incarnation)
        return Found.WENT_BACK if is_older else Found.GONE
    if state.last_sequence < place.sequence:
        return Found.WENT_BACK
    stored = await stream.at(place.sequence)
    if stored is None:
        return Found.GONE
    return Found.THERE if _microseconds(stored.time) == place.stored_at_us else Found.WENT_BACK


def _microseconds(rfc3339: str) -> int:
    return (datetime.fromisoformat(rfc3339) - _EPOCH) // timedelta(microseconds=1)


class OrderedConsumer:
    """One ephemeral consumer, good until the first doubt."""

    def __init__(
        self,
        stream: Stream,
        subjects: Sequence[str],
        *,
        headers_only: bool = False,
        patience: Patience | None = None,
    ) -> None:
        self._stream = stream
        self._patience = patience or Patience()
        self.subjects = list(subjects)
        self._headers_only = headers_only
        self._queue: deque[Message | str] = deque()
        """Messages, and between them the reply subjects of flow control requests."""
        self._arrived = asyncio.Event()
        self._doubt = ""
        self._received = 0
        self._is_drained = False
        """Whether nothing was left in the stream when the server last spoke."""
        self._name = ""
        self._subscription: Subscription | None = None
        self._undo = stream.bus.on_disturbance(self._disturbed)

    async def open(self, after: int | None) -> int:
        """Subscribe and create the consumer; return how many messages are waiting.

        Args:
            after: sequence to go on after; None begins with the last message of every subject.
        """
        bus = self._stream.bus
        if not bus.is_connected:
            raise StoreUnavailable("not connected to NATS")
        inbox = bus.nc.new_inbox()
        self._name = inbox.rsplit(".", 1)[-1]
        try:
            self._subscription = await bus.subscribe_directly(inbox, self._receive)
        except (nats.errors.Error, OSError) as error:
            raise StoreUnavailable(f"cannot subscribe: {error}") from error
        info = await self._stream.create_consumer(self._name, self.subjects, self._config(inbox, after))
        return int(info.get("num_pending", 0)) + int(info.get("delivered", {}).get("consumer_seq", 0))

    def _config(self, inbox: str, after: int | None) -> JsonObject:
        config: JsonObject = {
            "name": self._name,
            "deliver_subject": inbox,
            "ack_policy": "none",
            "max_deliver": 1,
            "idle_heartbeat": int(HEARTBEAT_S * _NANO),
            "flow_control": True,
            "inactive_threshold": INACTIVE_S * _NANO,
            "mem_storage": True,
            "num_replicas": 1,
            "headers_only": self._headers_only,
            "deliver_policy": "last_per_subject",
        }
        if after is not None:
            config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1}
        return config

    async def next_batch(self) -> Sequence[Message]:
        """Return what has arrived, at most `BATCH` messages; waits for at least one.

        Raises:
            Interrupted: something may be missing.
        """
        while True:
            self._arrived.clear()  # before looking, as looking lets others run
            if batch := await self._take():
                self._patience.renew()
                return batch
            if self._doubt:
                raise Interrupted(self._doubt)
            await self._until_arrival()

    async def read(self, after: int | None) -> AsyncGenerator[list[Message], None]:
        """Open, and yield everything that the stream has, at most `BATCH` messages at a time.

        They are not counted before: some may expire, and others be replaced by what comes behind all the rest.

        Raises:
            Interrupted: something may be missing.
            StoreError: not opened.
        """
        if not await self.open(after):
            return
        while self._queue or not self._is_drained:
            self._arrived.clear()
            if batch := await self._take():
                self._patience.renew()
                yield batch
            elif self._doubt:
                raise Interrupted(self._doubt)
            elif not self._is_drained:
                await self._until_arrival()

    async def _until_arrival(self) -> None:
        silence_s = self._patience.silence_s
        for _ in range(_LOOKS):
            try:
                async with asyncio.timeout(silence_s / _LOOKS):
                    await self._arrived.wait()
            except TimeoutError:
                continue
            return
        self._patience.run_out()
        raise Interrupted(f"nothing heard for {silence_s:g} s")

    async def _take(self) -> list[Message]:
        batch: list[Message] = []
        while self._queue and len(batch) < BATCH:
            item = self._queue.popleft()
            if isinstance(item, Message):
                batch.append(item)
            else:
                await self._allow_more(item)
        await asyncio.sleep(0)  # a long replay must not keep the loop from everybody else
        return batch

    async def _allow_more(self, reply: str) -> None:
        try:
            await self._stream.bus.publish(reply)
        except (nats.errors.Error, OSError) as error:
            self._disturbed(f"flow control could not be answered: {error}")

    def _receive(self, subject: str, reply: str, headers: bytes, data: bytes) -> None:
        if reply.startswith("$JS.ACK."):
            self._receive_data(subject, reply, headers, data)
        elif headers:
            self._receive_control(reply, decode_headers(headers))
        self._arrived.set()

    def _receive_data(self, subject: str, reply: str, headers: bytes, data: bytes) -> None:
        # $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<nanoseconds>.<pending>; servers with
        # domains put <domain>.<account> before the stream, and may put a random token at the end.
        tokens = reply.split(".")
        first = 5 if len(tokens) < 11 else 7
        sequence, consumer_sequence, nanoseconds, pending = map(int, tokens[first : first + 4])
        if consumer_sequence != self._received + 1:
            self._disturbed(f"message {self._received + 1} of the consumer is missing")
        else:  # also in doubt: what came without a gap is good, and a follower must get ahead
            self._received = consumer_sequence
            self._is_drained = not pending
            self._queue.append(Message(subject, sequence, nanoseconds // 1000, headers, data))

    def _receive_control(self, reply: str, headers: Mapping[str, str]) -> None:
        if headers.get("Status") != "100":
            self._disturbed(f"{headers.get('Status')} {headers.get('Description', '')}")
        elif reply:
            self._queue.append(reply)
        else:
            if int(headers.get("Nats-Last-Consumer", self._received)) != self._received:
                self._disturbed("a heartbeat counts messages that did not come")
            if stalled := headers.get("Nats-Consumer-Stalled"):
                self._queue.append(stalled)
            else:  # a consumer that is not held back and has nothing to send
                self._is_drained = True

    def _disturbed(self, why: str = "the bus was disturbed") -> None:
        self._doubt = self._doubt or why
        self._arrived.set()

    async def close(self) -> None:
        """Listen no more; harmless when it was never opened."""
        self._undo()
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        try:
            await heed_cancellation(subscription.unsubscribe())
        except (nats.errors.Error, OSError) as error:
            _log.debug("the subscription was gone already", extra={"reason": str(error)})
