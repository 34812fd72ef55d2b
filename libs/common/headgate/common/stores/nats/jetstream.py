"""One JetStream stream through the server's own API.

Everything goes by raw `$JS.API` requests: nats-py's models drop fields that they do not know, its batch publishing
does not exist, and it raises a dozen kinds of error where callers want to know two things: is the store away, or did
it say no.
"""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import nats.errors
import nats.js.errors
from nats.aio.msg import Msg

from headgate.common.bus.connection import Bus
from headgate.common.bus.encoded import EncodedMessage, encode_headers, message_size
from headgate.common.errors import StoreUnavailable, TooLarge
from headgate.common.resources import JsonObject
from headgate.common.stores.nats.answers import (
    NAME_IN_USE,
    NO_MESSAGE,
    Ack,
    ApiError,
    BatchRefused,
    StreamMissing,
    read_ack,
    read_answer,
    read_batch,
    read_headers,
)

_log = logging.getLogger(__name__)

REQUEST_S = 5.0
LOOK_S = 2.0
"""For questions that are answered from memory. In a cluster that lost a stream's leader no server answers for some
seconds, and a client that asks again soon goes on soon."""
BORNE = 2
"""Questions in a row that are not answered in time before the next ones are given longer."""
LONGEST_PATIENCE = 8
BATCH_MESSAGES = 1000
"""The server's limit for one atomic batch."""
BATCH_BYTES = 8 * 1024 * 1024
"""Our own limit, so that one batch never fills the client's buffer."""
FEW = 16
"""Fewer messages are stored sooner one by one (decision 0082)."""
PIPELINED = 256
"""Single publishes under way at once."""

EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
MESSAGE_ID = "Nats-Msg-Id"
_NO_HEADERS: Mapping[str, str] = {}

T = TypeVar("T")


CLUSTER = 3
"""Servers that keep each stream in a cluster of so many or more, unless the settings say another number."""


