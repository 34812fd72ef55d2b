"""Chunks of a store as tests compare them."""

from collections.abc import Mapping, Sequence

from headgate.common.snapshot import Chunk, ChunkName, compress
from headgate.common.stores import SnapshotStore
from headgate.common.stores.reading import read_chunks


async def content_of(store: SnapshotStore, name: ChunkName) -> bytes:
    """Return one chunk's verified content."""
    [chunk] = await read_chunks(store, [name])
    return chunk.content


class StoredChunks:
    """Some chunks, given as a store gives them."""

    def __init__(self, chunks: Sequence[Chunk], level: int = 3) -> None:
        self.stored: Mapping[str, bytes] = {chunk.digest: compress(chunk.content, level) for chunk in chunks}

    async def get_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        return [self.stored[name.digest] for name in names]
