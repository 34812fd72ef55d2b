"""The entries of one kind, held chunk by chunk, compiled, and replaced chunk by chunk.

A chunk that two revisions share is neither fetched nor decoded again; within a changed chunk an entry that did not
change, byte for byte, keeps its compiled object without being decoded. Entries themselves are not kept after
compiling, as validated models take ten times the space of their compressed chunk: what explains a decision decodes
them again.

A gateway that holds a part of its table keeps some entries of a chunk and forgets the others (`Selection`). It fetches
the chunk again if it comes to need one of those.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import is_not
from typing import Generic, NamedTuple, TypeVar

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import ENTRY_LIMIT, ChunkName, compress, decompress, digest_of
from headgate.common.table import Entry
from headgate.common.trie import key_bits
from headgate.gateway.model.persistent_map import PersistentMap
from headgate.gateway.model.steps import Steps

E = TypeVar("E", bound=Entry)
C = TypeVar("C")

STEP_BYTES = 8192
"""Encoded entries compiled between two turns of the event loop: about half a millisecond."""
_ENTRY_BYTES = 400
"""What compiling an entry costs beside its length."""
EMPTY_CHUNK = compress(b"[]")
"""Of a chunk none of whose entries is kept: one object for all of them."""
Reference = tuple[str, str]
"""A kind and a key."""


@dataclass(frozen=True, slots=True)
class HeldChunk(Generic[C]):
    """One chunk in memory."""

    name: ChunkName
    stored: bytes
    """Content, compressed."""
    compiled: Mapping[str, C]
    """By entry key, in the order of the content."""
    is_part: bool = False
    """Whether the chunk has more entries than are kept."""
    references: frozenset[Reference] = frozenset()
    """What its entries refer to, if that is asked for."""

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


class Selection(NamedTuple):
    """Which entries of a kind are kept, and what is asked of them."""

    keeps: Callable[[bytes], bool] | None = None
    """Tells of an encoded entry; None: all are."""
    refer: Callable[[bytes], Iterable[Reference]] | None = None
    """Returns what an encoded entry refers to; None: that does not matter."""


ALL_ENTRIES = Selection()
FindPrevious = Callable[[str], Previous[C] | None]
"""Finds the previous version of an entry by key."""
CompileEntry = Callable[[bytes, FindPrevious[C]], Steps[tuple[str, C]]]
"""Compiles an encoded entry in steps; returns its key and what it became. Changes nothing that is served."""


class ChunkSet(Generic[E, C]):
    """All chunks of one kind that the current table consists of."""

    def __init__(self, entry_type: type[E], compile_entry: CompileEntry[C]) -> None:
        self.entry_type = entry_type
        self.compile_entry = compile_entry
        self.held: PersistentMap[str, HeldChunk[C]] = PersistentMap.of({})
        """By digest."""
        self.names: Sequence[ChunkName] = ()
        """As the manifest has them."""

    def stage(self, names: Sequence[ChunkName], selection: Selection = ALL_ENTRIES) -> "ChunkStage[E, C]":
        """Begin an update to these chunks, all of this kind; nothing changes before `ChunkStage.commit`."""
        return ChunkStage(self, names, selection)

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

    def __init__(self, chunks: ChunkSet[E, C], names: Sequence[ChunkName], selection: Selection = ALL_ENTRIES) -> None:
        self._chunks = chunks
        self._names = names
        self._selection = selection
        self._by_prefix: dict[str, ChunkName] | None = None
        self._required: set[str] = set()
        """Keys that were asked for: what is absent then is not in the table."""
        self._staged: dict[str, HeldChunk[C]] = {}
        self._raw_entries: dict[str, dict[bytes, str]] = {}
        """Of vanishing chunks by digest: encoded entries and their keys."""
        self._arrived: dict[str, C] = {}
        self._vanishing: dict[str, HeldChunk[C]] = {}
        """By digest; those that are only to be kept otherwise have a staged one of the same name."""
        self.needed: tuple[ChunkName, ...] = ()
        """Chunks to `add`."""
        if names != chunks.names:  # most revisions change one kind, and share the names of all others
            before, after = _differing(chunks.names, names)
            self._vanishing = {digest: chunks.held[digest] for digest in before.keys() - after.keys()}
            self.needed = tuple(after[digest] for digest in sorted(after.keys() - before.keys()))

    @property
    def is_changed(self) -> bool:
        """Whether anything is not as it was."""
        return bool(self.needed or self._vanishing)

    def add(self, name: ChunkName, content: bytes, stored: bytes | None = None) -> Steps[None]:
        """Decode and compile one verified chunk, in steps.

        Args:
            name: of the chunk.
            content: its encoded entries.
            stored: the same, compressed; None: that is to be done here.

        Raises:
            DecodeError: the chunk does not follow the contract.
        """
        related = [chunk for chunk in self._vanishing.values() if _may_share_keys(chunk.name.prefix, name.prefix)]
        compile_entry, find_previous = self._chunks.compile_entry, partial(self._find_previous, related=related)
        compiled: dict[str, C] = {}
        size = 0
        entries, is_part = split_entries(content), False
        if (keeps := self._selection.keeps) is not None:
            kept = list(filter(keeps, entries))
            # One that was kept on disk may lack entries already.
            is_part = len(kept) < len(entries) or digest_of(content) != name.digest
            if len(kept) < len(entries):
                entries, content, stored = kept, _join(kept), None
        for raw in entries:
            unchanged = self._find_unchanged(raw, related) if related else None
            if unchanged is not None:
                key, item = unchanged
            else:
                if size > STEP_BYTES:
                    size = 0
                    yield
                size += _ENTRY_BYTES + len(raw)
                key, item = yield from compile_entry(raw, find_previous)
                self._arrived[key] = item
            compiled[key] = item
        if not entries:
            stored = EMPTY_CHUNK
        elif stored is None:
            stored = compress(content)
        self._staged[name.digest] = HeldChunk(name, stored, compiled, is_part, self._references(entries))

    def _references(self, entries: Iterable[bytes]) -> frozenset[Reference]:
        refer = self._selection.refer
        return frozenset() if refer is None else frozenset(each for raw in entries for each in refer(raw))

    def require(self, keys: Iterable[str]) -> tuple[ChunkName, ...]:
        """Return the chunks that have to be added again, as entries with these keys were not kept of them before."""
        if not self._chunks.held and not self._staged:
            return ()
        found: dict[str, ChunkName] = {}
        for key in keys:
            if key in self._required:
                continue
            self._required.add(key)
            name = self._locate(key)
            held = self._find(name) if name is not None else None
            if held is not None and held.is_part and key not in held.compiled:
                found[held.name.digest] = held.name
        return self._fetch_again(found.values())

    def require_all(self) -> tuple[ChunkName, ...]:
        """Return all chunks that were not kept as a whole, to be added again."""
        return self._fetch_again([chunk.name for chunk in self._present().values() if chunk.is_part])

    def _fetch_again(self, names: Iterable[ChunkName]) -> tuple[ChunkName, ...]:
        again = tuple(names)
        for name in again:
            self._reopen(name)
        self.needed += again
        return again

    def release(self, keys: Iterable[str]) -> bool:
        """Give up entries that are not to be kept any more; return whether there were any."""
        found: dict[str, HeldChunk[C]] = {}
        for key in keys:
            name = self._locate(key)
            held = self._find(name) if name is not None else None
            if held is not None and key in held.compiled:
                found[held.name.digest] = held
        keeps = self._selection.keeps
        assert keeps is not None or not found, "all are kept"
        for digest, chunk in found.items():
            entries = zip(chunk.compiled, chunk.raw_entries(), strict=True)
            kept = {key: raw for key, raw in entries if keeps is not None and keeps(raw)}
            for key in chunk.compiled.keys() - kept.keys():
                self._arrived.pop(key, None)
            self._reopen(chunk.name)
            self._staged[digest] = replace(
                chunk,
                stored=compress(_join(kept.values())) if kept else EMPTY_CHUNK,
                compiled={key: chunk.compiled[key] for key in kept},
                is_part=True,
                references=self._references(kept.values()),
            )
        return bool(found)

    def _reopen(self, name: ChunkName) -> None:
        """Have a chunk, if it is held, replaced by another of the same name."""
        held = self._chunks.held.get(name.digest)
        if held is not None:
            self._vanishing[name.digest] = held

    def _locate(self, key: str) -> ChunkName | None:
        """Return the chunk in which an entry with a key is, if there is one: they are leaves of a trie."""
        if self._by_prefix is None:
            self._by_prefix = {name.prefix: name for name in self._names}
        bits = key_bits(key)
        found = (self._by_prefix.get(bits[:depth]) for depth in range(len(bits) + 1))
        return next((name for name in found if name is not None), None)

    def _find(self, name: ChunkName) -> HeldChunk[C] | None:
        return self._staged.get(name.digest) or self._chunks.held.get(name.digest)

    @property
    def references(self) -> tuple[list[frozenset[Reference]], list[frozenset[Reference]]]:
        """What chunks refer to that are there no more, and what those that are new do."""
        gone, new = self._vanishing.values(), self._staged.values()
        return [chunk.references for chunk in gone], [chunk.references for chunk in new]

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
        gone = {key for chunk in self._vanishing.values() for key in chunk.compiled}
        for chunk in self._staged.values() if gone else ():
            gone.difference_update(chunk.compiled)
        return self._arrived, gone

    def compiled(self) -> list[C]:
        """Return all that is compiled once this is current."""
        return [item for chunk in self._present().values() for item in chunk.compiled.values()]

    def raw_entries(self, keys: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Yield some of the entries that are there once this is current, encoded, with their keys."""
        missing = set(keys)
        # Most of them are asked for because they are new.
        for chunk in itertools.chain(self._staged.values(), self._present().values()):
            if not missing:
                return
            found = missing & chunk.compiled.keys()
            if found:
                missing -= found
                entries = zip(chunk.compiled, chunk.raw_entries(), strict=True)
                yield from ((key, raw) for key, raw in entries if key in found)

    def commit(self) -> tuple[Mapping[str, C], set[str]]:
        """Make the staged chunks current; return their `outcome`."""
        outcome = self.outcome()
        self._chunks.held, self._chunks.names = self._present(), self._names
        return outcome

    def _present(self) -> PersistentMap[str, HeldChunk[C]]:
        """Return the chunks that are there once this is current."""
        if not self.is_changed:
            return self._chunks.held
        present = self._chunks.held.edit()
        for digest in self._vanishing:
            present.discard(digest)
        for digest, chunk in self._staged.items():
            present.put(digest, chunk)
        return present.done()


def _differing(
    before: Sequence[ChunkName], after: Sequence[ChunkName]
) -> tuple[dict[str, ChunkName], dict[str, ChunkName]]:
    """Return, by digest, the names between those that two tables have in common at both ends.

    Names that did not change are the same objects in most revisions, so that few are left.
    """
    most = min(len(before), len(after))
    head = next(itertools.compress(itertools.count(), map(is_not, before, after)), most)
    backwards = map(is_not, reversed(before), reversed(after))
    tail = min(next(itertools.compress(itertools.count(), backwards), most), most - head)
    rest_before, rest_after = before[head : len(before) - tail], after[head : len(after) - tail]
    return {name.digest: name for name in rest_before}, {name.digest: name for name in rest_after}


def _join(entries: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(entries) + b"]"


def _may_share_keys(prefix: str, other: str) -> bool:
    """Tell whether one chunk's prefix leads to the other: the same leaf, its fork or one of its halves."""
    return prefix.startswith(other) or other.startswith(prefix)
