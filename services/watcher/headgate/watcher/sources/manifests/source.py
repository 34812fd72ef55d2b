"""Folders and files of manifests as a source: files are followed, and what a changed file changes is reported.

inotify (through `watchfiles`) is for latency; a walk that compares what `stat` says, every half minute and whenever
watching began again, is for correctness. A file that an event names is always read again, as two quick writes may
leave the same time stamp. Reading and parsing happen in a thread.

A folder that is missing takes nothing away: it is more likely an unmounted volume than a wish to serve nothing.
Before its first sight of all folders the source reports nothing at all, for the same reason.
"""

import asyncio
import logging
import os
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

from watchfiles import awatch

from headgate.common.deltas import Author
from headgate.common.errors import SettingsError
from headgate.common.resources import ALL_KINDS, JsonObject, Kinds, ObjectRef, ResourceKind
from headgate.watcher.metrics import MANIFEST_PROBLEMS
from headgate.watcher.sources import Applied, Deleted, Listed, ListPage, ReadyPage, SourceEvent
from headgate.watcher.sources.manifests.index import Change
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.reader import FileObject, FileProblem
from headgate.watcher.sources.manifests.tree import ManifestTree

RESCAN_S = 30.0
TICK_MS = 250
"""Between two looks at whether the folders themselves were replaced."""
QUIET_MS = 2
"""A change is taken once nothing else happened for this long, which is looked at as often: with 5 a change took 9 ms to
be seen, with 2 it takes 4.5, for 0.6 % of a core more."""
LONGEST_MS = 50
"""A change is taken after this time even if more are happening."""
VERSION_KEY_FILE = "manifests.key"

_log = logging.getLogger(__name__)
# It announces every change at level info, which is our own business.
logging.getLogger("watchfiles").setLevel(logging.WARNING)


