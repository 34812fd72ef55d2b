"""Reading the objects with problems that translators report, with what the log has of each."""

import asyncio
from collections.abc import Sequence

from headgate.common.deltas import Delta, delta_subject
from headgate.common.errors import DecodeError
from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.stores.nats import Upkeep
from headgate.common.stores.nats.encoding import decode_message
from headgate.common.stores.nats.following import read_all
from headgate.common.stores.nats.log import delta_stream
from headgate.common.stores.opening import Stores
from headgate.operations.status.kinds import read_kinds
from headgate.operations.status.suspects import Suspect

READ_AT_ONCE = 100
"""Objects whose last versions are asked of the log in one go."""


async def read_suspects(stores: Stores, table: str) -> list[Suspect]:
    """Return the objects with problems that a table's translator reports.

    Raises:
        StoreUnavailable: no answer.
    """
    clusters = sorted({kind.cluster for kind in await read_kinds(stores.bus)})
    boards = await asyncio.gather(*(stores.statuses.read(cluster, table, with_problems=True) for cluster in clusters))
    updates = [update for board in boards for update in board if any(map(_is_trouble, update.problems))]
    objects = await _read_objects(stores, [update.ref for update in updates])
    return [
        Suspect(
            update.kind,
            update.ref.namespace,
            update.ref.name,
            objects.get(update.ref),
            update.problems,
            update.ref.cluster,
        )
        for update in updates
    ]


def _is_trouble(problem: Problem) -> bool:
    return problem.severity is not Severity.INFO


async def _read_objects(stores: Stores, refs: Sequence[ObjectRef]) -> dict[ObjectRef, JsonObject]:
    """Return the last version of each object that the log has."""
    found: dict[ObjectRef, JsonObject] = {}
    stream = delta_stream(stores.bus, Upkeep(makes_streams=False))
    for start in range(0, len(refs), READ_AT_ONCE):
        for message in await read_all(stream, [delta_subject(ref) for ref in refs[start : start + READ_AT_ONCE]]):
            try:
                delta = decode_message(message.subject, message.sequence, message.headers, message.data)
            except DecodeError:
                continue  # of another release; the services log it
            if isinstance(delta, Delta) and delta.object is not None:
                found[delta.ref] = delta.object
    return found
