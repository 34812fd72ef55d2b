"""The entries of one kind, held chunk by chunk, compiled, and replaced chunk by chunk.

A chunk that two revisions share is neither fetched nor decoded again; within a changed chunk an entry that did not
change keeps its compiled object. Entries themselves are not kept after compiling, as validated models take ten times
the space of their compressed chunk: what explains a decision decodes the chunk again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from headgate.common.snapshot import ENTRY_LIMIT, ChunkName, compress, decode_chunk, decompress
from headgate.common.table import EntryKind, TableEntry, entry_key

E = TypeVar("E", bound=TableEntry)
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class HeldChunk(Generic[C]):
    """One chunk in memory."""

    name: ChunkName
    stored: bytes
    """Content, compressed."""
    compiled: Mapping[str, C]
    """By entry key."""

    def entries(self) -> tuple[TableEntry, ...]:
        """Decode the entries again."""
        return decode_chunk(self.name.kind, decompress(self.stored, ENTRY_LIMIT))


class ChunkSet(Generic[E, C]):
    """All chunks of one kind that the current table consists of."""

    def __init__(self, kind: EntryKind, compile_entry: Callable[[E, C | None], C]) -> None:
        """`compile_entry` gets an entry and what its previous version was compiled to, and changes nothing served."""
        self.kind = kind
        self.compile_entry = compile_entry
        self.held: Mapping[str, HeldChunk[C]] = {}
        """By digest."""

    def stage(self, names: Sequence[ChunkName]) -> "ChunkStage[E, C]":
        """Begin an update to the chunks of this kind among `names`; nothing changes before `ChunkStage.commit`."""
        return ChunkStage(self, [name for name in names if name.kind == self.kind])

    def entries(self) -> Iterator[E]:
        """Decode all entries, chunk by chunk."""
        for chunk in self.held.values():
            yield from cast("tuple[E, ...]", chunk.entries())

    def entry(self, key: str) -> E | None:
        """Decode one entry."""
        for chunk in self.held.values():
            if key in chunk.compiled:
                return next(cast(E, entry) for entry in chunk.entries() if entry_key(entry) == key)
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
        wanted = {name.digest for name in names}
        self._kept = {digest: chunk for digest, chunk in chunks.held.items() if digest in wanted}
        self._vanishing = [chunk for digest, chunk in chunks.held.items() if digest not in wanted]
        self._decoded: dict[str, dict[str, tuple[E, C]]] = {}
        self.needed = tuple(name for name in names if name.digest not in self._kept)
        """Chunks to `add`."""
        self.is_changed = bool(self.needed or self._vanishing)

    def add(self, name: ChunkName, content: bytes) -> None:
        """Decode and compile one verified chunk.

        Raises:
            DecodeError: the chunk does not follow the contract.
        """
        previous = self._previous_entries(name.prefix)
        compiled: dict[str, C] = {}
        for entry in cast("tuple[E, ...]", decode_chunk(name.kind, content)):
            key = entry_key(entry)
            old_entry, old = previous.get(key, (None, None))
            if old is not None and old_entry == entry:
                compiled[key] = old
            else:
                compiled[key] = self._chunks.compile_entry(entry, old)
        self._staged[name.digest] = HeldChunk(name, compress(content), compiled)

    def _previous_entries(self, prefix: str) -> dict[str, tuple[E, C]]:
        """Return the entries of vanishing chunks that may have keys below this prefix."""
        found: dict[str, tuple[E, C]] = {}
        for chunk in self._vanishing:
            other = chunk.name.prefix
            if other.startswith(prefix) or prefix.startswith(other):
                found |= self._decode(chunk)
        return found

    def _decode(self, chunk: HeldChunk[C]) -> dict[str, tuple[E, C]]:
        digest = chunk.name.digest
        if digest not in self._decoded:
            entries = cast("tuple[E, ...]", chunk.entries())
            self._decoded[digest] = {entry_key(entry): (entry, chunk.compiled[entry_key(entry)]) for entry in entries}
        return self._decoded[digest]

    def check_complete(self) -> None:
        """Raise LookupError if a needed chunk was not added."""
        absent = [name.digest for name in self.needed if name.digest not in self._staged]
        if absent:
            raise LookupError(f"{len(absent)} chunks were not added, {absent[0]} among them")

    def commit(self) -> tuple[Mapping[str, C], set[str]]:
        """Make the staged chunks current; return the compiled entries of new chunks, and the keys that are gone."""
        arrived = {key: item for chunk in self._staged.values() for key, item in chunk.compiled.items()}
        gone = {key for chunk in self._vanishing for key in chunk.compiled} - arrived.keys()
        self._chunks.held = {**self._kept, **self._staged}
        return arrived, gone
