"""Snapshots: versioned, content-addressed images of a table.

The entries of each kind are spread over the leaves of a `Trie`. Each leaf is one chunk: canonical JSON, named by the
SHA-256 of those bytes, stored compressed. Equal tables have equal digests, whichever process built them
and in whatever order; and one changed entry changes one chunk.

Rejected: naming a chunk by its compressed bytes (two versions of the compressor would disagree about equal tables).

A manifest names the chunks of one revision. Readers accept only a greater (epoch, revision).
"""

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import msgspec
import zstandard
from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter

from headgate.common.clusters import Decision
from headgate.common.deltas import LogPlace
from headgate.common.errors import DecodeError
from headgate.common.resources import ENDPOINT_SLICE, ENDPOINTS
from headgate.common.selection import EVERYTHING, Selection
from headgate.common.table import (
    ENTRIES,
    EntryKind,
    TableEntry,
)

ENTRY_LIMIT = 4 * 1024 * 1024
"""Bytes that a chunk of one single entry may have, so that a damaged chunk cannot fill a reader's memory."""
MANIFEST_LIMIT = 64 * 1024 * 1024
"""Bytes of a manifest before compression."""
SCHEMA = 7
"""Version of the table vocabulary and of the manifest; a reader refuses a manifest of a greater one."""
MAX_CAUSES = 100
MAX_NAMES = 100
_of_thread = threading.local()


class Version(NamedTuple):
    """Position of a snapshot; greater is newer."""

    epoch: int
    revision: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.revision}"


THIS_REVISION = Version(0, 0)
"""Stands in a draft for the version that it is committed as, which is not known before."""


class ChunkName(BaseModel):
    """A chunk as a manifest names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: EntryKind
    prefix: str
    digest: str

    @cached_property
    def json_form(self) -> str:
        """In JSON: made once, as thousands of manifests may have the same name."""
        return self.model_dump_json()


_json_form_of = attrgetter("json_form")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One leaf, encoded."""

    kind: EntryKind
    prefix: str
    """Bits of the keys' SHA-256 that lead to the leaf: `0110`; empty for the root."""
    digest: str
    """SHA-256 of `content`, hex."""
    content: bytes
    name: ChunkName = field(init=False, repr=False, compare=False)
    """As manifests have it: made once, as a revision of a large table changes few of thousands."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", ChunkName(kind=self.kind, prefix=self.prefix, digest=self.digest))


class Cause(BaseModel):
    """A change that led to a revision: of an object, or of the table itself by a person."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cluster: str
    kind: str
    """`TABLE_KIND` for what a person did to the table."""
    namespace: str
    name: str
    operation: str
    """`apply` and `delete` of objects; `rollback`, `unpin` and those of rollouts (`RolloutMove`) of tables."""
    sequence: int
    """Of the delta in the log."""
    by: str = ""
    """Who did it, as far as is known: the object's last field manager, the file that it stands in, or a person."""
    at: AwareDatetime | None = None
    """When they did it, as the API server noted; else when the watcher saw it."""
    note: str = ""
    """What a person said about it, or decided of a cluster."""


TABLE_KIND = "Table"
_ENDPOINT_KINDS = frozenset({ENDPOINT_SLICE.kind, ENDPOINTS.kind})


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
    since: AwareDatetime
    by: str = ""
    reason: str = ""
    is_frozen: bool = False
    """Its endpoints are those of the old revision too; else they are those of today."""
    live: tuple[ChunkName, ...] = ()
    """The table as it would be without the pin, always up to date, so that unpinning needs no translator."""
    waiting: dict[EntryKind, ChangedEntries] = {}
    """What changed in the live table with this revision."""

    def is_same(self, other: "Pin | None") -> bool:
        """Whether another revision's pin is this one, however far the live table got meanwhile."""
        return other is not None and self.model_dump(exclude=_PASSING) == other.model_dump(exclude=_PASSING)


class RolloutPhase(StrEnum):
    """What a rollout is doing."""

    STEPPING = "stepping"
    HELD = "held"
    """It went back: no replica serves the next table, and it waits for a better one, or for a person."""


class RolloutMove(StrEnum):
    """What happened to a rollout with a revision: the operation of its cause."""

    BEGUN = "rollout"
    STEPPED = "rollout-step"
    DONE = "rollout-done"
    WITHDRAWN = "rollout-withdrawn"
    """The table that was rolled out is not wanted any more: that of all replicas is the live one again."""
    WENT_BACK = "rollout-back"
    PROMOTED = "rollout-promote"


