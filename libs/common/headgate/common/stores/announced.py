"""Revisions as their notices bring them, for a reader that has the revision before."""

import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from headgate.common.errors import DecodeError
from headgate.common.snapshot import ChunkName, Manifest, Pointer, Version, open_chunk
from headgate.common.stores.name_pages import NamePages
from headgate.common.stores.revision_change import CarriedChange, decode_change

_log = logging.getLogger(__name__)

FetchChunks = Callable[[Sequence[ChunkName]], Awaitable[Sequence[bytes]]]
"""Returns chunks as they are stored."""
CHANGES_KEPT = 16
"""Changes of each table at hand; a reader that is further behind fetches."""


class AnnouncedRevisions:
    """The latest changes of each table that is followed, and the manifest that was read of it last."""

    def __init__(self) -> None:
        self._heard: dict[str, deque[tuple[Pointer, bytes]]] = {}
        """By table, what notices carried since somebody asked: a writer hears its own too, and never asks."""
        self._changes: dict[str, dict[Version, tuple[str, CarriedChange]]] = {}
        """By table and version of the parent: the digest of the revision's manifest, and what changed."""
        self._read: dict[str, Manifest] = {}
        self._pages: dict[str, NamePages] = defaultdict(NamePages)

    def hear(self, pointer: Pointer, data: bytes) -> None:
        """Take the change that a notice carries."""
        self._heard.setdefault(pointer.table, deque(maxlen=CHANGES_KEPT)).append((pointer, data))

    def _look(self, table: str) -> dict[Version, tuple[str, CarriedChange]]:
        """Return the changes of a table at hand; one that cannot be read is as good as none."""
        changes, heard = self._changes.setdefault(table, {}), self._heard.get(table, ())
        while heard:
            pointer, data = heard.popleft()
            try:
                change = decode_change(data)
            except DecodeError as error:
                _log.debug("a notice's change is not used", extra={"table": table, "reason": str(error)})
                continue
            changes[change.parent] = pointer.manifest_digest, change
        while len(changes) > CHANGES_KEPT:
            del changes[next(iter(changes))]
        return changes

    def note(self, manifest: Manifest) -> Manifest:
        """Remember a manifest that was read, on which later changes build; returns it."""
        self._read[manifest.table] = manifest
        return manifest

    def manifest_of(self, pointer: Pointer) -> Manifest | None:
        """Return the manifest that a pointer names, as far as notices brought it; None if it has to be read."""
        found, changes = self._read.get(pointer.table), self._look(pointer.table)
        digest = ""
        while found is not None and found.version < pointer.version:
            digest, change = changes.get(found.version, ("", None))
            found = change.apply_to(found, self._pages[pointer.table]) if change is not None else None
        is_named = found is not None and found.version == pointer.version and digest == pointer.manifest_digest
        return self.note(found) if found is not None and is_named else None

    async def chunks(self, names: Sequence[ChunkName], fetch: FetchChunks) -> Sequence[bytes]:
        """Return chunks as they are stored: those of such manifests that are at hand, and what else is fetched."""
        at_hand = {name.digest: self.chunk(name) for name in names} if self._changes else {}
        lacking = [name for name in names if not at_hand.get(name.digest)]
        if len(lacking) == len(names):
            return await fetch(names)
        fetched = iter(await fetch(lacking) if lacking else ())
        return [at_hand[name.digest] or next(fetched) for name in names]

    def chunk(self, name: ChunkName) -> bytes | None:
        """Return a chunk of such a manifest as it is stored, verified; None if it has to be read."""
        for changes in self._changes.values():
            for _, change in changes.values():
                for chunk in change.new:
                    if chunk.stored and chunk.name.digest == name.digest:
                        with suppress(DecodeError):  # what the store has may be whole
                            open_chunk(name, chunk.stored)
                            return chunk.stored
        return None
