"""The encoded entries of chunks, and in which two images of a table differ, without decoding more than their keys."""

from collections.abc import Iterable

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import MAX_NAMES, ChangedEntries, Chunk
from headgate.common.table import ENTRIES, EntryKind, HostKey


def entry_contents(content: bytes) -> dict[str, bytes]:
    """Return the encoded entries of a chunk by their keys, without reading more of them than that.

    Raises:
        DecodeError: it is no JSON array of objects.
    """
    return {_key_of(raw): raw for raw in _split(content)}


def changed_entries(before: Iterable[Chunk], after: Iterable[Chunk]) -> dict[EntryKind, ChangedEntries]:
    """Return which entries differ between two images of a table; looks into the chunks that differ only."""
    differing: dict[EntryKind, set[bytes]] = {kind: set() for kind in ENTRIES}
    was, now = {chunk.digest: chunk for chunk in before}, {chunk.digest: chunk for chunk in after}
    for digest in was.keys() ^ now.keys():
        chunk = was.get(digest) or now[digest]
        differing[chunk.kind] ^= set(_split(chunk.content))
    # Of the entries of chunks that changed few changed themselves: only their keys are read.
    keys = {kind: sorted(set(map(_key_of, entries))) for kind, entries in differing.items() if entries}
    return {kind: ChangedEntries(count=len(each), names=tuple(each[:MAX_NAMES])) for kind, each in keys.items()}


def _split(content: bytes) -> list[bytes]:
    try:
        return list(map(bytes, _decode_raw(content)))
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecodeError(f"a chunk cannot be read: {error}") from error


class _Keys(msgspec.Struct):
    key: str = ""
    host: str = ""
    listeners: tuple[str, ...] = ()


_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_keys = msgspec.json.Decoder(_Keys).decode


def _key_of(raw: bytes) -> str:
    try:
        keys = _decode_keys(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecodeError(f"a chunk cannot be read: {error}") from error
    # Virtual hosts alone have no key among their fields; listeners and challenges have a host besides.
    return keys.key or str(HostKey(keys.host, keys.listeners))