class Rollout(BaseModel):
    """That some replicas serve a newer table before the others do, or that they did and went back."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: Version
    """Revision whose routes all other replicas serve: `Manifest.chunks`, with the endpoints of today."""
    target: Version = THIS_REVISION
    """Revision whose routes `next` has: the one with which the rollout began."""
    phase: RolloutPhase = RolloutPhase.STEPPING
    shares: tuple[float, ...]
    """Percents of the replicas, step by step; after the last one come all."""
    step: int = 0
    """Place in `shares`."""
    begun: Version = THIS_REVISION
    """Revision in which these replicas were chosen: they are compared with the others by what came since."""
    since: AwareDatetime
    """When this step began, or when it went back."""
    replicas: tuple[str, ...] = ()
    """Those that serve `next`, sorted."""
    ended: tuple[str, ...] = ()
    """Chosen replicas that ended without a word after they had taken it, once for each time."""
    by: str = ""
    """Who had it go back; empty: the translator."""
    reason: str = ""
    """Why it went back."""
    changed: dict[EntryKind, ChangedEntries] = {}
    """In what the next table differs from the one of all."""
    next: tuple[ChunkName, ...] = ()
    live: tuple[ChunkName, ...] = ()
    """The table as it would be without the rollout, always up to date: what differs from `next` waits."""
    waiting: dict[EntryKind, ChangedEntries] = {}
    """What changed in the live table with this revision."""

    def is_same(self, other: "Rollout | None") -> bool:
        """Whether another revision's rollout stands as this one does, however far its tables got meanwhile."""
        return other is not None and self.model_dump(exclude=_PASSING) == other.model_dump(exclude=_PASSING)

    def placed(self, version: Version) -> "Rollout":
        """Return it as a revision of this version has it."""
        new = {name: version for name in ("target", "begun") if getattr(self, name) == THIS_REVISION}
        return self.model_copy(update=new) if new else self

    def gone_back(self, since: datetime, reason: str, by: str = "") -> "Rollout":
        """Return it as it is once no replica serves its table any more."""
        held = {"phase": RolloutPhase.HELD, "replicas": (), "since": since, "reason": reason, "by": by}
        return self.model_copy(update=held)


_PASSING = {"live", "next", "waiting"}


