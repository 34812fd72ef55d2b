"""The encoded entries of chunks, and in which two images of a table differ, without decoding more than their keys."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import chain

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import MAX_NAMES, ChangedEntries, Chunk
from headgate.common.table import ENTRIES, EntryKind, HostKey


def entry_contents(content: bytes) -> dict[str, bytes]:
    """Return the encoded entries of a chunk by their keys, without reading more of them than that.

    Raises:
        DecodeError: it is no JSON array of objects.
    """
    return {_key_of(raw): bytes(raw) for raw in _split(content)}


def changed_entries(before: Iterable[Chunk], after: Iterable[Chunk]) -> dict[EntryKind, ChangedEntries]:
    """Return which entries differ between two images of a table; looks into the chunks that differ only."""
    was, now = {chunk.digest: chunk for chunk in before}, {chunk.digest: chunk for chunk in after}
    gone = _by_kind(chunk for digest, chunk in was.items() if digest not in now)
    new = _by_kind(chunk for digest, chunk in now.items() if digest not in was)
    changed = {}
    for kind in ENTRIES:
        if entries := _differing(gone[kind], new[kind]):
            # Of the entries of chunks that changed few changed themselves: only their keys are read.
            keys = set(map(_key_of, entries))
            changed[kind] = ChangedEntries(count=len(keys), names=tuple(nsmallest(MAX_NAMES, keys)))
    return changed


def _by_kind(chunks: Iterable[Chunk]) -> Mapping[EntryKind, list[Chunk]]:
    found: dict[EntryKind, list[Chunk]] = {kind: [] for kind in ENTRIES}
    for chunk in chunks:
        found[chunk.kind].append(chunk)
    return found


def _differing(gone: Sequence[Chunk], new: Sequence[Chunk]) -> Collection[bytes | msgspec.Raw]:
    """Return the encoded entries that are in some chunks or in others, and not in both."""
    if not gone or not new:  # a whole table, as after a start: nothing is compared
        return [raw for chunk in gone or new for raw in _split(chunk.content)]
    old, made = (set(map(bytes, chain.from_iterable(_split(chunk.content) for chunk in side))) for side in (gone, new))
    return old ^ made


def _split(content: bytes) -> list[msgspec.Raw]:
    try:
        return _decode_raw(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecodeError(f"a chunk cannot be read: {error}") from error


class _Keys(msgspec.Struct):
    key: str = ""
    host: str = ""
    listeners: tuple[str, ...] = ()


_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_keys = msgspec.json.Decoder(_Keys).decode


def _key_of(raw: bytes | msgspec.Raw) -> str:
    try:
        keys = _decode_keys(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecodeError(f"a chunk cannot be read: {error}") from error
    # Virtual hosts alone have no key among their fields; listeners and challenges have a host besides.
    return keys.key or str(HostKey(keys.host, keys.listeners))
