"""Manifests as stores keep them: that of a large table names pages, in which the names of its chunks stand."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import MANIFEST_LIMIT, Manifest, compress, decompress
from headgate.common.stores.name_pages import PAGED_FROM, NamePages, Page, read_page

_AT_ONCE = 16
"""Pages asked for at a time."""


class StoredManifest(NamedTuple):
    """A manifest as it is stored."""

    content: bytes
    """Compressed."""
    pages: Sequence[Page] = ()
    """Those that it names."""

    def without(self, digests: Collection[str]) -> "StoredManifest":
        """Return it with those of the pages alone that are not among some."""
        return self._replace(pages=[page for page in self.pages if page.digest not in digests])


class _Wrapped(msgspec.Struct):
    pages: list[str] = []
    head: msgspec.Raw = msgspec.Raw(b"")


_decode_wrapped = msgspec.json.Decoder(_Wrapped).decode


class PagedManifests:
    """Writes and reads manifests of any size.

    Args:
        fetch: returns stored pages by their digests; raises NotFound, or StoreUnavailable.
    """

    def __init__(self, fetch: Callable[[Sequence[str]], Awaitable[Sequence[bytes]]]) -> None:
        self._fetch = fetch
        self._tables: dict[str, NamePages] = {}
        self._read: dict[str, Page] = {}
        """Pages of the manifest that was read last, by digest: the next one has most of them too."""

    def pages_of(self, table: str) -> NamePages:
        """Return what spreads the names of a table."""
        return self._tables.setdefault(table, NamePages())

    def encode(self, manifest: Manifest) -> StoredManifest:
        """Return what is to be stored of a manifest: its pages first."""
        if len(manifest.chunks) <= PAGED_FROM:
            return StoredManifest(manifest.encode())
        pages = self.pages_of(manifest.table).split(manifest.chunks)
        head = manifest.model_copy(update={"chunks": ()}).model_dump_json().encode()
        named = msgspec.json.encode([page.digest for page in pages])
        return StoredManifest(compress(b'{"pages":%b,"head":%b}' % (named, head), level=1), pages)

    async def decode(self, content: bytes) -> Manifest:
        """Read a stored manifest.

        Raises:
            DecodeError: it or a page of it is damaged, or of a schema that this release does not know.
            NotFound: a page is missing.
            StoreUnavailable: not now.
        """
        head, digests = read_head(content)
        if not digests:
            return head
        before = self._read  # others may be read meanwhile
        missing = [digest for digest in digests if digest not in before]
        fetched: list[bytes] = []
        for start in range(0, len(missing), _AT_ONCE):
            fetched += await self._fetch(missing[start : start + _AT_ONCE])
        known = before | {digest: read_page(digest, stored) for digest, stored in zip(missing, fetched, strict=True)}
        pages = self._read = {digest: known[digest] for digest in digests}
        names = chain.from_iterable(page.names for page in pages.values())
        return head.model_copy(update={"chunks": tuple(names)})


def read_head(content: bytes) -> tuple[Manifest, Sequence[str]]:
    """Read a stored manifest: all of it, or all but the names of its chunks and the digests of their pages.

    Raises:
        DecodeError: damaged, or of a schema that this release does not know.
    """
    plain = decompress(content, MANIFEST_LIMIT)
    try:
        wrapped = _decode_wrapped(plain)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"a manifest cannot be read: {error}") from error
    return Manifest.read(bytes(wrapped.head) if wrapped.pages else plain), wrapped.pages
