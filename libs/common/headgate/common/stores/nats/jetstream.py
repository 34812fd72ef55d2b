"""One JetStream stream through the server's own API.

Everything goes by raw `$JS.API` requests: nats-py's models drop fields that they do not know, its batch publishing
does not exist, and it raises a dozen kinds of error where callers want to know two things: is the store away, or did
it say no.
"""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
import nats.errors
import nats.js.errors
from nats.aio.msg import Msg

from headgate.common.bus.connection import Bus
from headgate.common.bus.encoded import EncodedMessage, encode_headers, message_size
from headgate.common.errors import Conflict, StoreError, StoreUnavailable, TooLarge
from headgate.common.resources import JsonObject

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
PIPELINED = 256
"""Single publishes under way at once."""

_STREAM_NOT_FOUND = 10059
_NAME_IN_USE = 10058
_NO_MESSAGE = 10037
_WRONG_SEQUENCE = frozenset({10071, 10164})
_FULL = frozenset({10002, 10028, 10047})
"""The account or the server may store no more; its operator can change that while we wait."""
_UNAVAILABLE = frozenset({10008, 10023, 10074, 10076, 10077, 10115, 10039}) | _FULL

EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
MESSAGE_ID = "Nats-Msg-Id"
_NO_HEADERS: Mapping[str, str] = {}

T = TypeVar("T")


CLUSTER = 3
"""Servers that keep each stream in a cluster of so many or more, unless the settings say another number."""


class StreamMissing(StoreUnavailable):
    """The stream does not exist, or nothing answers for it."""

    def __init__(self, message: str, *, is_certain: bool = False) -> None:
        super().__init__(message)
        self.is_certain = is_certain
        """Whether JetStream itself said so."""


class BatchRefused(StoreError):
    """The server did not take an atomic batch; none of its messages is stored."""


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


class Ack(NamedTuple):
    """The server's confirmation of one message."""

    sequence: int
    is_duplicate: bool


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
        except _ApiError as error:
            if error.code != _NAME_IN_USE:  # by somebody who made it just now, with another configuration
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
        except (_ApiError, StoreUnavailable) as error:
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
            StoreUnavailable: no server answers.
        """
        try:
            await self._call(f"STREAM.INFO.{self.name}", {}, LOOK_S)
        except StreamMissing as error:
            if not error.is_certain:
                raise

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
        except _ApiError as error:
            if error.code == _NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        data = base64.b64decode(message.get("data") or "")
        return Stored(message["subject"], message["seq"], data, message["time"], _read_headers(message.get("hdrs")))

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
        return _read_ack(answer)

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

    async def _publish_batch(self, messages: Sequence[Outgoing]) -> list[int]:
        batch_id = self.bus.nc.new_inbox().rsplit(".", 1)[-1]
        await self._send_all([_in_batch(one, batch_id, number) for number, one in enumerate(messages[:-1], 1)])
        message, count = messages[-1], len(messages)
        headers = {**message.headers, **_batch_headers(batch_id, count), "Nats-Batch-Commit": "1"}
        return _batch_sequences(await self._request(message.subject, message.payload, headers), count)

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
        return _read_answer(answer)

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


def _read_headers(encoded: str | None) -> Mapping[str, str]:
    """Read a block of headers as the server stored it: a line that names the version, then one for each."""
    if not encoded:
        return {}
    lines = base64.b64decode(encoded).decode(errors="replace").split("\r\n")
    return {name: value.strip() for name, colon, value in (line.partition(":") for line in lines[1:]) if colon}


def _without_notes(config: JsonObject) -> JsonObject:
    """Return a configuration without what the server noted in it, and would refuse of us."""
    metadata = {key: value for key, value in (config.get("metadata") or {}).items() if not key.startswith("_nats.")}
    return config | {"metadata": metadata}


class _ApiError(StoreError):
    def __init__(self, code: int, description: str) -> None:
        super().__init__(description)
        self.code = code


def _unavailable(subject: str, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(f"{subject}: NATS did not confirm: {str(error) or type(error).__name__}")


def _read_answer(answer: Msg) -> JsonObject:
    try:
        content: Any = msgspec.json.decode(answer.data)
        error = content.get("error")
    except (msgspec.DecodeError, AttributeError) as broken:
        raise StoreError(f"NATS gave an answer that is not JSON: {answer.data[:80]!r}") from broken
    if not error:
        return content  # type: ignore[no-any-return]
    code, description = int(error.get("err_code", 0)), str(error.get("description", "unknown error"))
    if code == _STREAM_NOT_FOUND:
        raise StreamMissing(description, is_certain=True)
    if code in _WRONG_SEQUENCE:
        raise Conflict(description)
    if code in _UNAVAILABLE or int(error.get("code", 0)) == 503:
        raise StoreUnavailable(description)
    raise _ApiError(code, description)


def _read_ack(answer: Msg) -> Ack:
    content = _read_answer(answer)
    return Ack(content["seq"], bool(content.get("duplicate")))


def _batch_headers(batch_id: str, number: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch_id, "Nats-Batch-Sequence": str(number)}


def _in_batch(message: Outgoing, batch_id: str, number: int) -> EncodedMessage:
    lines = message.header_lines + encode_headers(_batch_headers(batch_id, number))
    return EncodedMessage(message.subject, lines, message.payload)


def _batch_sequences(answer: Msg, count: int) -> list[int]:
    try:
        last = int(_read_answer(answer)["seq"])
    except _ApiError as error:
        raise BatchRefused(str(error)) from error
    return list(range(last - count + 1, last + 1))
