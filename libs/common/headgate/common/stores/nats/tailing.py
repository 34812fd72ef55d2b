"""Reading what a stream still has of its past, not only the last message of each subject, and then what comes.

async for batch in read_after(stream, subjects, sequence): ...    # ends
async for batch in tail(stream, subjects, sequence): ...          # never ends
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Sequence

from headgate.common.errors import StoreError, StoreUnavailable
from headgate.common.stores.nats.answers import StreamMissing
from headgate.common.stores.nats.following import Interrupted, Message, OrderedConsumer, read_position
from headgate.common.stores.nats.jetstream import Stream

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.05, 2.0


async def read_after(
    stream: Stream, subjects: Sequence[str], after: int, *, headers_only: bool = False
) -> AsyncGenerator[Sequence[Message], None]:
    """Yield what a stream has of some subjects after a sequence, in order; nothing if the stream is missing.

    Raises:
        StoreUnavailable: interrupted; ask again.
    """
    consumer = OrderedConsumer(stream, subjects, headers_only=headers_only)
    try:
        async for batch in consumer.read(after):
            yield batch
    except StreamMissing as error:
        if not error.is_certain:
            raise
    except Interrupted as error:
        raise StoreUnavailable(f"reading {stream.name} was interrupted: {error}") from error
    finally:
        await consumer.close()


async def tail(
    stream: Stream, subjects: Sequence[str], after: int, *, headers_only: bool = False
) -> AsyncGenerator[Sequence[Message], None]:
    """Yield everything of some subjects after a sequence, then everything new; never ends and never raises.

    A stream that was lost, or that went back, is read from its beginning.
    """
    pause_s, incarnation = _FIRST_PAUSE_S, ""
    while True:
        consumer = OrderedConsumer(stream, subjects, headers_only=headers_only)
        try:
            position = await read_position(stream)
            if (incarnation and position.incarnation != incarnation) or position.last_sequence < after:
                after = 0
            incarnation = position.incarnation
            await consumer.open(after)
            while True:
                batch = await consumer.next_batch()
                after, pause_s = batch[-1].sequence, _FIRST_PAUSE_S
                yield batch
        except (Interrupted, StoreError) as error:
            _log.debug("reading on", extra={"stream": stream.name, "after": after, "reason": str(error)})
        finally:
            await consumer.close()
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
        pause_s = min(_LAST_PAUSE_S, pause_s * 2)
