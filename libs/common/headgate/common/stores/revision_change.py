"""What a revision changes of its parent, small enough to travel with the notice of it.

A gateway that serves the parent then fetches nothing: neither the manifest, which names every chunk of the table, nor
the chunks that are new. Whoever has another table, or finds that the result is not what the writer had, reads the
revision from the store as before; so a notice is only ever a shortcut.

Rejected: sending the changed entries alone. They are smaller than their chunks, and a reader would have to put the
chunks together again to know that it has what the manifest names.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import SCHEMA, Chunk, ChunkName, Manifest, Version, compress, decompress
from headgate.common.stores.name_pages import KIND_ORDER, NamePages, place_of
from headgate.common.table import EntryKind

CHANGE_LIMIT = 48_000
"""Bytes of an encoded change; a larger one does not travel, and readers fetch what they lack. In base64 it stands in a
header of NATS, which takes 65,535 bytes of all headers together."""
CONTENTS_LIMIT = 40_000
"""Bytes of the contents that travel in it; of further chunks the names do, and readers fetch them."""
_DECODED_LIMIT = 1024 * 1024
_MOST_NAMES = 1000
"""More than fit."""


class RevisionChange(NamedTuple):
    """What a writer commits with a revision."""

    parent: Manifest
    chunks: Sequence[Chunk]
    """Those that are new, and not stored yet."""
    stored: Sequence[ChunkName] = ()
    """Others that are new."""
    gone: Sequence[ChunkName] | None = None
    """Those of the parent that are not there any more; None: they are looked for."""


class CarriedChunk(NamedTuple):
    """A chunk as it travels."""

    name: ChunkName
    stored: bytes
    """Content, compressed: what `open_chunk` takes. Empty: it is to be fetched."""


class CarriedChange(NamedTuple):
    """What a notice carries."""

    parent: Version
    head: Manifest
    """The revision's manifest without the names of its chunks."""
    gone: Sequence[tuple[EntryKind, str]]
    """Kinds and prefixes of chunks that are not there any more."""
    new: Sequence[CarriedChunk]
    chunks_digest: str
    """Of the names of all chunks of the revision, as `NamePages.digest` makes it."""

    def apply_to(self, parent: Manifest, pages: NamePages) -> Manifest | None:
        """Return the revision's manifest; None if it is not what the writer had, so that it has to be fetched.

        Args:
            parent: the manifest of the revision before.
            pages: of the table.
        """
        names = _replace(parent.chunks, self.gone, [chunk.name for chunk in self.new])
        try:
            is_same = pages.digest(names) == self.chunks_digest
        except ValueError:  # a release that orders kinds in another way wrote the parent
            return None
        if not is_same:
            return None
        return self.head.model_copy(update={"chunks": names})


class _Wire(msgspec.Struct, array_like=True):
    """The encoded form: fields are only ever added at the end."""

    parent: tuple[int, int]
    head: bytes
    gone: list[tuple[EntryKind, str]]
    new: list[tuple[EntryKind, str, str, bytes]]
    chunks_digest: str


def encode_change(
    manifest: Manifest, change: RevisionChange, stored: Sequence[bytes], pages: NamePages
) -> bytes | None:
    """Return what a notice of a revision carries; None if that is too much, or a pin or a rollout is concerned.

    Args:
        manifest: of the revision.
        change: what it is made of.
        stored: contents of `change.chunks`, compressed.
        pages: of the table.
    """
    parent = change.parent
    held = (manifest.pin, manifest.rollout, parent.pin, parent.rollout)
    if any(held) or len(change.chunks) + len(change.stored) > _MOST_NAMES:
        return None
    gone = change.gone
    if gone is None:
        after = {name.digest for name in manifest.chunks}
        gone = [name for name in parent.chunks if name.digest not in after]
    places = [(name.kind, name.prefix) for name in gone]
    new = [*(chunk.name for chunk in change.chunks), *change.stored]
    if _replace(parent.chunks, places, new) != manifest.chunks:  # as where a content moved to another prefix
        return None
    wire = _Wire(
        parent=parent.version,
        head=manifest.model_copy(update={"chunks": ()}).model_dump_json().encode(),
        gone=places,
        new=list(_carried(change, stored)),
        chunks_digest=pages.digest(manifest.chunks),
    )
    encoded = compress(msgspec.msgpack.encode(wire))
    return encoded if len(encoded) <= CHANGE_LIMIT else None


def _carried(change: RevisionChange, stored: Sequence[bytes]) -> Iterator[tuple[EntryKind, str, str, bytes]]:
    """Yield kind, prefix, digest and content of what is new, without the contents that are too much together."""
    size = 0
    for chunk, content in zip(change.chunks, stored, strict=True):
        size += len(content)
        yield chunk.kind, chunk.prefix, chunk.digest, content if size <= CONTENTS_LIMIT else b""
    for name in change.stored:
        yield name.kind, name.prefix, name.digest, b""


def decode_change(data: bytes) -> CarriedChange:
    """Read what `encode_change` wrote.

    Raises:
        DecodeError: damaged, or of another release.
    """
    try:
        wire = msgspec.msgpack.decode(decompress(data, _DECODED_LIMIT), type=_Wire)
        head = Manifest.model_validate_json(wire.head)
        new = [
            CarriedChunk(ChunkName(kind=kind, prefix=prefix, digest=digest), stored)
            for kind, prefix, digest, stored in wire.new
        ]
    except ValueError as error:
        raise DecodeError(f"the change that a notice carries cannot be read: {error}") from error
    if head.schema_version > SCHEMA:  # its manifest is refused too, and says why
        raise DecodeError(f"the change that a notice carries cannot be read: it has schema {head.schema_version}")
    parent = Version(*wire.parent)
    if head.version <= parent:  # readers go from each revision to the next
        raise DecodeError(f"the change that a notice carries cannot be read: {head.version} does not follow {parent}")
    return CarriedChange(parent, head, wire.gone, new, wire.chunks_digest)


def _replace(
    before: Iterable[ChunkName], gone: Iterable[tuple[EntryKind, str]], new: Iterable[ChunkName]
) -> tuple[ChunkName, ...]:
    """Return names in the order of a table's chunks: by kind, then by prefix."""
    names = list(before)
    arrived = {(name.kind, name.prefix): name for name in new}
    for kind, prefix in gone:
        place = bisect_left(names, (KIND_ORDER[kind], prefix), key=place_of)
        if place < len(names) and (names[place].kind, names[place].prefix) == (kind, prefix):
            if (kind, prefix) in arrived:
                names[place] = arrived.pop((kind, prefix))
            else:
                del names[place]
    for name in arrived.values():
        insort(names, name, key=place_of)
    return tuple(names)
