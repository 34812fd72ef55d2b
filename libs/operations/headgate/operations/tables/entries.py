"""The entries of the revision that is published."""

from headgate.common.snapshot import ChunkName
from headgate.common.stores import SnapshotStore
from headgate.common.stores.reading import read_entries
from headgate.common.table import EntryKind, TableEntry
from headgate.operations.tables.revisions import current_manifest


async def read_published(
    snapshots: SnapshotStore, table: str, kinds: frozenset[EntryKind] | None = None
) -> tuple[str, list[TableEntry]]:
    """Return the version of a table and its entries of some kinds; None: of all.

    Raises:
        OperationError: the table was never published.
        StoreUnavailable: not now.
    """
    _, manifest = await current_manifest(snapshots, table)
    names: list[ChunkName] = [name for name in manifest.chunks if kinds is None or name.kind in kinds]
    return str(manifest.version), await read_entries(snapshots, names)
