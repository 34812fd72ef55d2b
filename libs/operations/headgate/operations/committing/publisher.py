"""Commits images as revisions: chunks that the store lacks, then the manifest and the pointer in one compare-and-set.

Equal content is never committed twice, whichever process committed it. A new epoch is minted where the store's
pointer is missing or behind what is known to be served, or where the store says that it may have lost commits, so
that neither a lost nor a restored store moves the gateways back, and no version ever stands for two tables.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import compress
from operator import attrgetter, is_not
from typing import NamedTuple

from headgate.common.clusters import Decision
from headgate.common.deltas import LogPlace
from headgate.common.errors import Conflict, DecodeError, HistoryBroken, NotFound
from headgate.common.selection import EVERYTHING, Selection
from headgate.common.snapshot import (
    Cause,
    ChangedEntries,
    Chunk,
    ChunkName,
    Manifest,
    Pin,
    Pointer,
    Rollout,
    Version,
)
from headgate.common.stores import SnapshotStore
from headgate.common.stores.chunk_entries import changed_entries
from headgate.common.stores.reading import read_chunks
from headgate.common.stores.revision_change import RevisionChange
from headgate.common.table import EntryKind
from headgate.operations.committing.retention import Kept, Retention, expired

READ_AT_ONCE = 8
COMMITTED_ALONG = 1024 * 1024
"""Bytes of new chunks, not compressed, that the store writes in the commit itself; more are stored before it."""
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Draft:
    """A table that wants to become a revision."""

    chunks: Sequence[Chunk]
    """The chunks of the table that is served."""
    causes: tuple[Cause, ...] = ()
    cause_count: int = 0
    inputs: dict[str, int] | None = None
    log: str = ""
    """Incarnation of the log that the inputs are of."""
    last_read: LogPlace | None = None
    """The last message that was read of it."""
    selection: Selection = EVERYTHING
    pin: Pin | None = None
    rollout: Rollout | None = None
    next: Sequence[Chunk] = ()
    """The chunks of the table that the replicas of a rollout serve."""
    live: Sequence[Chunk] = ()
    """With a pin or a rollout, what would be served otherwise."""
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    """What people decided of clusters, by cluster."""
    traceparent: str | None = None

    @property
    def by_digest(self) -> dict[str, Chunk]:
        """All chunks."""
        return {chunk.digest: chunk for chunk in (*self.chunks, *self.next, *self.live)}


_name_of = attrgetter("name")


def names_of(chunks: Iterable[Chunk]) -> tuple[ChunkName, ...]:
    """Return chunks as a manifest has them."""
    return tuple(map(_name_of, chunks))


class _Difference(NamedTuple):
    """What a draft changes of the one before: little, of which nothing is looked for among thousands of chunks."""

    gone: Sequence[Chunk]
    new: Sequence[Chunk]

    @classmethod
    def of(cls, before: Sequence[Chunk], after: Sequence[Chunk]) -> "_Difference":
        """Compare two images of a table, of which the second has the same object wherever a chunk did not change."""
        gone, new = before, after
        if len(before) == len(after):
            pairs = list(compress(zip(before, after, strict=True), map(is_not, before, after)))
            gone, new = [old for old, _ in pairs], [chunk for _, chunk in pairs]
        was, now = {chunk.digest for chunk in gone}, {chunk.digest for chunk in new}
        return cls([old for old in gone if old.digest not in now], [chunk for chunk in new if chunk.digest not in was])


class TablePublisher:
    """The writing side of one table. Not safe for concurrent calls, but for `collect_garbage` beside the others."""

    def __init__(
        self,
        store: SnapshotStore,
        table: str,
        retention: Retention,
        clock: Clock = time.time,
        may_commit: Callable[[], bool] = lambda: True,
    ) -> None:
        """Prepare; `may_commit` is asked at the last moment before each commit."""
        self._may_commit = may_commit
        self._store = store
        self._table = table
        self._retention = retention
        self._kept: dict[Version, Kept] = {}
        self._clock = clock
        self._is_known = False
        self._is_verified = False
        self._pointer: Pointer | None = None
        self._manifest: Manifest | None = None
        self._served: Version | None = None
        self._outdated: Version | None = None
        """Greatest version that was made from a log that went back since."""
        self._drafted: Draft | None = None
        """The last draft, to tell what the next one changes."""
        self._committed: Manifest | None = None
        """The revision that was made of it."""

    @property
    def pointer(self) -> Pointer | None:
        """The table's pointer as far as known."""
        return self._pointer

    @property
    def version(self) -> Version | None:
        """Version of the pointer as far as known."""
        return self._pointer.version if self._pointer else None

    @property
    def manifest(self) -> Manifest | None:
        """The current revision as far as known; None if there is none, or it was lost."""
        return self._manifest

    @property
    def clusters(self) -> frozenset[str]:
        """Clusters that the published table was built from."""
        return frozenset(self._manifest.inputs) if self._manifest else frozenset()

    @property
    def served(self) -> Version | None:
        """Greatest version that is known to have been served."""
        return self._served

    @property
    def is_behind(self) -> bool:
        """Whether the pointer is missing or older than what is served."""
        return self._pointer is None or (self._served is not None and self._pointer.version < self._served)

    def observe(self, pointer: Pointer | None, served: Version | None) -> None:
        """Take in the pointer as just read, and the greatest version in heartbeats read before it."""
        if pointer != self._pointer:
            self._is_known = False
        self._move(pointer)
        self._served = max(filter(None, (served, self._served)), default=None)

    def distrust(self) -> None:
        """Read pointer and manifest again before they are used."""
        self._is_known = False

    def outdate(self) -> None:
        """Commit the next draft even if it says nothing new: what revisions were made from is an older copy by now."""
        self._outdated = max(filter(None, (self.version, self._served)), default=None)

    def _move(self, pointer: Pointer | None) -> None:
        """Take a pointer as read; one that is less than before went back."""
        self._served = max(filter(None, (self.version, self._served)), default=None)
        self._pointer = pointer

    async def read(self) -> None:
        """Read pointer and manifest.

        Raises:
            StoreUnavailable: not now.
        """
        self._move(await self._store.read_pointer(self._table))
        self._manifest = None
        if self._pointer is not None:
            try:
                self._manifest = await self._store.manifest_of(self._pointer)
            except (NotFound, DecodeError):
                self._manifest = None  # lost or damaged: what it said counts for nothing, the next revision heals it
        self._is_known = True

    async def refresh(self) -> None:
        """Read pointer and manifest again if they may have changed.

        Raises:
            StoreUnavailable: not now.
        """
        if not self._is_known:
            await self.read()

    async def publish(self, draft: Draft) -> Version | None:
        """Make a draft the current revision; return its version, or None where it is that already.

        Raises:
            Conflict: another process committed in between, or leads by now; look at the log again before
                the next attempt.
            StoreUnavailable: not now. The commit may have happened; publishing again finds out.
            TooLarge: an entry is larger than the store takes.
        """
        await self.refresh()
        difference = self._difference(draft)
        if self._is_current(draft, difference) and not self.is_behind:
            if not self._is_verified:
                await self._store.put_chunks(await self._missing(draft, difference))
                self._is_verified = True
            self._drafted = draft
            return None
        self._is_known = False
        change = await self._store_missing(draft, difference)
        manifest = await self._next(draft, difference)
        if not self._may_commit():
            raise Conflict("another one commits by now")
        try:
            self._pointer = await self._store.commit(manifest, self._pointer, change)
        except HistoryBroken:
            manifest = _placed(manifest, draft, self._new_epoch())
            self._pointer = await self._store.commit(manifest, self._pointer, change)
        self._manifest = self._committed = manifest
        self._is_known = self._is_verified = True
        self._drafted = draft
        self._kept[manifest.version] = Kept.of(manifest)
        self._served = max(filter(None, (self._served, manifest.version)))
        return manifest.version

    def _difference(self, draft: Draft) -> _Difference | None:
        """Return what a draft changes of the current revision; None where that was not made here, of the last draft.

        Also where it is pinned or rolled out: there are several images then.
        """
        current, drafted = self._manifest, self._drafted
        if current is None or current is not self._committed or drafted is None:
            return None
        if any((draft.pin, draft.rollout, current.pin, current.rollout)):
            return None
        return _Difference.of(drafted.chunks, draft.chunks)

    def _is_current(self, draft: Draft, difference: _Difference | None) -> bool:
        """Whether a draft is what the current revision is, as far as known."""
        current = self._manifest
        if current is None or current.decisions != draft.decisions:
            return False
        if difference is not None and (difference.gone or difference.new):
            return False
        if difference is None and current.chunks != names_of(draft.chunks):
            return False
        if current.selection != draft.selection or (self._outdated and current.version <= self._outdated):
            return False
        if not _is_same(current.pin, draft.pin) or not _is_same(current.rollout, draft.rollout):
            return False
        if current.rollout and current.rollout.next != names_of(draft.next):
            return False
        return current.live == names_of(draft.live) if draft.pin or draft.rollout else current.live is current.chunks

    def has_live(self, live: Sequence[Chunk]) -> bool:
        """Whether the current revision, as far as known, has this for its live table."""
        return self._manifest is not None and [name.digest for name in self._manifest.live] == [
            chunk.digest for chunk in live
        ]

    async def _store_missing(self, draft: Draft, difference: _Difference | None) -> RevisionChange | None:
        """Store what is missing; where that is little it is to be stored with the commit. Return what to announce."""
        missing, parent = await self._missing(draft, difference), self._manifest
        gone = names_of(difference.gone) if difference is not None else None
        if parent is not None and sum(len(chunk.content) for chunk in missing) <= COMMITTED_ALONG:
            return RevisionChange(parent, missing, gone=gone)
        await self._store.put_chunks(missing)
        return RevisionChange(parent, (), names_of(missing), gone) if parent is not None else None

    async def _missing(self, draft: Draft, difference: _Difference | None) -> list[Chunk]:
        """Return the chunks that the current revision does not name; once after the start also those that it lost.

        Other chunks are written though they may be there: only the current revision keeps them from being
        collected, which another table's translator may be about to do.
        """
        if difference is not None and self._is_verified:
            return list(difference.new)
        chunks, named = draft.by_digest, self._named()
        missing = chunks.keys() - named
        if not self._is_verified and (there := chunks.keys() & named):
            missing |= await self._store.missing(there)
        return [chunk for digest, chunk in chunks.items() if digest in missing] if missing else []

    def _named(self) -> Set[str]:
        """Return the digests that the current revision names."""
        if self._manifest is None:
            return frozenset()
        return self._manifest.digests

    async def _next(self, draft: Draft, difference: _Difference | None) -> Manifest:
        causes, parent = self._news(draft), self._manifest
        if difference is not None:
            changed = changed_entries(difference.gone, difference.new)
        else:
            changed = await self._changed(parent.chunks if parent else (), draft.chunks)
        pin, rollout, version = draft.pin, draft.rollout, self._next_version()
        if pin is not None or rollout is not None:
            waiting = await self._changed(parent.live if parent else (), draft.live)
            beside = {"live": names_of(draft.live), "waiting": waiting}
            pin = pin and pin.model_copy(update=beside)
            beside["next"] = names_of(draft.next)
            rollout = rollout and rollout.model_copy(update=beside).placed(version)
        return Manifest(
            table=self._table,
            version=version,
            parent=self._pointer.version if self._pointer else None,
            created_at=datetime.fromtimestamp(self._clock(), UTC),
            causes=causes,
            cause_count=draft.cause_count - len(draft.causes) + len(causes),
            inputs=draft.inputs or {},
            log=draft.log,
            last_read=draft.last_read,
            selection=draft.selection,
            changed=changed,
            pin=pin,
            rollout=rollout,
            decisions=dict(draft.decisions),
            chunks=names_of(draft.chunks),
            traceparent=draft.traceparent,
        )

    def _news(self, draft: Draft) -> tuple[Cause, ...]:
        """The causes that no earlier revision had; another translator may have been first."""
        if self._manifest is None or self._manifest.log != draft.log:
            return draft.causes
        known = self._manifest.inputs
        return tuple(each for each in draft.causes if not 0 < each.sequence <= known.get(each.cluster, 0))

    async def _changed(self, before: Sequence[ChunkName], after: Sequence[Chunk]) -> dict[EntryKind, ChangedEntries]:
        """Tell what changes; what is not at hand of the parent, as after a restart, is read from the store."""
        kept = {name.digest for name in before} & {chunk.digest for chunk in after}
        gone = [name for name in before if name.digest not in kept]
        contents = self._drafted.by_digest if self._drafted is not None else {}
        old = [contents[name.digest] for name in gone if name.digest in contents]
        # What the store lost is taken for nothing, so that its entries count as new.
        with suppress(NotFound, DecodeError):
            old += await read_chunks(self._store, (name for name in gone if name.digest not in contents))
        return changed_entries(old, [chunk for chunk in after if chunk.digest not in kept])

    def _next_version(self) -> Version:
        if self._pointer is None or self.is_behind:
            return self._new_epoch()
        return Version(self._pointer.version.epoch, self._pointer.version.revision + 1)

    def _new_epoch(self) -> Version:
        known = max((version.epoch for version in (self.version, self._served) if version), default=0)
        return Version(max(int(self._clock()), known + 1), 1)

    async def collect_garbage(self) -> int:
        """Drop old revisions; return how many things were dropped. Commits go on meanwhile."""
        await self._learn_kept(await self._store.versions(self._table))
        now = datetime.fromtimestamp(self._clock(), UTC)
        old = expired(self._kept.values(), self._retention, now)
        older = self._manifest.older if self._manifest else frozenset()
        return await self._store.collect_garbage(self._table, [one for one in old if one not in older])

    async def _learn_kept(self, versions: Sequence[Version]) -> None:
        """Know of every kept revision what retention asks for; each that another one committed is read once."""
        there, newest = set(versions), max(versions, default=Version(0, 0))
        # What was committed since the store was asked is there too.
        self._kept = {version: kept for version, kept in self._kept.items() if version in there or version > newest}
        unknown = [version for version in versions if version not in self._kept]
        for start in range(0, len(unknown), READ_AT_ONCE):
            await asyncio.gather(*map(self._learn, unknown[start : start + READ_AT_ONCE]))

    async def _learn(self, version: Version) -> None:
        # One that another translator collected, or that is of a later release, is not judged.
        with suppress(NotFound, DecodeError):
            self._kept[version] = Kept.of(await self._store.get_manifest_head(self._table, version))


def _is_same(now: Pin | Rollout | None, then: Pin | Rollout | None) -> bool:
    if now is None or then is None:
        return now is then
    return now.is_same(then)  # type: ignore[arg-type]


def _placed(manifest: Manifest, draft: Draft, version: Version) -> Manifest:
    """Return a manifest as another revision than it was to be."""
    rollout = manifest.rollout
    if rollout is not None and draft.rollout is not None:
        drafted = {"target": draft.rollout.target, "begun": draft.rollout.begun}
        rollout = rollout.model_copy(update=drafted).placed(version)
    return manifest.model_copy(update={"version": version, "rollout": rollout})
