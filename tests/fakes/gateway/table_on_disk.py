"""What stands in the file of the last good table."""

from headgate.common.snapshot import ChunkName
from headgate.gateway.following.last_good import StoredTable
from headgate.gateway.table.chunks import EMPTY_CHUNK


def content_on_disk(table: StoredTable, name: ChunkName) -> bytes:
    """Return a chunk's verified content; that of an empty one where nothing of it is kept."""
    return table.open_chunk(name, table.chunks.get(name.digest, EMPTY_CHUNK))
