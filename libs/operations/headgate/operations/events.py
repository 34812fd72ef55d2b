"""What happened to objects, as the delta log has it: the past, and what goes on happening."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, NamedTuple

from headgate.common.deltas import Delta
from headgate.common.resources import ALL_KINDS
from headgate.common.stores import DeltaLogReader, DeltaSelection, LoggedDelta

_FIRST_WINDOW = 512


class EventQuery(NamedTuple):
    """Which events are asked for."""

    selection: DeltaSelection
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None
    """Greatest number of past events; None: all."""
    with_objects: bool = False


async def read_events(log: DeltaLogReader, asked: EventQuery, *, follow: bool = False) -> AsyncIterator[LoggedDelta]:
    """Yield the past, oldest first, and with `follow` what happens from now on.

    Raises:
        StoreUnavailable: no answer.
    """
    last = (await log.position()).last_sequence
    for event in await _past(log, asked, last):
        yield event
    if follow:
        async with aclosing(log.tail(asked.selection, last, with_objects=asked.with_objects)) as batches:
            async for event in _each(batches):
                yield event


async def _past(log: DeltaLogReader, asked: EventQuery, last: int) -> Sequence[LoggedDelta]:
    """Return the last events up to a sequence; reads from further back each time, until that is enough."""
    window = _FIRST_WINDOW
    while asked.limit != 0:
        start = max(0, last - window)
        found: deque[LoggedDelta] = deque(maxlen=asked.limit)
        is_old = False
        async with aclosing(log.read_after(asked.selection, start, with_objects=asked.with_objects)) as batches:
            async for event in _each(batches):
                if asked.since and event.logged_at < asked.since:
                    is_old = True
                elif event.delta.sequence <= last and not (asked.until and event.logged_at > asked.until):
                    found.append(event)
        if start == 0 or is_old or len(found) == asked.limit:
            return found
        window *= 8
    return ()


async def _each(batches: AsyncIterator[Sequence[LoggedDelta]]) -> AsyncIterator[LoggedDelta]:
    async for batch in batches:
        for event in batch:
            yield event


def as_document(event: LoggedDelta) -> dict[str, Any]:
    """Return an event as JSON data."""
    delta, ref = event.delta, event.delta.ref
    document: dict[str, Any] = {
        "sequence": delta.sequence,
        "logged_at": event.logged_at.isoformat(),
        "observed_at": delta.observed_at.isoformat(),
        "operation": delta.operation.value,
        "cluster": ref.cluster,
        "kind": kind_name(delta),
        "group": ref.group,
        "resource": ref.resource,
        "namespace": ref.namespace,
        "name": ref.name,
        "by": delta.author.name if delta.author else "",
        "changed_at": delta.author.at.isoformat() if delta.author and delta.author.at else None,
        "uid": delta.uid,
        "resource_version": delta.resource_version,
    }
    return {**document, "object": delta.object} if delta.object is not None else document


def kind_name(delta: Delta) -> str:
    """Return the kind of the object of a delta; its resource, if the kind is not known."""
    kind = ALL_KINDS.find(delta.ref.group, delta.ref.resource)
    return kind.kind if kind else delta.ref.resource
