"""Snapshots: versioned, content-addressed images of a table.

The entries of each kind are spread over the leaves of a binary trie by the SHA-256 of their key; a leaf that grows
past `LEAF_ENTRIES` splits. Each leaf is one chunk: canonical JSON, named by the SHA-256 of those bytes, stored
compressed. Which leaf an entry is in depends on the set of keys alone, so equal tables have equal digests whoever
built them and in whatever order; and one changed entry changes one chunk.

Rejected: a fixed number of buckets (a growing table would move every entry at each doubling), and naming a chunk by its
compressed bytes (two versions of the compressor would disagree about equal tables).

A manifest names the chunks of one revision. Readers accept only a greater (epoch, revision).
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec
import zstandard
from pydantic import BaseModel, ConfigDict, TypeAdapter

from headgate.common.errors import DecodeError
from headgate.common.table import (
    ENTRY_KINDS,
    ENTRY_TYPES,
    EntryKind,
    TableEntry,
    entry_key,
    entry_kind,
)

LEAF_ENTRIES = 64
"""A leaf splits above this. At about 300 bytes an entry a chunk is then some 10 KB, a few KB compressed."""
CHUNK_LIMIT = 512 * 1024
"""Bytes of a chunk before compression; a leaf above it splits too. NATS takes 1 MiB messages by default."""
ENTRY_LIMIT = 4 * 1024 * 1024
"""Bytes that a chunk of one single entry may have, so that a damaged chunk cannot fill a reader's memory."""
SCHEMA = 4
"""Version of the table vocabulary and of the manifest; a reader refuses a manifest of a greater one."""
MAX_CAUSES = 100
MAX_NAMES = 100


class Version(NamedTuple):
    """Position of a snapshot; greater is newer."""

    epoch: int
    revision: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.revision}"


class Chunk(NamedTuple):
    """One leaf, encoded."""

    kind: EntryKind
    prefix: str
    """Bits of the keys' SHA-256 that lead to the leaf: `0110`; empty for the root."""
    digest: str
    """SHA-256 of `content`, hex."""
    content: bytes


class ChunkName(BaseModel):
    """A chunk as a manifest names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: EntryKind
    prefix: str
    digest: str


class Cause(BaseModel):
    """A change that led to a revision: of an object, or of the table itself by a person."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cluster: str
    kind: str
    """`TABLE_KIND` for what a person did to the table."""
    namespace: str
    name: str
    operation: str
    """`apply` and `delete` of objects; `rollback` and `unpin` of tables."""
    sequence: int
    """Of the delta in the log."""
    by: str = ""
    """Who did it, as far as is known: the object's last field manager, the file that it stands in, or a person."""
    at: datetime | None = None
    """When they did it, as the API server noted; else when the watcher saw it."""
    note: str = ""
    """What a person said about it."""


TABLE_KIND = "Table"
_ENDPOINT_KINDS = frozenset({"EndpointSlice", "Endpoints"})


class ChangedEntries(BaseModel):
    """The entries of one kind that a revision put or discarded, against its parent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int
    names: tuple[str, ...]
    """Their keys, sorted; at most `MAX_NAMES`."""


class Pin(BaseModel):
    """That a table is kept at an old revision, and what would be served otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Version
    """The old revision."""
    since: datetime
    by: str = ""
    reason: str = ""
    is_frozen: bool = False
    """Its endpoints are those of the old revision too; else they are those of today."""
    live: tuple[ChunkName, ...] = ()
    """The table as it would be without the pin, always up to date, so that unpinning needs nobody's help."""
    waiting: dict[EntryKind, ChangedEntries] = {}
    """What changed in the live table with this revision."""

    def is_same(self, other: "Pin | None") -> bool:
        """Whether another revision's pin is this one, however far the live table got meanwhile."""
        return other is not None and self.model_dump(exclude=_PASSING) == other.model_dump(exclude=_PASSING)


_PASSING = {"live", "waiting"}


