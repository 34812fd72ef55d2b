"""Last good versions of objects, in the delta log's own stream: so they keep their place among the deltas."""

from collections.abc import Mapping, Sequence

from headgate.common.deltas import Delta, LastGood, delta_subject, last_good_subject
from headgate.common.errors import DecodeError
from headgate.common.resources import ObjectRef
from headgate.common.stores.nats.encoding import decode_delta, encode_last_good, tell_unreadable
from headgate.common.stores.nats.following import read_all
from headgate.common.stores.nats.jetstream import Stream

SUBJECTS_AT_ONCE = 100
"""Of one consumer: a request that names many more would grow towards the server's limit."""


class NatsLastGoodLog:
    """`LastGoodLog` on JetStream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def histories(self, refs: Sequence[ObjectRef]) -> Mapping[ObjectRef, Sequence[Delta]]:
        """Return the deltas of objects that are still in the log, oldest first."""
        found: dict[ObjectRef, list[Delta]] = {ref: [] for ref in refs}
        for start in range(0, len(refs), SUBJECTS_AT_ONCE):
            subjects = [delta_subject(ref) for ref in refs[start : start + SUBJECTS_AT_ONCE]]
            for message in await read_all(self._stream, subjects):
                try:
                    delta = decode_delta(message.subject, message.sequence, message.headers, message.data)
                except DecodeError as error:
                    tell_unreadable(error)
                else:
                    found[delta.ref].append(delta)
        return found

    async def write(self, record: LastGood) -> None:
        """Write a record; what was written before is purged when there is nothing to say any more."""
        ack = await self._stream.publish(encode_last_good(record))
        if not record.refused:
            await self._stream.purge(last_good_subject(record.ref, record.table), before=ack.sequence)
