"""The boards on JetStream: wanted statuses, and who serves what."""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing

from headgate.common.bus.connection import Bus
from headgate.common.deltas import escape_token
from headgate.common.errors import DecodeError, StoreError
from headgate.common.heartbeats import TTL_S, Heartbeat
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.status import (
    STATUS_PREFIX,
    STATUS_STREAM,
    EncodedStatus,
    StatusUpdate,
    parse_status_subject,
    status_subject,
)
from headgate.common.stores import FORGET_AFTER_S
from headgate.common.stores.nats.following import Message, Restarted, follow, read_last
from headgate.common.stores.nats.jetstream import Outgoing, Stream, Upkeep
from headgate.common.stores.nats.publishing import publish_each
from headgate.common.stores.nats.snapshots import bucket_config

_log = logging.getLogger(__name__)

GATEWAYS_BUCKET = "HEADGATE_GATEWAYS"
_NANO = 1_000_000_000
_SOME_PROBLEM = b'"problems":[{'
"""In every status with a problem, as it is encoded: of ten thousand, few have one, and decoding all takes a second."""
_KEY_OPERATION, _DELETED = "KV-Operation", "DEL"


def status_stream(bus: Bus, upkeep: Upkeep) -> Stream:
    """The stream of wanted statuses: each table's last of each object."""
    config: JsonObject = {
        "name": STATUS_STREAM,
        "subjects": [f"{STATUS_PREFIX}.>"],
        "description": "What is wanted to be written to the objects of all clusters",
        "storage": "file",
        "discard": "old",
        "max_msgs_per_subject": 1,
        "allow_direct": True,
        "allow_atomic": True,
        "allow_msg_ttl": True,
    }
    return Stream(bus, config, upkeep)


def gateways_stream(bus: Bus, upkeep: Upkeep) -> Stream:
    """The bucket of announcements; each expires `TTL_S` seconds after it was made."""
    config = bucket_config(GATEWAYS_BUCKET, "Gateway workers and the revisions that they serve")
    # The right to roll up one subject is the right to empty the whole bucket.
    config |= {"max_age": int(TTL_S * _NANO), "duplicate_window": int(TTL_S * _NANO), "allow_rollup_hdrs": False}
    return Stream(bus, config, upkeep)


class NatsStatusBoard:
    """`StatusBoard` on JetStream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def post(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        """Replace what is wanted for some objects: many in one batch, which the server writes to its disk at once."""
        return await self._publish(updates, {})

    async def forget(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        """Replace what is wanted for objects that are gone, and keep that for `FORGET_AFTER_S` only."""
        # Not purged at once: followers must hear of it, and the object may be there again by then.
        return await self._publish(updates, {"Nats-TTL": f"{FORGET_AFTER_S}s"})

    async def _publish(self, updates: Iterable[StatusUpdate], headers: Mapping[str, str]) -> list[bytes | StoreError]:
        messages = [Outgoing(status_subject(each.ref, each.table), each.encode(), headers) for each in updates]
        refusals = await publish_each(self._stream, messages)
        return [refusal or message.payload for message, refusal in zip(messages, refusals, strict=True)]

    async def follow(self, cluster: str, table: str = "") -> AsyncIterator[StatusUpdate]:
        """Yield what is wanted for every object of a cluster, then every change, for ever."""
        async with aclosing(follow(self._stream, [_pattern(cluster, table)])) as items:
            async for item in items:
                for update in () if isinstance(item, Restarted) else _decode(item):
                    yield update

    async def follow_encoded(self, cluster: str, table: str) -> AsyncIterator[Sequence[EncodedStatus]]:
        """Yield what `follow` does for one table, each as the stream has it."""
        async with aclosing(follow(self._stream, [_pattern(cluster, table)])) as items:
            async for item in items:
                if not isinstance(item, Restarted):
                    yield [EncodedStatus(ref, message.data) for message, _, ref in _with_places(item)]

    async def read(self, cluster: str, table: str = "", *, with_problems: bool = False) -> Sequence[StatusUpdate]:
        """Return what is wanted for every object of a cluster now, or for those with problems."""
        messages = await read_last(self._stream, _pattern(cluster, table))
        if with_problems:
            messages = [message for message in messages if _SOME_PROBLEM in message.data]
        updates = (update for update in _decode(messages) if update.problems or not with_problems)
        return sorted(updates, key=lambda update: (update.ref, update.table))


def _pattern(cluster: str, table: str) -> str:
    """Return the subjects of a cluster's objects; of all tables without a name."""
    return ".".join((STATUS_PREFIX, *map(escape_token, filter(None, (cluster, table))), ">"))


def _with_places(batch: Iterable[Message]) -> Iterator[tuple[Message, str, ObjectRef]]:
    """Yield messages with the table and the object that their subjects name."""
    for message in batch:
        try:
            table, ref = parse_status_subject(message.subject)
        except DecodeError as error:
            _log.error("a status cannot be read", extra={"subject": message.subject, "reason": str(error)})
        else:
            yield message, table, ref


def _decode(batch: Iterable[Message]) -> Iterator[StatusUpdate]:
    for message, table, ref in _with_places(batch):
        try:
            # A right to post for one table is none to speak for another.
            yield StatusUpdate.decode(message.data, ref, table)
        except DecodeError as error:
            _log.error("a status cannot be read", extra={"subject": message.subject, "reason": str(error)})


class NatsHeartbeatBoard:
    """`HeartbeatBoard` on JetStream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def beat(self, heartbeat: Heartbeat) -> None:
        """Announce a worker."""
        await self._stream.publish(Outgoing(_key(heartbeat), heartbeat.encode().encode()))

    async def remove(self, heartbeat: Heartbeat) -> None:
        """Take a worker's announcement back, as a key is deleted (ADR-8); the right to purge would cover all others."""
        await self._stream.publish(Outgoing(_key(heartbeat), b"", {_KEY_OPERATION: _DELETED}))

    async def live(self) -> Sequence[Heartbeat]:
        """Return the announcements that have not expired, sorted by replica and worker."""
        found = []
        for message in await read_last(self._stream, f"$KV.{GATEWAYS_BUCKET}.>"):
            if message.headers.get(_KEY_OPERATION) == _DELETED:
                continue
            try:
                found.append(Heartbeat.model_validate_json(message.data))
            except ValueError as error:
                _log.error("a heartbeat cannot be read", extra={"subject": message.subject, "reason": str(error)})
        return sorted(found, key=lambda heartbeat: (heartbeat.replica, heartbeat.worker))


def _key(heartbeat: Heartbeat) -> str:
    names = map(escape_token, (heartbeat.table, heartbeat.replica))
    return ".".join(("$KV", GATEWAYS_BUCKET, *names, str(heartbeat.worker)))