class Manifest(BaseModel):
    """One revision of one table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA
    table: str
    version: Version
    parent: Version | None = None
    created_at: datetime
    causes: tuple[Cause, ...] = ()
    """At most `MAX_CAUSES`; `cause_count` says how many there were."""
    cause_count: int = 0
    inputs: dict[str, int] = {}
    """Cluster to the sequence of its last delta that is in this revision."""
    log: str = ""
    """Incarnation of the log that these sequences belong to."""
    changed: dict[EntryKind, ChangedEntries] = {}
    """What is served differently from the parent."""
    pin: Pin | None = None
    chunks: tuple[ChunkName, ...]
    traceparent: str | None = None

    @property
    def live(self) -> tuple[ChunkName, ...]:
        """The table as it would be without a pin."""
        return self.pin.live if self.pin else self.chunks

    @property
    def digests(self) -> frozenset[str]:
        """Every chunk that has to be kept for this revision."""
        return frozenset(chunk.digest for chunk in (*self.chunks, *self.live))

    @property
    def is_routine(self) -> bool:
        """Whether nothing but endpoints led to it: a revision that few will ask for later."""
        return 0 < self.cause_count == len(self.causes) and all(cause.kind in _ENDPOINT_KINDS for cause in self.causes)

    def encode(self) -> bytes:
        """Canonical JSON, compressed."""
        return compress(self.model_dump_json().encode())

    @classmethod
    def decode(cls, data: bytes) -> "Manifest":
        """Read what `encode` wrote.

        Raises:
            DecodeError: the bytes are damaged, or of a schema that this release does not know.
        """
        content = decompress(data, 64 * 1024 * 1024)
        try:
            # Before the rest: a later schema has fields that are unknown here, and this is what to say of it.
            version = msgspec.json.decode(content, type=_Schema).schema_version
            if version > SCHEMA:
                raise DecodeError(
                    f"a manifest has schema {version}, this release reads up to {SCHEMA}; "
                    "upgrade the gateways before the translator"
                )
            return cls.model_validate_json(content)
        except ValueError as error:
            raise DecodeError(f"a manifest cannot be read: {error}") from error


class _Schema(msgspec.Struct):
    schema_version: int = SCHEMA


class Pointer(BaseModel):
    """What a table's readers follow: the current version and the digest of its manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    version: Version
    manifest_digest: str
    """SHA-256 of the manifest's stored bytes, hex."""
    committed_at: datetime


def digest_of(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def compress(content: bytes) -> bytes:
    """Compress for the store (zstd level 3: decompresses at above 1 GB/s, and the store is not the bottleneck)."""
    compressed = zstandard.ZstdCompressor(level=3, write_content_size=True).compress(content)
    # A copy: the library's object keeps the memory that the worst case would have needed, and chunks are kept for long.
    return bytes(memoryview(compressed))


def decompress(data: bytes, limit: int) -> bytes:
    """Undo `compress`.

    Raises:
        DecodeError: damaged, or larger than `limit` bytes.
    """
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= limit:
            raise DecodeError(f"compressed content says {size} bytes, at most {limit} are accepted")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=limit)
    except zstandard.ZstdError as error:
        raise DecodeError(f"compressed content is damaged: {error}") from error


def open_chunk(name: ChunkName, stored: bytes) -> bytes:
    """Decompress and verify a stored chunk.

    Raises:
        DecodeError: damaged, too large, or not the content that its name promises.
    """
    content = decompress(stored, ENTRY_LIMIT)
    if digest_of(content) != name.digest:
        raise DecodeError(f"chunk {name.digest[:12]} holds other content than its name promises")
    return content


def decode_chunk(kind: EntryKind, content: bytes) -> tuple[TableEntry, ...]:
    """Return the entries of a chunk, sorted by key."""
    try:
        return _CHUNK_ADAPTERS[kind].validate_json(content)
    except ValueError as error:
        raise DecodeError(f"a chunk of {kind} cannot be read: {error}") from error


def entry_contents(content: bytes) -> dict[str, bytes]:
    """Return the encoded entries of a chunk by their keys, without reading more of them than that."""
    found = {}
    for raw in _decode_raw(content):
        keys = _decode_key(raw)
        found[keys.host or keys.key] = bytes(raw)
    return found


def changed_entries(before: Iterable[Chunk], after: Iterable[Chunk]) -> dict[EntryKind, ChangedEntries]:
    """Return which entries differ between two images of a table; looks into the chunks that differ only."""
    old, new = {chunk.digest: chunk for chunk in before}, {chunk.digest: chunk for chunk in after}
    was = _contents_by_kind(chunk for digest, chunk in old.items() if digest not in new)
    now = _contents_by_kind(chunk for digest, chunk in new.items() if digest not in old)
    changed: dict[EntryKind, ChangedEntries] = {}
    for kind in ENTRY_KINDS:
        names = sorted(key for key in was[kind].keys() | now[kind].keys() if was[kind].get(key) != now[kind].get(key))
        if names:
            changed[kind] = ChangedEntries(count=len(names), names=tuple(names[:MAX_NAMES]))
    return changed


def _contents_by_kind(chunks: Iterable[Chunk]) -> dict[EntryKind, dict[str, bytes]]:
    found: dict[EntryKind, dict[str, bytes]] = {kind: {} for kind in ENTRY_KINDS}
    for chunk in chunks:
        found[chunk.kind].update(entry_contents(chunk.content))
    return found


