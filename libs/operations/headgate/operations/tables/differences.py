"""What differs between two revisions of a table."""

from typing import NamedTuple

from headgate.common.errors import NotFound
from headgate.common.stores import SnapshotStore
from headgate.common.stores.reading import read_entries
from headgate.common.table_diff import TableDiff, diff_tables
from headgate.operations.errors import OperationError
from headgate.operations.tables.revisions import Image, find_image


class Compared(NamedTuple):
    """Two tables and what differs."""

    before: Image
    after: Image
    diff: TableDiff


async def compare_revisions(snapshots: SnapshotStore, table: str, before: str, after: str) -> Compared:
    """Compare two revisions by their names; raises what `find_image` and `compare_images` do."""
    one, other = await find_image(snapshots, table, before), await find_image(snapshots, table, after)
    return Compared(one, other, await compare_images(snapshots, one, other))


async def compare_images(snapshots: SnapshotStore, before: Image, after: Image) -> TableDiff:
    """Compare two tables; only chunks in which they differ are read.

    Raises:
        OperationError: one was collected meanwhile.
    """
    shared = {chunk.digest for chunk in before.chunks} & {chunk.digest for chunk in after.chunks}
    sides = [[chunk for chunk in image.chunks if chunk.digest not in shared] for image in (before, after)]
    try:
        return diff_tables(*[await read_entries(snapshots, chunks) for chunks in sides])
    except NotFound as error:
        raise OperationError(f"{before.label} or {after.label} was collected meanwhile; ask again") from error


def as_document(table: str, compared: Compared) -> dict[str, object]:
    """Return it as JSON data."""
    return {
        "table": table,
        "before": _about(compared.before),
        "after": _about(compared.after),
        "counts": compared.diff.counts,
        "changes": [change.model_dump(mode="json", exclude_defaults=True) for change in compared.diff.changes],
    }


def _about(image: Image) -> dict[str, str]:
    return {"name": image.label, "revision": str(image.manifest.version)}
