"""Many messages of which each stands for itself: what the server refuses holds no other back."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from headgate.common.errors import Conflict, NotPermitted, StoreError, StoreUnavailable, TooLarge
from headgate.common.stores.nats.answers import BatchRefused
from headgate.common.stores.nats.jetstream import FEW, PIPELINED, Outgoing, Stream

_log = logging.getLogger(__name__)

GROUP_BYTES = 1024 * 1024
"""Of one batch: messages of other streams wait for the server's disk while it is written."""


async def publish_each(stream: Stream, messages: Sequence[Outgoing]) -> list[StoreError | None]:
    """Publish messages of different subjects in atomic batches, or one by one where they are few.

    A batch with a message that the server refuses is published again one by one.

    Returns:
        For each, why it was refused; None: it is stored.

    Raises:
        StoreUnavailable: not all confirmed; any of them may be stored.
    """
    refusals: list[StoreError | None] = []
    for group in _groups(messages):
        refusals += await _publish_group(stream, group)
    return refusals


def _groups(messages: Sequence[Outgoing]) -> Iterator[Sequence[Outgoing]]:
    start = size = 0
    for place, message in enumerate(messages):
        if place > start and (place - start == PIPELINED or size + message.size > GROUP_BYTES):
            yield messages[start:place]
            start, size = place, 0
        size += message.size
    if start < len(messages):
        yield messages[start:]


async def _publish_group(stream: Stream, group: Sequence[Outgoing]) -> list[StoreError | None]:
    if len(group) >= FEW:
        try:
            await stream.publish_batch(group)
        except (BatchRefused, Conflict, NotPermitted, TooLarge) as error:
            _log.debug("a batch was refused, publishing one by one", extra={"reason": str(error)})
        else:
            return [None] * len(group)
    outcomes = await asyncio.gather(*map(stream.publish, group), return_exceptions=True)
    return [_refusal(outcome) for outcome in outcomes]


def _refusal(outcome: Any) -> StoreError | None:
    is_away = isinstance(outcome, StoreUnavailable) and not isinstance(outcome, NotPermitted)
    if isinstance(outcome, StoreError) and not is_away:
        return outcome
    if isinstance(outcome, BaseException):
        raise outcome
    return None