class _Keys(msgspec.Struct):
    host: str = ""
    key: str = ""


_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_key = msgspec.json.Decoder(_Keys).decode


_CHUNK_ADAPTERS: Mapping[EntryKind, TypeAdapter[tuple[TableEntry, ...]]] = {
    kind: TypeAdapter(tuple[entry_type, ...])  # type: ignore[valid-type]
    for kind, entry_type in ENTRY_TYPES.items()
}


class TableImage:
    """The entries of a table and their chunks, kept up to date change by change.

    Only leaves that changed are encoded again by `chunks`.
    """

    def __init__(self, entries: Iterable[TableEntry] = ()) -> None:
        self._tries: dict[EntryKind, _Trie] = {kind: _Trie(kind) for kind in ENTRY_KINDS}
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

    def size_of(self, kind: EntryKind, key: str) -> int:
        """Return the bytes of an entry; 0 where there is none."""
        return self._tries[kind].size_of(key)

    def chunks(self) -> list[Chunk]:
        """Return all chunks in a fixed order: by kind, then by prefix. Empty leaves have none."""
        return [chunk for trie in self._tries.values() for chunk in trie.chunks()]


def encode_entry(entry: TableEntry) -> bytes:
    """Canonical JSON: fields in the order of the model, absent where they equal the default."""
    return entry.model_dump_json(exclude_defaults=True).encode()


class _Leaf:
    __slots__ = ("chunk", "entries", "size")

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.size = 0
        self.chunk: Chunk | None = None

    def is_full(self) -> bool:
        return len(self.entries) > 1 and (len(self.entries) > LEAF_ENTRIES or self.size > CHUNK_LIMIT)

    def put(self, key: str, content: bytes) -> None:
        self.size += len(content) - len(self.entries.get(key, b""))
        self.entries[key] = content
        self.chunk = None

    def discard(self, key: str) -> None:
        self.size -= len(self.entries.pop(key, b""))
        self.chunk = None


class _Trie:
    """A node is a fork exactly while the entries below it would overfill one leaf."""

    def __init__(self, kind: EntryKind) -> None:
        self._kind = kind
        self._forks: set[str] = set()
        self._leaves: dict[str, _Leaf] = {"": _Leaf()}

    def _locate(self, key: str) -> str:
        bits = _bits(key)
        depth = 0
        while bits[:depth] in self._forks:
            depth += 1
        return bits[:depth]

    def size_of(self, key: str) -> int:
        return len(self._leaves[self._locate(key)].entries.get(key, b""))

    def put(self, key: str, content: bytes) -> bool:
        prefix = self._locate(key)
        leaf = self._leaves[prefix]
        if leaf.entries.get(key) == content:
            return False
        leaf.put(key, content)
        if leaf.is_full():
            self._split(prefix)
        else:
            self._merge_upwards(prefix)  # the entry may have become smaller
        return True

    def _split(self, prefix: str) -> None:
        entries = self._leaves.pop(prefix).entries
        self._forks.add(prefix)
        self._leaves[prefix + "0"] = _Leaf()
        self._leaves[prefix + "1"] = _Leaf()
        for key, content in entries.items():
            self._leaves[_bits(key)[: len(prefix) + 1]].put(key, content)
        for branch in (prefix + "0", prefix + "1"):
            if self._leaves[branch].is_full():
                self._split(branch)

    def discard(self, key: str) -> bool:
        prefix = self._locate(key)
        if key not in self._leaves[prefix].entries:
            return False
        self._leaves[prefix].discard(key)
        self._merge_upwards(prefix)
        return True

    def _merge_upwards(self, prefix: str) -> None:
        while prefix and self._merge(prefix[:-1]):
            prefix = prefix[:-1]

    def _merge(self, fork: str) -> bool:
        low, high = self._leaves.get(fork + "0"), self._leaves.get(fork + "1")
        if low is None or high is None:
            return False
        joined = _Leaf()
        joined.entries = low.entries | high.entries
        joined.size = low.size + high.size
        if joined.is_full():
            return False
        del self._leaves[fork + "0"], self._leaves[fork + "1"]
        self._forks.discard(fork)
        self._leaves[fork] = joined
        return True

    def chunks(self) -> Iterator[Chunk]:
        for prefix in sorted(self._leaves):
            leaf = self._leaves[prefix]
            if not leaf.entries:
                continue
            if leaf.chunk is None:
                content = b"[" + b",".join(leaf.entries[key] for key in sorted(leaf.entries)) + b"]"
                leaf.chunk = Chunk(self._kind, prefix, digest_of(content), content)
            yield leaf.chunk


def _bits(key: str) -> str:
    return f"{int.from_bytes(hashlib.sha256(key.encode()).digest()):0256b}"
