"""Which chunks may go: those that no manifest has named for a while.

A writer stores chunks first and names them afterwards, so one that was just found unused may be about to be used.
Several tables share chunks, and each has a writer of its own, which collects what all of them leave behind. So writers
count on nothing but what the current revision of their own table names, and write everything else again; and what was
written again since a chunk was found unused is not dropped for that finding.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import chain
from typing import NamedTuple

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import MANIFEST_LIMIT, SCHEMA, Manifest, decompress
from headgate.common.stores.name_pages import Page, read_page

_log = logging.getLogger(__name__)

CHUNK_GRACE_S = 300.0
"""An unused chunk is dropped when it was already found unused this long ago: a commit under way may count on it."""


class UnusedChunks:
    """Remembers since when chunks are unused, as far as this process has seen."""

    def __init__(self, grace_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._grace_s = grace_s
        self._clock = clock
        self._since: dict[str, tuple[float, int]] = {}

    def forget(self, digests: Iterable[str]) -> None:
        """Begin again with these chunks: a commit under way counts on them, or they were dropped."""
        for digest in digests:
            self._since.pop(digest, None)

    def still_idle(self, digests: Iterable[str]) -> list[str]:
        """Return which of the chunks that were found idle no writer has counted on since."""
        return [digest for digest in digests if digest in self._since]

    def find_idle(self, unused: set[str], written: int = 0) -> list[str]:
        """Take in which chunks are unused now, and return those that have been for the whole grace period.

        Args:
            unused: their digests.
            written: sequence of the store's last write before it was asked for them, if it counts its writes.
        """
        now = self._clock()
        self._since = {digest: self._since.get(digest, (now, written)) for digest in unused}
        return [digest for digest, (since, _) in self._since.items() if now - since >= self._grace_s]

    def written_before(self, digest: str) -> int:
        """Return the `written` of when a chunk was first found unused."""
        return self._since[digest][1]


class _Name(msgspec.Struct):
    digest: str


class _Held(msgspec.Struct):
    live: list[_Name] = []
    next: list[_Name] = []


class _Manifest(msgspec.Struct):
    chunks: list[_Name]
    schema_version: int = SCHEMA
    pin: _Held | None = None
    rollout: _Held | None = None


class _Wrapped(msgspec.Struct):
    pages: list[str] = []
    head: _Manifest | None = None
    """Present where there are pages."""


class Named(NamedTuple):
    """What a stored manifest names."""

    chunks: Iterable[str]
    """Digests."""
    pages: Sequence[str] = ()
    """Digests of the pages that have further names."""


_read_wrapped = msgspec.json.Decoder(_Wrapped).decode
_read_names = msgspec.json.Decoder(_Manifest).decode


def named_by(manifest: bytes) -> Named:
    """Return the digests that a stored manifest names, without reading the rest of it.

    Raises:
        DecodeError: it is damaged, or of a later release and may name more.
    """
    try:
        content = decompress(manifest, MANIFEST_LIMIT)
        wrapped = _read_wrapped(content)
        read = wrapped.head or _read_names(content)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"a manifest cannot be read: {error}") from error
    if read.schema_version > SCHEMA:
        raise DecodeError(f"a manifest has schema {read.schema_version}, this release reads up to {SCHEMA}")
    held = [names for each in (read.pin, read.rollout) if each is not None for names in (each.live, each.next)]
    return Named([name.digest for name in chain(read.chunks, *held)], wrapped.pages)


class NamedChunks:
    """Which chunks manifests name, by manifest: each is looked into once, and each page.

    Digests are kept once, however many manifests have them. Rejected: counting the uses of each chunk. Dropping the
    manifests of half a minute then took 110 ms at 10,000 routes, in one go; joining what is left of them takes 3.
    """

    def __init__(self) -> None:
        self._named: dict[str, Named] = {}
        self._pages: dict[str, tuple[str, ...]] = {}
        """Digests that stand in a page, by that of the page."""

    @property
    def manifests(self) -> Set[str]:
        """Keys of the manifests that are known."""
        return self._named.keys()

    def digests(self) -> set[str]:
        """Return all chunks that a manifest names, and all pages; what stands in those that are lacking is left out."""
        pages = set().union(*(named.pages for named in self._named.values()))
        self._pages = {page: self._pages[page] for page in pages if page in self._pages}
        return pages.union(*(named.chunks for named in self._named.values()), *self._pages.values())

    def lacking(self) -> list[str]:
        """Return the pages that manifests name and that have not been added."""
        named = chain.from_iterable(named.pages for named in self._named.values())
        return list(dict.fromkeys(page for page in named if page not in self._pages))

    def add_page(self, page: str, stored: bytes | None) -> None:
        """Take in a page as it is stored, if it is there and whole; else it is asked for again the next time.

        Nobody can read a manifest that lacks a page, and what that named goes. But the same page may be stored again.
        """
        try:
            if stored is not None:
                self._add_page(page, [name.digest for name in read_page(page, stored).names])
        except DecodeError as error:  # damaged: what a later release writes is known by its manifest
            _log.error("a page of a manifest cannot be read", extra={"reason": str(error)})

    def _add_page(self, page: str, digests: Iterable[str]) -> None:
        self._pages[page] = tuple(map(sys.intern, digests))

    def add(self, key: str, named: Named) -> None:
        """Take in a manifest, in place of another one that had its key."""
        self._named[key] = Named(tuple(map(sys.intern, named.chunks)), tuple(map(sys.intern, named.pages)))

    def add_stored(self, key: str, manifest: Manifest, pages: Sequence[Page]) -> None:
        """Take in a manifest that was just stored, with its pages."""
        for page in pages:
            if page.digest not in self._pages:
                self._add_page(page.digest, [name.digest for name in page.names])
        self.add(key, Named(manifest.digests_beside if pages else manifest.digests, [page.digest for page in pages]))

    def drop(self, keys: Iterable[str]) -> None:
        """Forget these manifests."""
        for key in keys:
            self._named.pop(key, None)
