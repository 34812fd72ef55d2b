"""Dropping what nothing names any more in the tables' bucket, while commits go on."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from headgate.common.errors import DecodeError, StoreError
from headgate.common.snapshot import Manifest
from headgate.common.stores.collecting import NamedChunks, UnusedChunks, named_by
from headgate.common.stores.name_pages import Page
from headgate.common.stores.nats.contents import Contents
from headgate.common.stores.nats.jetstream import Stream
from headgate.common.stores.nats.keys import PREFIX, chunk_key, newest_manifests

_PURGES = 16
_PURGE_PAUSE_S = 0.03
"""Between so many purges: commits go on meanwhile, and the server rewrites a file for some of them."""


class Collector:
    """Finds chunks and pages that no table's manifest names, and drops them after a while."""

    def __init__(
        self, stream: Stream, contents: Contents, chunk_grace_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._contents = contents
        self._unused = UnusedChunks(chunk_grace_s, clock)
        self._dropping = asyncio.Lock()
        """Held while chunks are dropped: a writer that counts on one waits until it is known to be there or gone."""
        self._named = NamedChunks()
        """By key of the manifest, for one incarnation of the bucket."""
        self._incarnation = ""
        self._ours: set[str] = set()  # manifests that were committed here
        self._newest: frozenset[str] = frozenset()  # of each table, which may be others by now

    async def count_on(self, digests: Iterable[str]) -> None:
        """Keep these for now: a commit under way counts on them."""
        async with self._dropping:
            self._unused.forget(digests)

    def note_commit(self, key: str, manifest: Manifest, pages: Sequence[Page]) -> None:
        """Take in a manifest that was committed here under a key."""
        self._named.add_stored(key, manifest, pages)
        self._ours.add(key)

    async def drop_manifests(self, keys: Sequence[str]) -> None:
        """Drop these manifests."""
        for group in _groups(keys):
            await asyncio.gather(*map(self._stream.purge, group))
            await asyncio.sleep(_PURGE_PAUSE_S)

    async def drop_chunks(self) -> int:
        """Drop what has not been named for a while; return how much that was."""
        state = await self._stream.state()
        chunks = await stored_chunks(self._stream)
        await self._learn_named(state.created)
        return await self._drop(self._unused.find_idle(chunks - self._named.digests(), state.last_sequence))

    async def _learn_named(self, incarnation: str) -> None:
        """Know of every manifest which chunks it names; each that another one committed is read once."""
        if incarnation != self._incarnation:
            self._incarnation, self._named = incarnation, NamedChunks()
        before = set(self._named.manifests)
        keys = await self._stream.subjects(f"{PREFIX}.manifest.>")
        self._named.drop(before - keys)
        self._ours &= keys
        replaceable, self._newest = self._newest, newest_manifests(keys)
        for key in (keys - self._named.manifests) | ((keys & (replaceable | self._newest)) - self._ours):
            if (stored := await self._stream.last(key)) is None:
                continue
            try:
                self._named.add(key, named_by(stored.data))
            except DecodeError as error:  # it may be of a later release, and name chunks
                raise StoreError(f"no chunk is dropped while {key} cannot be read: {error}") from error
        lacking = self._named.lacking()
        for page, content in zip(lacking, await self._contents.find(lacking), strict=True):
            self._named.add_page(page, content)

    async def _drop(self, idle: Sequence[str]) -> int:
        dropped = 0
        for group in _groups(idle):
            async with self._dropping:
                digests = self._unused.still_idle(group)
                dropped += sum(await asyncio.gather(*map(self._purge_chunk, digests)))
                self._unused.forget(digests)
            await asyncio.sleep(_PURGE_PAUSE_S)
        return dropped

    async def _purge_chunk(self, digest: str) -> int:
        """Drop a chunk, unless another table's writer has written it again since it was found unused."""
        return await self._stream.purge(chunk_key(digest), before=self._unused.written_before(digest) + 1)


async def stored_chunks(stream: Stream) -> set[str]:
    """Return the digests of all chunks and pages that the bucket has."""
    return {subject.rsplit(".", 1)[1] for subject in await stream.subjects(f"{PREFIX}.chunk.*")}


def _groups(items: Sequence[str]) -> Iterator[Sequence[str]]:
    return (items[start : start + _PURGES] for start in range(0, len(items), _PURGES))
