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

from headgate.common.bus import Bus
from headgate.common.errors import Conflict, StoreError, StoreUnavailable, TooLarge
from headgate.common.resources import JsonObject

_log = logging.getLogger(__name__)

REQUEST_S = 5.0
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
_UNAVAILABLE = frozenset({10008, 10023, 10074, 10076, 10077, 10115, 10039})

EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
MESSAGE_ID = "Nats-Msg-Id"

T = TypeVar("T")


class StreamMissing(StoreUnavailable):
    """The stream does not exist, or nothing answers for it."""

    def __init__(self, message: str, *, is_certain: bool = False) -> None:
        super().__init__(message)
        self.is_certain = is_certain
        """Whether JetStream itself said so."""


class BatchRefused(StoreError):
    """The server did not take an atomic batch; none of its messages is stored."""


class Outgoing(NamedTuple):
    """A message to publish."""

    subject: str
    payload: bytes
    headers: Mapping[str, str] = {}

    @property
    def size(self) -> int:
        """Bytes that count against the server's `max_payload`."""
        return len(self.payload) + 14 + sum(len(key) + len(value.encode()) + 4 for key, value in self.headers.items())


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


class StreamState(NamedTuple):
    """Which incarnation of a stream this is, and how far it got."""

    created: str
    messages: int
    last_sequence: int


class Stream:
    """One stream; made again when it is found missing by something that writes."""

    def __init__(self, bus: Bus, config: JsonObject) -> None:
        """Describe a stream; `ensure` makes it.

        Args:
            bus: the connection.
            config: as in the server's API, with durations in nanoseconds.
        """
        self.bus = bus
        self.name: str = config["name"]
        self._config = config

    async def ensure(self) -> None:
        """Make the stream, or bring an existing one to our configuration."""
        try:
            await self._call(f"STREAM.CREATE.{self.name}", self._config)
        except _ApiError as error:
            if error.code != _NAME_IN_USE:
                raise
            await self._call(f"STREAM.UPDATE.{self.name}", self._config)

    async def state(self) -> StreamState:
        """Return the stream's incarnation and progress.

        Raises:
            StreamMissing: there is no such stream.
        """
        info = await self._call(f"STREAM.INFO.{self.name}", {})
        return StreamState(info["created"], info["state"]["messages"], info["state"]["last_seq"])

    async def confirm_missing(self) -> None:
        """Tell a stream that does not exist, which is an answer, from a server that does not answer.

        Raises:
            StoreUnavailable: nobody answers.
        """
        try:
            await self._call(f"STREAM.INFO.{self.name}", {})
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
            answer = await self._call(f"STREAM.MSG.GET.{self.name}", request)
        except _ApiError as error:
            if error.code == _NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        data = base64.b64decode(message.get("data") or "")
        return Stored(message["subject"], message["seq"], data, message["time"])

    async def last_direct(self, subject: str) -> bytes | None:
        """Return the content of a subject's last message as any replica has it; that may lag behind the leader."""
        answer = await self._request(f"$JS.API.DIRECT.GET.{self.name}.{subject}", b"", None)
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
        for number, message in enumerate(messages[:-1], 1):
            await self._send(message, {**message.headers, **_batch_headers(batch_id, number)})
        message, count = messages[-1], len(messages)
        headers = {**message.headers, **_batch_headers(batch_id, count), "Nats-Batch-Commit": "1"}
        return _batch_sequences(await self._request(message.subject, message.payload, headers), count)

    async def _send(self, message: Outgoing, headers: Mapping[str, str]) -> None:
        try:
            await self.bus.publish(message.subject, message.payload, headers)
        except (nats.errors.Error, OSError) as error:
            raise _unavailable(message.subject, error) from error

    async def _remaking(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            return await operation()
        except StreamMissing:
            await self.ensure()
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

    async def create_consumer(self, name: str, config: JsonObject) -> JsonObject:
        """Create an ephemeral consumer and return its info."""
        return await self._call(
            f"CONSUMER.CREATE.{self.name}.{name}", {"stream_name": self.name, "config": config, "action": "create"}
        )

    async def forget_consumer(self, name: str) -> None:
        """Delete a consumer without waiting; one that is not deleted expires by itself."""
        try:
            if self.bus.is_connected:
                await self.bus.publish(f"$JS.API.CONSUMER.DELETE.{self.name}.{name}")
        except (nats.errors.Error, OSError) as error:
            _log.debug("a consumer is left to expire", extra={"consumer": name, "reason": str(error)})

    async def _call(self, operation: str, body: JsonObject) -> JsonObject:
        answer = await self._request(f"$JS.API.{operation}", msgspec.json.encode(body), None)
        return _read_answer(answer)

    async def _request(self, subject: str, payload: bytes, headers: Mapping[str, str] | None) -> Msg:
        if not self.bus.is_connected:
            raise StoreUnavailable(f"not connected to NATS at {self.bus.address}")
        try:
            return await self.bus.request(subject, payload, headers=headers, timeout_s=REQUEST_S)
        except nats.errors.NoRespondersError as error:
            raise StreamMissing(f"nothing answers for stream {self.name}") from error
        except (nats.errors.Error, OSError) as error:
            raise _unavailable(subject, error) from error


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


def _batch_sequences(answer: Msg, count: int) -> list[int]:
    try:
        last = int(_read_answer(answer)["seq"])
    except _ApiError as error:
        raise BatchRefused(str(error)) from error
    return list(range(last - count + 1, last + 1))
