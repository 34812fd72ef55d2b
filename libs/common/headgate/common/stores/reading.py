"""Reading several chunks of a table at once."""

from collections.abc import Iterable

from headgate.common.snapshot import Chunk, ChunkName, decode_chunk, open_chunk
from headgate.common.stores import SnapshotStore
from headgate.common.table import TableEntry

AT_ONCE = 32


async def read_chunks(store: SnapshotStore, names: Iterable[ChunkName]) -> list[Chunk]:
    """Return chunks with their contents, in order.

    Raises:
        NotFound: the store lacks one of them.
        DecodeError: what the store has of one is damaged.
        StoreUnavailable: not now.
    """
    wanted, chunks = list(names), list[Chunk]()
    for start in range(0, len(wanted), AT_ONCE):
        group = wanted[start : start + AT_ONCE]
        for name, stored in zip(group, await store.get_chunks(group), strict=True):
            chunks.append(Chunk(name.kind, name.prefix, name.digest, open_chunk(name, stored)))
    return chunks


async def read_entries(store: SnapshotStore, names: Iterable[ChunkName]) -> list[TableEntry]:
    """Return the entries of some chunks; raises what `read_chunks` does."""
    return [entry for chunk in await read_chunks(store, names) for entry in decode_chunk(chunk.kind, chunk.content)]
