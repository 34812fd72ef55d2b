"""Which last delta each object of a cluster has in the log, read once and kept up to date.

What was read stays: a reading that is interrupted goes on after the last message that it saw, over another consumer or
another connection, and the next one asks only for what came since. A stream that lost or forgot that message is read
from the beginning. Messages that were purged are not missed: a reader that depends on them finds that an expected
sequence conflicts, and calls `forget`.

Rejected: reading all of it each time. A reader that gets a tenth of a core and is interrupted more often than it can
read everything would never come to the end.
"""

from collections.abc import Mapping

from headgate.common.deltas import DELTA_PREFIX, LogPlace, escape_token, parse_delta_subject
from headgate.common.errors import DecodeError, StoreUnavailable
from headgate.common.resources import ObjectRef
from headgate.common.stores import LoggedObject
from headgate.common.stores.nats.answers import StreamMissing
from headgate.common.stores.nats.encoding import decode_state, tell_unreadable
from headgate.common.stores.nats.following import (
    Batch,
    Found,
    Interrupted,
    OrderedConsumer,
    Patience,
    find_place,
)
from headgate.common.stores.nats.jetstream import Stream


class ObjectStates:
    """The states of one cluster's objects."""

    def __init__(self, stream: Stream, cluster: str) -> None:
        """Know nothing yet."""
        self._stream = stream
        self._pattern = f"{DELTA_PREFIX}.{escape_token(cluster)}.*.*.*.*"
        self._found: dict[ObjectRef, LoggedObject] = {}
        self._seen: LogPlace | None = None
        self._patience = Patience()

    def forget(self) -> None:
        """Read everything again the next time."""
        self._found, self._seen = {}, None

    async def read(self) -> Mapping[ObjectRef, LoggedObject]:
        """Return the last delta of every object; nothing if the stream is missing. Headers are read, and no contents.

        Raises:
            StoreUnavailable: interrupted; ask again, and it goes on from there.
        """
        consumer = OrderedConsumer(self._stream, [self._pattern], headers_only=True, patience=self._patience)
        try:
            await self._read_on(consumer)
        except StreamMissing as error:
            if not error.is_certain:
                raise
            self.forget()
        except Interrupted as error:
            raise StoreUnavailable(f"reading {self._pattern} was interrupted: {error}") from error
        finally:
            await consumer.close()
        return dict(self._found)

    async def _read_on(self, consumer: OrderedConsumer) -> None:
        state = await self._stream.state()
        seen = self._seen
        if seen is None or await find_place(seen, self._stream, state) is not Found.THERE:
            self.forget()
            seen = None
        async for batch in consumer.read(after=seen.sequence if seen else None):
            self._take(Batch(batch, state.created))

    def _take(self, batch: Batch) -> None:
        for message in batch:
            try:
                ref = parse_delta_subject(message.subject)
                self._found[ref] = decode_state(message.sequence, message.headers)
            except DecodeError as error:
                tell_unreadable(error)
        self._seen = batch.last