class Outgoing:
    """A message to publish."""

    __slots__ = ("header_lines", "headers", "payload", "subject")

    def __init__(self, subject: str, payload: bytes, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        """Encode the headers, by which messages are measured and sent."""
        self.subject, self.payload, self.headers = subject, payload, headers
        self.header_lines = encode_headers(headers) if headers else b""

    @property
    def size(self) -> int:
        """Bytes that count against the server's `max_payload`."""
        return message_size(self.header_lines, self.payload)


class Stored(NamedTuple):
    """A message as the stream has it."""

    subject: str
    sequence: int
    data: bytes
    time: str
    """RFC 3339 with nanoseconds."""
    headers: Mapping[str, str] = {}


class StreamState(NamedTuple):
    """Which incarnation of a stream this is, and how far it got."""

    created: str
    messages: int
    last_sequence: int


class Upkeep(NamedTuple):
    """Who makes streams, and how they are kept."""

    makes_streams: bool = True
    """Whether we make and change streams. A user with that right can destroy what others wrote: in a cluster with users
    it is the translator alone, and all others wait for it."""
    replicas: int = 0
    """Servers that keep each stream; 0: as many as `CLUSTER` if there are so many, else 1, and never fewer than now."""


OURS = Upkeep()
"""Streams that we make, with as many replicas as there can be."""


class Stream:
    """One stream; made again when it is found missing by something that writes."""

    def __init__(self, bus: Bus, config: JsonObject, upkeep: Upkeep) -> None:
        """Describe a stream; `ensure` makes it.

        Args:
            bus: the connection.
            config: as in the server's API, with durations in nanoseconds and without replicas.
            upkeep: whether and how we make it.
        """
        self.bus = bus
        self.name: str = config["name"]
        self._config = config
        self._upkeep = upkeep
        self._complaint = ""
        self._unanswered = 0
        """Requests in a row that were not answered in time."""

    async def ensure(self) -> bool:
        """See to it that the stream is there; make it and bring it to our configuration if that is up to us.

        Returns:
            Whether it was missing.

        Raises:
            StreamMissing: it is not there, and somebody else makes it.
            StoreUnavailable: it cannot be made now.
        """
        try:
            config = (await self._call(f"STREAM.INFO.{self.name}", {}, LOOK_S))["config"]
        except StreamMissing as error:
            if not error.is_certain:
                raise
            if not self._upkeep.makes_streams:
                raise StreamMissing(f"stream {self.name} is missing: the translator makes it") from error
            await self._create()
            return True
        if self._upkeep.makes_streams:
            await self._adapt(config)
        return False

    async def _create(self) -> None:
        try:
            await self._call(f"STREAM.CREATE.{self.name}", self._config | {"num_replicas": self._replicas(1)})
        except ApiError as error:
            if error.code != NAME_IN_USE:  # by somebody who made it just now, with another configuration
                raise StoreUnavailable(f"stream {self.name} cannot be made: {error}") from error

    async def _adapt(self, config: JsonObject) -> None:
        """Bring the stream to our configuration. Where that fails it serves as it is: the next `ensure` tries again."""
        wanted = self._config | {"num_replicas": self._replicas(int(config["num_replicas"]))}
        changes = {key: value for key, value in wanted.items() if config.get(key) != value}
        if not changes:
            return
        names = ", ".join(sorted(changes))
        try:
            await self._call(f"STREAM.UPDATE.{self.name}", _without_notes(config) | changes)
        except (ApiError, StoreUnavailable) as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                extra = {"stream": self.name, "changes": names, "reason": str(error)}
                _log.warning("a stream keeps its configuration for now", extra=extra)
        else:
            self._complaint = ""
            _log.info("a stream was changed", extra={"stream": self.name, "changes": names})

    def _replicas(self, present: int) -> int:
        if self._upkeep.replicas:
            return self._upkeep.replicas
        return max(present, CLUSTER if self.bus.cluster_size >= CLUSTER else 1)

    async def state(self) -> StreamState:
        """Return the stream's incarnation and progress.

        Raises:
            StreamMissing: there is no such stream.
        """
        info = await self._call(f"STREAM.INFO.{self.name}", {}, LOOK_S)
        return StreamState(info["created"], info["state"]["messages"], info["state"]["last_seq"])

    async def confirm_missing(self) -> None:
        """Tell a stream that does not exist, which is an answer, from a server that does not answer.

        Raises:
            StoreUnavailable: no server answers, or the stream is there by now: what was asked before may be, too.
        """
        try:
            await self._call(f"STREAM.INFO.{self.name}", {}, LOOK_S)
        except StreamMissing as error:
            if error.is_certain:
                return
            raise
        raise StoreUnavailable(f"stream {self.name} did not answer a moment ago")

    async def subjects(self, pattern: str) -> set[str]:
        """Return the subjects below a pattern that have a message; empty if the stream is missing."""
        found: set[str] = set()
        while True:
            try:
                info = await self._call(f"STREAM.INFO.{self.name}", {"subjects_filter": pattern, "offset": len(found)})
            except StreamMissing as error:
                if error.is_certain:
                    return set()
                raise
            page = info["state"].get("subjects") or {}
            found.update(page)
            if not page or len(found) >= info.get("total", 0):
                return found

    async def last(self, subject: str) -> Stored | None:
        """Return the last message of a subject (wildcards allowed) as the stream's leader has it."""
        return await self._get({"last_by_subj": subject})

    async def at(self, sequence: int) -> Stored | None:
        """Return the message at a sequence as the stream's leader has it."""
        return await self._get({"seq": sequence})

    async def _get(self, request: JsonObject) -> Stored | None:
        try:
            answer = await self._call(f"STREAM.MSG.GET.{self.name}", request, LOOK_S)
        except ApiError as error:
            if error.code == NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        data = base64.b64decode(message.get("data") or "")
        return Stored(message["subject"], message["seq"], data, message["time"], read_headers(message.get("hdrs")))

    async def last_direct(self, subject: str) -> bytes | None:
        """Return the content of a subject's last message as any replica has it; that may lag behind the leader."""
        answer = await self._request(f"$JS.API.DIRECT.GET.{self.name}.{subject}", b"", None, LOOK_S)
        if (answer.headers or {}).get("Status"):
            return None
        return answer.data

    async def purge(self, subject: str, before: int | None = None) -> int:
        """Remove a subject's messages (all, or those with a sequence below `before`); return how many."""
        request: JsonObject = {"filter": subject}
        if before is not None:
            request["seq"] = before
        answer = await self._call(f"STREAM.PURGE.{self.name}", request)
        return int(answer.get("purged", 0))

    async def publish(self, message: Outgoing) -> Ack:
        """Publish one message and wait until it is stored.

        Raises:
            Conflict: the subject's last sequence is not the expected one.
            TooLarge: the server does not take messages of this size.
            StoreUnavailable: not confirmed; it may or may not be stored.
        """
        self.check_size(message)
        return await self._remaking(lambda: self._publish(message))

    async def _publish(self, message: Outgoing) -> Ack:
        answer = await self._request(message.subject, message.payload, message.headers)
        return read_ack(answer)

    async def publish_pipelined(self, messages: Sequence[Outgoing]) -> list[Ack]:
        """Publish messages in order with many under way at once.

        Raises:
            TooLarge: for any of them; then none was published.
            StoreUnavailable: not all confirmed; any of them may be stored.
        """
        for message in messages:
            self.check_size(message)
        acks: list[Ack] = []
        for start in range(0, len(messages), PIPELINED):
            group = messages[start : start + PIPELINED]
            # Tasks start in order and write to the socket before their first wait, so order is kept.
            tasks = [asyncio.ensure_future(self._remaking(lambda m=m: self._publish(m))) for m in group]  # type: ignore[misc]
            try:
                acks += await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
        return acks

    async def publish_batch(self, messages: Sequence[Outgoing]) -> list[int]:
        """Publish at most `BATCH_MESSAGES` atomically: all are stored, next to each other, or none is.

        The server checks `Nats-Expected-Last-Subject-Sequence` of each message, and refuses the whole batch when a
        `Nats-Msg-Id` in it is one that it knows within the duplicate window (error 10201), also when two messages of
        the batch share one. So message ids work in a batch, but as a guard, not as a filter.

        Returns:
            The sequence of each.

        Raises:
            Conflict: an expected sequence was not met.
            BatchRefused: duplicates, or the server does not do batches.
            TooLarge: for any of them.
            StoreUnavailable: not confirmed; either all are stored or none.
        """
        for message in messages:
            self.check_size(message)
        return await self._remaking(lambda: self._publish_batch(messages))

    async def publish_many(self, messages: Iterable[Outgoing]) -> None:
        """Publish messages in batches, or one by one where there are few, or where the server does no batches.

        Those of an iterator are made as the ones before are stored.

        Raises:
            TooLarge: for any of them.
            StoreUnavailable: not all confirmed; any of them may be stored.
        """
        group: list[Outgoing] = []
        size = 0
        for message in messages:
            if len(group) == BATCH_MESSAGES or size + message.size > BATCH_BYTES:
                await self._publish_group(group)
                group, size = [], 0
            group.append(message)
            size += message.size
        await self._publish_group(group)

    async def _publish_group(self, messages: Sequence[Outgoing]) -> None:
        if len(messages) >= FEW:
            try:
                await self.publish_batch(messages)
                return
            except BatchRefused as error:
                _log.debug("a batch was refused, publishing one by one", extra={"reason": str(error)})
        await self.publish_pipelined(messages)

    async def _publish_batch(self, messages: Sequence[Outgoing]) -> list[int]:
        batch_id = self.bus.nc.new_inbox().rsplit(".", 1)[-1]
        await self._send_all([_in_batch(one, batch_id, number) for number, one in enumerate(messages[:-1], 1)])
        message, count = messages[-1], len(messages)
        place = {"Nats-Batch-Id": batch_id, "Nats-Batch-Sequence": str(count), "Nats-Batch-Commit": "1"}
        return read_batch(await self._request(message.subject, message.payload, {**message.headers, **place}), count)

    async def _send_all(self, messages: Sequence[EncodedMessage]) -> None:
        try:
            await self.bus.publish_encoded(messages)
        except (nats.errors.Error, OSError) as error:
            raise _unavailable(self.name, error) from error

    async def _remaking(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            return await operation()
        except StreamMissing:
            if await self.ensure():
                _log.info("a stream was missing and has been made", extra={"stream": self.name})
            return await operation()

    def check_size(self, message: Outgoing) -> None:
        """Refuse what the server would not take.

        Raises:
            TooLarge: naming the subject and both sizes.
        """
        # The server ends the connection of a client that sends more, which would hit everybody else's messages.
        limit = self.bus.nc.max_payload
        if message.size > limit:
            raise TooLarge(f"{message.subject}: {message.size:,} bytes, the bus takes at most {limit:,}")

    async def create_consumer(self, name: str, subjects: Sequence[str], config: JsonObject) -> JsonObject:
        """Create an ephemeral consumer of some subjects and return its info.

        A single subject stands in the subject of the request too, where rights can be bound to it.
        """
        operation = f"CONSUMER.CREATE.{self.name}.{name}"
        if len(subjects) == 1 and subjects[0] != ">":
            filters: JsonObject = {"filter_subject": subjects[0]}
            operation += f".{subjects[0]}"
        else:
            filters = {"filter_subjects": list(subjects)}
        return await self._call(operation, {"stream_name": self.name, "config": config | filters, "action": "create"})

    async def _call(self, operation: str, body: JsonObject, timeout_s: float = REQUEST_S) -> JsonObject:
        answer = await self._request(f"$JS.API.{operation}", msgspec.json.encode(body), None, timeout_s)
        return read_answer(answer)

    async def _request(
        self, subject: str, payload: bytes, headers: Mapping[str, str] | None, timeout_s: float = REQUEST_S
    ) -> Msg:
        if not self.bus.is_connected:
            raise StoreUnavailable(f"not connected to NATS at {self.bus.address}")
        patience = min(LONGEST_PATIENCE, 2 ** max(0, self._unanswered - BORNE + 1))
        try:
            answer = await self.bus.request(subject, payload, headers=headers, timeout_s=timeout_s * patience)
        except nats.errors.NoRespondersError as error:
            raise StreamMissing(f"nothing answers for stream {self.name}") from error
        except TimeoutError as error:
            self._unanswered += self.bus.is_connected
            raise _unavailable(subject, error) from error
        except (nats.errors.Error, OSError) as error:
            raise _unavailable(subject, error) from error
        self._unanswered = 0
        return answer


def _without_notes(config: JsonObject) -> JsonObject:
    """Return a configuration without what the server noted in it, and would refuse of us."""
    metadata = {key: value for key, value in (config.get("metadata") or {}).items() if not key.startswith("_nats.")}
    return config | {"metadata": metadata}


def _unavailable(subject: str, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(f"{subject}: NATS did not confirm: {str(error) or type(error).__name__}")


def _in_batch(message: Outgoing, batch_id: str, number: int) -> EncodedMessage:
    lines = f"Nats-Batch-Id: {batch_id}\r\nNats-Batch-Sequence: {number}\r\n".encode()
    return EncodedMessage(message.subject, message.header_lines + lines, message.payload)
