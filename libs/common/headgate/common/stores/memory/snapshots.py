"""Tables on dictionaries."""

from collections.abc import AsyncIterator, Collection, Sequence

from headgate.common.errors import Conflict, NotFound
from headgate.common.snapshot import (
    Chunk,
    ChunkName,
    Manifest,
    Pointer,
    Version,
    compress,
)
from headgate.common.stores.found import all_found
from headgate.common.stores.memory.changes import Changes
from headgate.common.stores.pointers import pointer_to
from headgate.common.stores.revision_change import RevisionChange


class MemorySnapshotStore:
    """`SnapshotStore` on dictionaries."""

    def __init__(self) -> None:
        self._changes = Changes()
        self.lose()

    def lose(self) -> None:
        """Lose everything."""
        self.chunks: dict[str, bytes] = {}
        self._unnamed: set[str] = set()
        """Chunks that were stored and not named since: a commit under way counts on them."""
        self.manifests: dict[tuple[str, Version], bytes] = {}
        self.pointers: dict[str, Pointer] = {}
        self._changes.tell()

    async def read_pointer(self, table: str) -> Pointer | None:
        """Return the pointer; None if there is none."""
        return self.pointers.get(table)

    async def missing(self, digests: Collection[str]) -> set[str]:
        """Return which chunks the store lacks."""
        return set(digests) - self.chunks.keys()

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Store chunks."""
        for chunk in chunks:
            self.chunks[chunk.digest] = compress(chunk.content)
            self._unnamed.add(chunk.digest)

    async def get_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        """Return chunks as they are stored."""
        digests = [name.digest for name in names]
        return all_found("chunk {}", digests, map(self.chunks.get, digests))

    async def commit(
        self, manifest: Manifest, expected: Pointer | None, change: RevisionChange | None = None
    ) -> Pointer:
        """Store the manifest and move the pointer to it, both or neither."""
        encoded, current = manifest.encode(), self.pointers.get(manifest.table)
        pointer = pointer_to(manifest, encoded)
        if current is not None and current == pointer:
            return current
        if current != expected:
            raise Conflict(f"table {manifest.table}: the pointer is not the expected one")
        if change is not None:
            await self.put_chunks(change.chunks)
        self.manifests[manifest.table, manifest.version] = encoded
        self._unnamed -= manifest.digests
        self.pointers[manifest.table] = pointer
        self._changes.tell()
        return pointer

    async def get_manifest(self, table: str, version: Version) -> Manifest:
        """Return the manifest of a revision."""
        try:
            return Manifest.decode(self.manifests[table, version])
        except KeyError:
            raise NotFound(f"table {table} has no revision {version}: never committed, or collected since") from None

    async def get_manifest_head(self, table: str, version: Version) -> Manifest:
        """Return a revision's manifest."""
        return await self.get_manifest(table, version)

    async def manifest_of(self, pointer: Pointer) -> Manifest:
        """Return the manifest that a pointer names."""
        return await self.get_manifest(pointer.table, pointer.version)

    async def versions(self, table: str) -> Sequence[Version]:
        """Return the versions whose manifests are kept, oldest first."""
        return sorted(version for name, version in self.manifests if name == table)

    async def collect_garbage(self, table: str, expired: Collection[Version]) -> int:
        """Drop these revisions' manifests except the pointer's, and chunks that none names."""
        pointer = self.pointers.get(table)
        old = [version for version in expired if pointer is None or version != pointer.version]
        for version in old:
            self.manifests.pop((table, version), None)
        named = {digest for encoded in self.manifests.values() for digest in Manifest.decode(encoded).digests}
        unused = self.chunks.keys() - named - self._unnamed
        for digest in unused:
            del self.chunks[digest]
        return len(old) + len(unused)

    async def follow(self, table: str) -> AsyncIterator[Pointer]:
        """Yield the pointer now and at every change, for ever."""
        changed = self._changes.listen()
        known: Pointer | None = None
        try:
            while True:
                changed.clear()
                pointer = self.pointers.get(table)
                if pointer is not None and pointer != known:
                    known = pointer
                    yield pointer
                else:
                    await changed.wait()
        finally:
            self._changes.forget(changed)