class Manifest(BaseModel):
    """One revision of one table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA
    table: str
    version: Version
    parent: Version | None = None
    created_at: AwareDatetime
    causes: tuple[Cause, ...] = ()
    """At most `MAX_CAUSES`; `cause_count` says how many there were."""
    cause_count: int = 0
    inputs: dict[str, int] = {}
    """Cluster to the sequence of its last delta that is in this revision."""
    log: str = ""
    """Incarnation of the log that these sequences belong to."""
    last_read: LogPlace | None = None
    """The last message that was read of the log: one that went back since lacks it."""
    selection: Selection = EVERYTHING
    """What the table is made of."""
    changed: dict[EntryKind, ChangedEntries] = {}
    """What is served differently from the parent."""
    pin: Pin | None = None
    rollout: Rollout | None = None
    """A table that is pinned is not rolled out."""
    decisions: dict[str, Decision] = {}
    """What people decided of clusters, by cluster: kept here too for when the log is lost."""
    chunks: tuple[ChunkName, ...]
    traceparent: str | None = None

    @property
    def live(self) -> tuple[ChunkName, ...]:
        """The table as it would be without a pin or a rollout."""
        held = self.pin or self.rollout
        return held.live if held else self.chunks

    def served_by(self, replica: str) -> tuple[ChunkName, ...]:
        """Return the table that a replica is to serve."""
        return self.rollout.next if self.rollout and replica in self.rollout.replicas else self.chunks

    def routes_of(self, replica: str) -> Version:
        """Return the revision whose routes that table has."""
        if self.pin:
            return self.pin.version
        if self.rollout is None:
            return self.version
        return self.rollout.target if replica in self.rollout.replicas else self.rollout.base

    @property
    def digests(self) -> frozenset[str]:
        """Every chunk that has to be kept for this revision."""
        return self.digests_beside.union([chunk.digest for chunk in self.chunks])

    @property
    def digests_beside(self) -> frozenset[str]:
        """Those of them that are not in `chunks`, or need not be."""
        rolled_out = self.rollout.next if self.rollout else ()
        live = self.live if self.live is not self.chunks else ()
        return frozenset([chunk.digest for chunk in (*live, *rolled_out)])

    @property
    def older(self) -> frozenset[Version]:
        """Revisions that it refers to, which are kept as long as it is the current one."""
        return frozenset([self.pin.version] if self.pin else [self.rollout.base] if self.rollout else [])

    @property
    def is_routine(self) -> bool:
        """Whether nothing but endpoints, or a rollout that took a step, led to it: few will ask for it later."""
        return 0 < self.cause_count == len(self.causes) and all(_is_routine(cause) for cause in self.causes)

    def encode(self) -> bytes:
        """Canonical JSON, compressed."""
        head = self.model_copy(update={"chunks": ()}).model_dump_json()
        # In a text the quotes would be escaped.
        content = head.replace('"chunks":[]', f'"chunks":[{",".join(map(_json_form_of, self.chunks))}]', 1)
        return compress(content.encode(), level=1)

    @classmethod
    def decode(cls, data: bytes) -> "Manifest":
        """Read what `encode` wrote.

        Raises:
            DecodeError: the bytes are damaged, or of a schema that this release does not know.
        """
        return cls.read(decompress(data, MANIFEST_LIMIT))

    @classmethod
    def read(cls, content: bytes) -> "Manifest":
        """Read what `encode` wrote, decompressed.

        Raises:
            DecodeError: it is damaged, or of a schema that this release does not know.
        """
        try:
            # Before the rest: a later schema has fields that are unknown here, and this is what to say of it.
            version = msgspec.json.decode(content, type=_Schema).schema_version
            if version > SCHEMA:
                raise DecodeError(
                    f"a manifest has schema {version}, this release reads up to {SCHEMA}; "
                    "upgrade the gateways before the translator"
                )
            return cls.model_validate_json(content)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"a manifest cannot be read: {error}") from error


def _is_routine(cause: Cause) -> bool:
    return cause.kind in _ENDPOINT_KINDS or (cause.kind == TABLE_KIND and cause.operation == RolloutMove.STEPPED)


class _Schema(msgspec.Struct):
    schema_version: int = SCHEMA


class Pointer(BaseModel):
    """What a table's readers follow: the current version and the digest of its manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    version: Version
    manifest_digest: str
    """SHA-256 of the manifest's stored bytes, hex."""
    committed_at: AwareDatetime


def digest_of(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def compress(content: bytes, level: int = 3) -> bytes:
    """Compress for the store by zstd, which decompresses at above 1 GB/s.

    Level 1 takes half the time for names of chunks, which are mostly digests, and makes them smaller than 3 does.
    """
    compressed = _compressor(level).compress(content)
    # A copy: the library's object keeps the memory that the worst case would have needed, and chunks are kept for long.
    return bytes(memoryview(compressed))


def _compressor(level: int) -> zstandard.ZstdCompressor:
    """Return the thread's own, which keeps its tables: to make them takes longer than to compress a small chunk."""
    found: dict[int, zstandard.ZstdCompressor] = _of_thread.__dict__.setdefault("compressors", {})
    if level not in found:
        found[level] = zstandard.ZstdCompressor(level=level, write_content_size=True)
    return found[level]


def decompress(data: bytes, limit: int) -> bytes:
    """Undo `compress`.

    Raises:
        DecodeError: damaged, or larger than `limit` bytes.
    """
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= limit:
            raise DecodeError(f"compressed content says {size} bytes, at most {limit} are accepted")
        return _decompressor().decompress(data, max_output_size=limit)
    except zstandard.ZstdError as error:
        raise DecodeError(f"compressed content is damaged: {error}") from error


def _decompressor() -> zstandard.ZstdDecompressor:
    """Return the thread's own: to make one takes longer than to decompress a small chunk."""
    if "decompressor" not in _of_thread.__dict__:
        _of_thread.decompressor = zstandard.ZstdDecompressor()
    return _of_thread.decompressor  # type: ignore[no-any-return]


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


_CHUNK_ADAPTERS: Mapping[EntryKind, TypeAdapter[tuple[TableEntry, ...]]] = {
    kind: TypeAdapter(tuple[row.model, ...])  # type: ignore[name-defined]
    for kind, row in ENTRIES.items()
}
