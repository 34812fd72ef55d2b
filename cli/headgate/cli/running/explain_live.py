"""What `explain` reads of the stores: objects with problems, and tables of the past."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from headgate.cli.offline.complaints import Suspect
from headgate.cli.running.inputs import read_kinds
from headgate.cli.running.revisions import find_image
from headgate.cli.terminal.errors import CommandError
from headgate.cli.terminal.moments import parse_moment
from headgate.common.deltas import Delta, delta_subject
from headgate.common.errors import DecodeError, NotFound
from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.snapshot import ChunkName
from headgate.common.stores import SnapshotStore
from headgate.common.stores.nats import Upkeep
from headgate.common.stores.nats.encoding import decode_message
from headgate.common.stores.nats.following import read_all
from headgate.common.stores.nats.log import delta_stream
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
from headgate.common.table import TableEntry

READ_AT_ONCE = 100
"""Objects whose last versions are asked of the log in one go."""


async def read_suspects(stores: Stores, table: str) -> list[Suspect]:
    """Return the objects with problems that a table's translator reports.

    Raises:
        StoreUnavailable: no answer.
    """
    clusters = sorted({kind.cluster for kind in await read_kinds(stores.bus)})
    boards = await asyncio.gather(*(stores.statuses.read(cluster, table) for cluster in clusters))
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


class PastTable(NamedTuple):
    """The routes and backends of a revision."""

    label: str
    entries: list[TableEntry]


async def read_past(snapshots: SnapshotStore, table: str, revision: str, at: str) -> PastTable:
    """Return the routes and backends of a revision, by its name or as the newest at a time.

    Raises:
        CommandError: there is none such.
        UsageMistake: a name or a time is none.
    """
    image = await find_image(snapshots, table, revision or await _revision_at(snapshots, table, at))
    wanted: list[ChunkName] = [name for name in image.chunks if name.kind in ("hosts", "upstreams")]
    return PastTable(image.label, await read_entries(snapshots, wanted))


async def _revision_at(snapshots: SnapshotStore, table: str, at: str) -> str:
    moment = parse_moment(at, datetime.now(UTC))
    for version in reversed(await snapshots.versions(table)):
        try:
            manifest = await snapshots.get_manifest(table, version)
        except NotFound:
            continue  # collected between the two questions
        if manifest.created_at <= moment:
            return str(version)
    raise CommandError(f"no revision is kept that is as old as {at!r}: `headgate history` lists what is kept")
