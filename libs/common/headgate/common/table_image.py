"""The image of a table: its entries, encoded, and the chunks that they make."""

from collections.abc import Callable, Iterable, Iterator

from headgate.common.snapshot import Chunk, digest_of
from headgate.common.table import ENTRIES, EntryKind, HostKey, TableEntry, entry_key, entry_kind
from headgate.common.table.shards import BY_NAME, OF_ALL, is_of_all, name_bits
from headgate.common.trie import Trie, key_bits


class TableImage:
    """The entries of a table and their chunks, kept up to date change by change.

    Only leaves that changed are encoded again by `chunks`.

    Args:
        entries: to begin with.
        is_for_shards: whether hosts are placed by their names, so that gateways of a shard need not fetch the chunks of
            the others. Gateways of earlier releases read both.
    """

    def __init__(self, entries: Iterable[TableEntry] = (), *, is_for_shards: bool = False) -> None:
        self.is_for_shards = is_for_shards
        self._tries: dict[EntryKind, Trie[Chunk]] = {kind: Trie(_maker(kind)) for kind in ENTRIES}
        if is_for_shards:
            self._tries["hosts"] = Trie(_maker("hosts"), _place_host, (BY_NAME, OF_ALL))
        for entry in entries:
            self.put(entry)

    def put(self, entry: TableEntry) -> bool:
        """Add an entry, or replace the one with its key; return whether anything changed by it."""
        return self.put_encoded(entry_kind(entry), entry_key(entry), encode_entry(entry))

    def put_encoded(self, kind: EntryKind, key: str, content: bytes) -> bool:
        """Put an entry as `entry_contents` gives it, without reading it."""
        return self._tries[kind].put(key, content)

    def discard(self, kind: EntryKind, key: str) -> bool:
        """Remove an entry; return whether it was there."""
        return self._tries[kind].discard(key)

    def get(self, kind: EntryKind, key: str) -> bytes | None:
        """Return an entry, encoded; None where there is none."""
        return self._tries[kind].get(key)

    def keys(self, kind: EntryKind) -> Iterator[str]:
        """Yield the keys of all entries of a kind, in no particular order."""
        return self._tries[kind].keys()

    def copy(self) -> "TableImage":
        """Return one with the same entries, which it shares."""
        image = TableImage(is_for_shards=self.is_for_shards)
        image._tries = {kind: trie.copy() for kind, trie in self._tries.items()}
        return image

    def chunks(self) -> list[Chunk]:
        """Return all chunks in a fixed order: by kind, then by prefix. Empty leaves have none."""
        return [chunk for trie in self._tries.values() for chunk in trie.leaves()]


def _place_host(key: str) -> str:
    host = HostKey.read(key).host
    if is_of_all(host):
        return OF_ALL + key_bits(key)
    # Virtual hosts of one name on different listeners are apart behind the bits that they have in common.
    return BY_NAME + name_bits(host) + key_bits(key)


def _maker(kind: EntryKind) -> Callable[[str, bytes], Chunk]:
    return lambda prefix, content: Chunk(kind, prefix, digest_of(content), content)


def encode_entry(entry: TableEntry) -> bytes:
    """Canonical JSON: fields in the order of the model, absent where they equal the default."""
    # As `model_dump_json`, which would make text of the bytes.
    return entry.__pydantic_serializer__.to_json(entry, exclude_defaults=True)
