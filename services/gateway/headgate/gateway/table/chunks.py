"""The entries of one kind, held chunk by chunk, compiled, and replaced chunk by chunk.

A chunk that two revisions share is neither fetched nor decoded again; within a changed chunk an entry that did not
change, byte for byte, keeps its compiled object without being decoded. Entries themselves are not kept after
compiling, as validated models take ten times the space of their compressed chunk: what explains a decision decodes
them again.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import ENTRY_LIMIT, ChunkName, compress, decompress
from headgate.common.table import Entry
from headgate.gateway.model.steps import Steps

E = TypeVar("E", bound=Entry)
C = TypeVar("C")

STEP_BYTES = 8192
"""Encoded entries compiled between two turns of the event loop: about half a millisecond."""
_ENTRY_BYTES = 400
"""What compiling an entry costs beside its length."""


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
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DecodeError(f"a chunk is not a JSON array: {error}") from error


def decode_entry(entry_type: type[E], raw: bytes) -> E:
    """Decode and validate one entry.

    Raises:
        DecodeError: it does not follow the contract.
    """
    try:
        return entry_type.model_validate_json(raw)
    except ValueError as error:
        raise DecodeError(f"an entry of type {entry_type.__name__} cannot be read: {error}") from error


class Previous(NamedTuple, Generic[C]):
    """An entry as the current table has it."""

    raw: bytes
    compiled: C


FindPrevious = Callable[[str], Previous[C] | None]
"""Finds the previous version of an entry by key."""
CompileEntry = Callable[[bytes, FindPrevious[C]], Steps[tuple[str, C]]]
"""Compiles an encoded entry in steps; returns its key and what it became. Changes nothing that is served."""


class ChunkSet(Generic[E, C]):
    """All chunks of one kind that the current table consists of."""

    def __init__(self, entry_type: type[E], compile_entry: CompileEntry[C]) -> None:
        self.entry_type = entry_type
        self.compile_entry = compile_entry
        self.held: Mapping[str, HeldChunk[C]] = {}
        """By digest."""
        self.names: Sequence[ChunkName] = ()
        """As the manifest has them."""

    def stage(self, names: Sequence[ChunkName]) -> "ChunkStage[E, C]":
        """Begin an update to these chunks, all of this kind; nothing changes before `ChunkStage.commit`."""
        return ChunkStage(self, names)

    def entries(self) -> Iterator[E]:
        """Decode all entries, chunk by chunk."""
        for chunk in self.held.values():
            for raw in chunk.raw_entries():
                yield decode_entry(self.entry_type, raw)

    def entry(self, key: str) -> E | None:
        """Decode one entry."""
        for chunk in self.held.values():
            if key in chunk.compiled:
                raw = chunk.raw_entries()[list(chunk.compiled).index(key)]
                return decode_entry(self.entry_type, raw)
        return None

    def compiled(self) -> Iterator[tuple[str, C]]:
        """Yield all compiled entries by key."""
        for chunk in self.held.values():
            yield from chunk.compiled.items()


class ChunkStage(Generic[E, C]):
    """An update in the making; dropping it leaves no trace."""

    def __init__(self, chunks: ChunkSet[E, C], names: Sequence[ChunkName]) -> None:
        self._chunks = chunks
        self._names = names
        self._staged: dict[str, HeldChunk[C]] = {}
        self._raw_entries: dict[str, dict[bytes, str]] = {}
        """Of vanishing chunks by digest: encoded entries and their keys."""
        self._arrived: dict[str, C] = {}
        self._vanishing: Sequence[HeldChunk[C]] = ()
        self.needed: tuple[ChunkName, ...] = ()
        """Chunks to `add`."""
        if names != chunks.names:  # most revisions change one kind, and share the names of all others
            held, wanted = chunks.held, {name.digest: name for name in names}
            self._vanishing = [held[digest] for digest in held.keys() - wanted.keys()]
            self.needed = tuple(wanted[digest] for digest in sorted(wanted.keys() - held.keys()))
        self.is_changed = bool(self.needed or self._vanishing)

    def add(self, name: ChunkName, content: bytes) -> Steps[None]:
        """Decode and compile one verified chunk, in steps.

        Raises:
            DecodeError: the chunk does not follow the contract.
        """
        related = [chunk for chunk in self._vanishing if _may_share_keys(chunk.name.prefix, name.prefix)]
        compiled: dict[str, C] = {}
        size = 0
        for raw in split_entries(content):
            unchanged = self._find_unchanged(raw, related)
            if unchanged is not None:
                key, item = unchanged
            else:
                if size > STEP_BYTES:
                    size = 0
                    yield
                size += _ENTRY_BYTES + len(raw)
                key, item = yield from self._chunks.compile_entry(raw, lambda key: self._find_previous(key, related))
                self._arrived[key] = item
            compiled[key] = item
        self._staged[name.digest] = HeldChunk(name, compress(content), compiled)

    def _find_unchanged(self, raw: bytes, related: Sequence[HeldChunk[C]]) -> tuple[str, C] | None:
        for chunk in related:
            if (key := self._keys_by_raw(chunk).get(raw)) is not None:
                return key, chunk.compiled[key]
        return None

    def _find_previous(self, key: str, related: Sequence[HeldChunk[C]]) -> Previous[C] | None:
        for chunk in related:
            if key in chunk.compiled:
                raw = next(raw for raw, other in self._keys_by_raw(chunk).items() if other == key)
                return Previous(raw, chunk.compiled[key])
        return None

    def _keys_by_raw(self, chunk: HeldChunk[C]) -> dict[bytes, str]:
        digest = chunk.name.digest
        if digest not in self._raw_entries:
            self._raw_entries[digest] = dict(zip(chunk.raw_entries(), chunk.compiled, strict=True))
        return self._raw_entries[digest]

    def check_complete(self) -> None:
        """Raise LookupError if a needed chunk was not added."""
        absent = [name.digest for name in self.needed if name.digest not in self._staged]
        if absent:
            raise LookupError(f"{len(absent)} chunks were not added, {absent[0]} among them")

    def outcome(self) -> tuple[Mapping[str, C], set[str]]:
        """Return what was compiled for the staged chunks, and the keys that are gone with them."""
        gone = {key for chunk in self._vanishing for key in chunk.compiled}
        for chunk in self._staged.values():
            gone.difference_update(chunk.compiled)
        return self._arrived, gone

    def compiled(self) -> list[C]:
        """Return all that is compiled once this is current."""
        return [item for chunk in self._present().values() for item in chunk.compiled.values()]

    def raw_entries(self, keys: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Yield some of the entries that are there once this is current, encoded, with their keys."""
        for chunk in self._present().values():
            if not chunk.compiled.keys().isdisjoint(keys):
                entries = zip(chunk.compiled, chunk.raw_entries(), strict=True)
                yield from ((key, raw) for key, raw in entries if key in keys)

    def commit(self) -> tuple[Mapping[str, C], set[str]]:
        """Make the staged chunks current; return their `outcome`."""
        outcome = self.outcome()
        self._chunks.held, self._chunks.names = self._present(), self._names
        return outcome

    def _present(self) -> Mapping[str, HeldChunk[C]]:
        """Return the chunks that are there once this is current."""
        if not self.is_changed:
            return self._chunks.held
        present = dict(self._chunks.held)
        for chunk in self._vanishing:
            del present[chunk.name.digest]
        return present | self._staged


def _may_share_keys(prefix: str, other: str) -> bool:
    """Tell whether one chunk's prefix leads to the other: the same leaf, its fork or one of its halves."""
    return prefix.startswith(other) or other.startswith(prefix)
