"""Tables of the past: what a revision served, by its name or by a time."""

from datetime import UTC, datetime
from typing import NamedTuple

from headgate.common.errors import NotFound
from headgate.common.snapshot import ChunkName
from headgate.common.stores import SnapshotStore
from headgate.common.stores.reading import read_entries
from headgate.common.table import TableEntry
from headgate.operations.errors import OperationError
from headgate.operations.moments import parse_moment
from headgate.operations.tables.revisions import find_image


class PastTable(NamedTuple):
    """The routes and backends of a revision."""

    label: str
    entries: list[TableEntry]


async def read_past(snapshots: SnapshotStore, table: str, revision: str, at: str) -> PastTable:
    """Return the routes and backends of a revision, by its name or as the newest at a time.

    Raises:
        OperationError: no such revision is kept.
        InvalidRequest: the text is neither a name nor a time.
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
    raise OperationError(f"no revision is kept that is as old as {at!r}: `headgate history` lists what is kept")
