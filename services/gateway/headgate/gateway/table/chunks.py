"""The entries of one kind, held chunk by chunk, compiled, and replaced chunk by chunk.

A chunk that two revisions share is neither fetched nor decoded again; within a changed chunk an entry that did not
change, byte for byte, keeps its compiled object without being decoded. Entries themselves are not kept after
compiling, as validated models take ten times the space of their compressed chunk: what explains a decision decodes
them again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import ENTRY_LIMIT, ChunkName, compress, decompress
from headgate.common.table import ENTRY_TYPES, EntryKind, TableEntry, entry_key

E = TypeVar("E", bound=TableEntry)
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class HeldChunk(Generic[C]):
    """One chunk in memory."""

    name: ChunkName
    stored: bytes
    """Content, compressed."""
    compiled: Mapping[str, C]
    """By entry key, in the order of the content."""

    def raw_entries(self) -> list[bytes]:
        """Return the encoded entries, in the order of `compiled`."""
        return split_entries(decompress(self.stored, ENTRY_LIMIT))


def split_entries(content: bytes) -> list[bytes]:
    """Cut a chunk into its encoded entries without decoding them.

    Raises:
        DecodeError: it is not a JSON array.
    """
    try:
        return [bytes(raw) for raw in msgspec.json.decode(content, type=list[msgspec.Raw])]
    except msgspec.MsgspecError as error:
        raise DecodeError(f"a chunk is not a JSON array: {error}") from error


def decode_entry(kind: EntryKind, raw: bytes) -> TableEntry:
    """Decode and validate one entry.

    Raises:
        DecodeError: it does not follow the contract.
    """
    try:
        return ENTRY_TYPES[kind].model_validate_json(raw)
    except ValueError as error:
        raise DecodeError(f"an entry of {kind} cannot be read: {error}") from error


class ChunkSet(Generic[E, C]):
    """All chunks of one kind that the current table consists of."""

    def __init__(self, kind: EntryKind, compile_entry: Callable[[E, C | None], C]) -> None:
        """`compile_entry` gets an entry and what its previous version was compiled to, and changes nothing served."""
        self.kind = kind
        self.compile_entry = compile_entry
        self.held: Mapping[str, HeldChunk[C]] = {}
        """By digest."""

    def stage(self, names: Sequence[ChunkName]) -> "ChunkStage[E, C]":
        """Begin an update to these chunks, all of this kind; nothing changes before `ChunkStage.commit`."""
        return ChunkStage(self, names)

    def entries(self) -> Iterator[E]:
        """Decode all entries, chunk by chunk."""
        for chunk in self.held.values():
            for raw in chunk.raw_entries():
                yield cast(E, decode_entry(self.kind, raw))

    def entry(self, key: str) -> E | None:
        """Decode one entry."""
        for chunk in self.held.values():
            if key in chunk.compiled:
                raw = chunk.raw_entries()[list(chunk.compiled).index(key)]
                return cast(E, decode_entry(self.kind, raw))
        return None

    def compiled(self) -> Iterator[tuple[str, C]]:
        """Yield all compiled entries by key."""
        for chunk in self.held.values():
            yield from chunk.compiled.items()


class ChunkStage(Generic[E, C]):
    """An update in the making; dropping it leaves no trace."""

    def __init__(self, chunks: ChunkSet[E, C], names: Sequence[ChunkName]) -> None:
        self._chunks = chunks
        self._staged: dict[str, HeldChunk[C]] = {}
        held, wanted = chunks.held, {name.digest: name for name in names}
        self._kept = held.keys() & wanted.keys()
        self._vanishing = [held[digest] for digest in held.keys() - self._kept]
        self._known: dict[str, dict[bytes, tuple[str, C]]] = {}
        """Of vanishing chunks by digest: encoded entries, with what they are compiled to."""
        self.needed = tuple(wanted[digest] for digest in sorted(wanted.keys() - self._kept))
        """Chunks to `add`."""
        self.is_changed = bool(self.needed or self._vanishing)

    def add(self, name: ChunkName, content: bytes) -> None:
        """Decode and compile one verified chunk.

        Raises:
            DecodeError: the chunk does not follow the contract.
        """
        related = [chunk for chunk in self._vanishing if _may_share_keys(chunk.name.prefix, name.prefix)]
        compiled: dict[str, C] = {}
        for raw in split_entries(content):
            key, item = self._find_unchanged(raw, related) or self._compile(name.kind, raw, related)
            compiled[key] = item
        self._staged[name.digest] = HeldChunk(name, compress(content), compiled)

    def _find_unchanged(self, raw: bytes, related: Sequence[HeldChunk[C]]) -> tuple[str, C] | None:
        for chunk in related:
            digest = chunk.name.digest
            if digest not in self._known:
                self._known[digest] = dict(zip(chunk.raw_entries(), chunk.compiled.items(), strict=True))
            if found := self._known[digest].get(raw):
                return found
        return None

    def _compile(self, kind: EntryKind, raw: bytes, related: Sequence[HeldChunk[C]]) -> tuple[str, C]:
        entry = cast(E, decode_entry(kind, raw))
        key = entry_key(entry)
        previous = next((chunk.compiled[key] for chunk in related if key in chunk.compiled), None)
        return key, self._chunks.compile_entry(entry, previous)

    def check_complete(self) -> None:
        """Raise LookupError if a needed chunk was not added."""
        absent = [name.digest for name in self.needed if name.digest not in self._staged]
        if absent:
            raise LookupError(f"{len(absent)} chunks were not added, {absent[0]} among them")

    def commit(self) -> tuple[Mapping[str, C], set[str]]:
        """Make the staged chunks current; return the compiled entries of new chunks, and the keys that are gone."""
        arrived = {key: item for chunk in self._staged.values() for key, item in chunk.compiled.items()}
        gone = {key for chunk in self._vanishing for key in chunk.compiled} - arrived.keys()
        held = self._chunks.held
        self._chunks.held = {digest: held[digest] for digest in self._kept} | self._staged
        return arrived, gone


def _may_share_keys(prefix: str, other: str) -> bool:
    """Tell whether one chunk's prefix leads to the other: the same leaf, its fork or one of its halves."""
    return prefix.startswith(other) or other.startswith(prefix)