class ManifestSource:
    """Objects from folders of YAML and JSON files."""

    def __init__(
        self,
        folders: Sequence[Path],
        cluster: str,
        data_dir: Path,
        *,
        kinds: Kinds = ALL_KINDS,
        rescan_s: float = RESCAN_S,
    ) -> None:
        """Prepare to read.

        Args:
            folders: where manifests are, or files; they may appear later.
            cluster: name that the objects get.
            data_dir: keeps the key of the Secrets' versions.
            kinds: what is read; an object comes after what it refers to.
            rescan_s: seconds between two walks through everything.

        Raises:
            SettingsError: the data directory cannot be used.
        """
        self._folders = [os.path.abspath(folder) for folder in folders]
        self.kinds: Sequence[ResourceKind] = kinds.readable
        versioner = Versioner(cluster, load_or_create_version_key(data_dir))
        self._tree = ManifestTree(self._folders, versioner, kinds)
        self._rescan_s = rescan_s
        self._problems: tuple[FileProblem, ...] = ()

    @property
    def heard_at(self) -> datetime:
        """Now: a disk is there or is not, and what is wrong with files is a problem of each."""
        return datetime.now(UTC)

    @property
    def away_since(self) -> None:
        """Never: see `heard_at`."""
        return None

    @property
    def problems(self) -> Sequence[FileProblem]:
        """What is wrong at present."""
        return self._problems

    def locate(self, ref: ObjectRef) -> str:
        """Return file and line of an object in force, or nothing."""
        found = self._tree.get(ref)
        return f"{found.file}:{found.line}" if found else ""

    def author_of(self, ref: ObjectRef, manifest: JsonObject) -> Author | None:
        """Name the file that an object stands in: files do not say who writes them."""
        found = self._tree.get(ref)
        return found.author if found else None

    async def events(self) -> AsyncIterator[SourceEvent]:
        """Yield a `Listed` for each kind once all folders are there, then every change."""
        while missing := await asyncio.to_thread(self._tree.missing_folders):
            self._report(missing)
            await asyncio.sleep(TICK_MS / 1000)
        begin, count = time.perf_counter(), 0
        reading = self._tree.read_first()
        try:
            while (changes := await asyncio.to_thread(next, reading, None)) is not None:
                count += len(changes)
                for event in self._as_pages(changes):
                    yield event
                for event in self._as_deletions(changes):  # what an earlier page had
                    yield event
        finally:
            self._tree.abort()
        self._report()
        _log.info(
            "read the manifests",
            extra={
                "objects": count,
                "problems": len(self._problems),
                "seconds": round(time.perf_counter() - begin, 3),
            },
        )
        for kind in self.kinds:
            yield Listed(kind, ())
        async with aclosing(self._follow()) as batches:
            async for changes in batches:
                self._report()
                for event in self._as_events(changes):
                    yield event

    def _as_pages(self, changes: list[Change]) -> Iterator[SourceEvent]:
        found: dict[tuple[ResourceKind, bool], list[FileObject]] = defaultdict(list)
        for _, after in changes:
            if after:
                found[after.kind, after.is_ready].append(after)
        for kind in self.kinds:
            if ready := found.get((kind, True)):
                yield ReadyPage(kind, ready)
            if others := found.get((kind, False)):
                yield ListPage(kind, [one.object for one in others])

    def _as_events(self, changes: list[Change]) -> Iterator[SourceEvent]:
        """What is new comes after what it refers to, what is gone before it."""
        order = {kind: position for position, kind in enumerate(self.kinds)}
        present = [change.after for change in changes if change.after]
        for one in sorted(present, key=lambda one: order[one.kind]):
            yield Applied(one.kind, one.object)
        yield from self._as_deletions(changes)

    def _as_deletions(self, changes: list[Change]) -> Iterator[SourceEvent]:
        order = {kind: position for position, kind in enumerate(self.kinds)}
        gone = [change.before for change in changes if change.before and not change.after]
        for one in sorted(gone, key=lambda one: -order[one.kind]):
            yield Deleted(one.kind, one.object)

    async def _follow(self) -> AsyncGenerator[list[Change]]:
        """Yield what changed, for ever; watching begins again whenever it broke or a folder was replaced."""
        complaint = ""
        while True:
            try:
                async with aclosing(self._watch()) as batches:
                    async for changes in batches:
                        complaint = ""
                        yield changes
            except (OSError, RuntimeError) as error:
                # As when the kernel's limit of watches is reached: then looking every second has to do.
                if str(error) != complaint:
                    complaint = str(error)
                    _log.warning("cannot watch the folders, comparing them every second", extra={"error": complaint})
                await asyncio.sleep(1)
                yield await asyncio.to_thread(self._tree.rescan)

    async def _watch(self) -> AsyncGenerator[list[Change]]:
        """Yield what changed until a folder is replaced by another of the same name."""
        watched = await asyncio.to_thread(self._tree.identify_folders)
        present = [folder for folder, identity in watched.items() if identity]
        if not present:
            await asyncio.sleep(TICK_MS / 1000)
            yield await asyncio.to_thread(self._tree.rescan)
            return
        rescanned = -self._rescan_s  # the first answer shows that watching began: what came before is looked for now
        changes = awatch(
            *present,
            watch_filter=None,
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=TICK_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        async with aclosing(changes) as batches:
            async for batch in batches:
                if time.monotonic() - rescanned >= self._rescan_s:
                    rescanned = time.monotonic()
                    yield await asyncio.to_thread(self._tree.rescan)
                if batch or self._tree.is_waiting:
                    yield await asyncio.to_thread(self._tree.look, {path for _, path in batch})
                if watched != await asyncio.to_thread(self._tree.identify_folders):
                    yield await asyncio.to_thread(self._tree.rescan)
                    return

    def _report(self, missing: Iterable[FileProblem] | None = None) -> None:
        """Log what is newly wrong, each thing once, and what is right again."""
        problems = tuple(self._tree.problems() if missing is None else missing)
        if problems == self._problems:
            return
        known, present = set(map(str, self._problems)), set(map(str, problems))
        for problem in problems:
            if str(problem) not in known:
                kept = "the last good content stays in force" if self._tree.is_kept(problem.file) else ""
                _log.warning(str(problem), extra={"reason": problem.problem.reason} | ({"kept": kept} if kept else {}))
        for text in sorted(known - present):
            _log.info("no longer wrong", extra={"problem": text})
        self._problems = problems
        MANIFEST_PROBLEMS.set(len(problems))


def load_or_create_version_key(data_dir: Path) -> bytes:
    """Return the key of the Secrets' versions, kept in the data directory with mode 0600.

    Raises:
        SettingsError: the data directory cannot be used.
    """
    path = data_dir / VERSION_KEY_FILE
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if key := path.read_bytes():
                return key[:64]
            descriptor = os.open(path, os.O_WRONLY)  # a crash between creating and writing
        with os.fdopen(descriptor, "wb") as file:
            file.write(key := secrets.token_bytes(32))
        return key
    except OSError as error:
        raise SettingsError(f"data_dir: {path} cannot be used: {error.strerror}") from error
