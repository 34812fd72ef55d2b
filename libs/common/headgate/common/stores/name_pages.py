"""The names of a large table's chunks in pages, so that a revision costs what it changes and not what it has.

A page has the names of the chunks below one node of the table's tries. It is stored as chunks are, and named by the
SHA-256 of its content; a stored manifest names the pages in place of thousands of chunks. One changed entry changes one
chunk and one page. How names are spread over pages depends on the names alone, so that equal tables have equal pages.

Rejected: manifests that say what they change of an earlier one. Each would need those before it for as long as it is
kept, and a reader of one would read all of them.
"""

import hashlib
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import ChunkName, decompress, digest_of
from headgate.common.table import ENTRIES, EntryKind

PAGED_FROM = 128
"""A table of more chunks has pages; the names of a smaller one stand in its manifest."""
PAGE_NAMES = 64
"""Names that a page has on average, at most. A change writes its page and the digests of all pages, which is least
where a page has about as many names as there are pages."""
_PAGE_LIMIT = 16 * 1024 * 1024
KIND_ORDER = {kind: position for position, kind in enumerate(ENTRIES)}
_DISORDER = "names of chunks are not in the order of a table"
_Place = tuple[int, str]


class Page(NamedTuple):
    """Names that stand together, in order."""

    digest: str
    """SHA-256 of `content`, hex."""
    content: bytes
    """JSON: the kind, then prefix and digest of each name."""
    names: tuple[ChunkName, ...]

    @classmethod
    def of(cls, kind: EntryKind, names: tuple[ChunkName, ...]) -> "Page":
        """Make a page of names of one kind.

        Raises:
            ValueError: one is of another kind.
        """
        if any(name.kind != kind for name in names):
            raise ValueError(_DISORDER)
        content = msgspec.json.encode(_Wire(kind, [(name.prefix, name.digest) for name in names]))
        return cls(hashlib.sha256(content).hexdigest(), content, names)


class _Wire(msgspec.Struct, array_like=True):
    kind: EntryKind
    names: list[tuple[str, str]]


_decode_wire = msgspec.json.Decoder(_Wire).decode


def place_of(name: ChunkName) -> _Place:
    """Return what names of a table are sorted by: their kind, then their prefix."""
    return KIND_ORDER[name.kind], name.prefix


class NamePages:
    """Spreads names over pages, and keeps those of the last time: most are the same the next time."""

    def __init__(self) -> None:
        self._pages: dict[_Place, Page] = {}

    def split(self, names: tuple[ChunkName, ...]) -> list[Page]:
        """Return the pages of a table's names, in order.

        Raises:
            ValueError: the names are not sorted by `place_of`.
        """
        pages: dict[_Place, Page] = {}
        for kind, order in KIND_ORDER.items():
            start = bisect_left(names, (order, ""), key=place_of)
            end = bisect_left(names, (order + 1, ""), lo=start, key=place_of)
            bits = ((end - start) // PAGE_NAMES).bit_length()
            while start < end:
                node = order, names[start].prefix[:bits]
                page = self._known(names, node, start, end, bits)
                if page is None:
                    below = bisect_right(names, node, lo=start, hi=end, key=lambda name: _node_of(name, bits))
                    page = Page.of(kind, names[start:below])
                pages[node] = page
                start += len(page.names)
        if sum(len(page.names) for page in pages.values()) != len(names):
            raise ValueError(_DISORDER)
        self._pages = pages
        return list(pages.values())

    def _known(self, names: tuple[ChunkName, ...], node: _Place, start: int, end: int, bits: int) -> Page | None:
        """Return the page of a node as it was the last time, if it is the same now."""
        page = self._pages.get(node)
        if page is None:
            return None
        after = start + len(page.names)
        # Names that did not change are the same objects, so that this compares addresses.
        is_same = names[start:after] == page.names and (after >= end or _node_of(names[after], bits) != node)
        return page if is_same else None

    def digest(self, names: tuple[ChunkName, ...]) -> str:
        """Return one SHA-256 for all names, hex."""
        return digest_of("".join([page.digest for page in self.split(names)]).encode())


def _node_of(name: ChunkName, bits: int) -> _Place:
    return KIND_ORDER[name.kind], name.prefix[:bits]


def read_page(digest: str, stored: bytes) -> Page:
    """Decompress, verify and read a stored page.

    Raises:
        DecodeError: damaged, or not the content that its name promises.
    """
    content = decompress(stored, _PAGE_LIMIT)
    if digest_of(content) != digest:
        raise DecodeError(f"page {digest[:12]} of a manifest holds other content than its name promises")
    try:
        wire = _decode_wire(content)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"page {digest[:12]} of a manifest cannot be read: {error}") from error
    names = tuple([ChunkName(kind=wire.kind, prefix=prefix, digest=each) for prefix, each in wire.names])
    return Page(digest, content, names)
