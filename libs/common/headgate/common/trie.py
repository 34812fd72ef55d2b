"""Encoded entries spread over the leaves of a binary trie by the SHA-256 of their key, or by other bits that it has.

A leaf that grows past `LEAF_ENTRIES` splits. Which leaf an entry is in depends on the set of keys alone, in whatever
order they came.

Rejected: a fixed number of buckets; a growing table would move every entry at each doubling.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

LEAF_ENTRIES = 64
"""A leaf splits above this. At about 300 bytes an entry a chunk is then some 10 KB, a few KB compressed."""
CHUNK_LIMIT = 512 * 1024
"""Bytes of a chunk before compression; a leaf above it splits too. NATS takes 1 MiB messages by default."""


class _Leaf(Generic[T]):
    __slots__ = ("entries", "made", "size")

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.size = 0
        self.made: T | None = None

    def is_full(self) -> bool:
        return _is_too_large(len(self.entries), self.size)

    def put(self, key: str, content: bytes) -> None:
        self.size += len(content) - len(self.entries.get(key, b""))
        self.entries[key] = content
        self.made = None

    def discard(self, key: str) -> None:
        self.size -= len(self.entries.pop(key, b""))
        self.made = None

    def copy(self) -> "_Leaf[T]":
        leaf: _Leaf[T] = _Leaf()
        leaf.entries, leaf.size, leaf.made = dict(self.entries), self.size, self.made
        return leaf


class Trie(Generic[T]):
    """Encoded entries by key, leaf by leaf. A node is a fork exactly while the entries below would overfill a leaf.

    Args:
        make: makes of a leaf's prefix, the bits that lead to it, and its content what `leaves` yields. It is kept until
            an entry of the leaf changes.
        place: the bits of a key, behind one of the `roots`; no two keys have the same ones.
        roots: where tries begin that have nothing in common, all of one length.
    """

    def __init__(
        self,
        make: Callable[[str, bytes], T],
        place: Callable[[str], str] | None = None,
        roots: Sequence[str] = ("",),
    ) -> None:
        self._make = make
        self._place = key_bits if place is None else place
        self._roots = roots
        self._root_length = len(roots[0])
        self._depth = self._root_length
        """Of the leaf that was found last."""
        self._forks: set[str] = set()
        self._leaves: dict[str, _Leaf[T]] = {root: _Leaf() for root in roots}
        self._made: list[T] | None = None
        """What `leaves` returned last; None once there are other leaves than there were then."""
        self._places: dict[str, int] = {}
        """Prefix to the place in it."""
        self._changed: set[str] = set()
        """Prefixes of leaves that changed since."""

    def _locate(self, key: str) -> str:
        bits, depth = self._place(key), self._depth
        # Above a leaf are forks alone, so that any depth will do to begin with: leaves are about equally deep.
        while depth > self._root_length and bits[:depth] not in self._leaves and bits[:depth] not in self._forks:
            depth -= 1
        while bits[:depth] in self._forks:
            depth += 1
        self._depth = depth
        return bits[:depth]

    def get(self, key: str) -> bytes | None:
        """Return an entry."""
        return self._leaves[self._locate(key)].entries.get(key)

    def keys(self) -> Iterator[str]:
        """Yield all keys, in no particular order."""
        return (key for leaf in self._leaves.values() for key in leaf.entries)

    def copy(self) -> "Trie[T]":
        """Return one with the same entries, which it shares."""
        trie = Trie(self._make, self._place, self._roots)
        trie._forks = set(self._forks)
        trie._leaves = {prefix: leaf.copy() for prefix, leaf in self._leaves.items()}
        return trie

    def put(self, key: str, content: bytes) -> bool:
        """Add an entry or replace it; return whether anything changed by it."""
        prefix = self._locate(key)
        leaf = self._leaves[prefix]
        if leaf.entries.get(key) == content:
            return False
        before = leaf.size
        leaf.put(key, content)
        self._note(prefix)
        if leaf.is_full():
            self._split(prefix)
        elif leaf.size < before:
            self._merge_upwards(prefix)
        return True

    def _split(self, prefix: str) -> None:
        entries, self._made = self._leaves.pop(prefix).entries, None
        self._forks.add(prefix)
        self._leaves[prefix + "0"] = _Leaf()
        self._leaves[prefix + "1"] = _Leaf()
        for key, content in entries.items():
            self._leaves[self._place(key)[: len(prefix) + 1]].put(key, content)
        for branch in (prefix + "0", prefix + "1"):
            if self._leaves[branch].is_full():
                self._split(branch)

    def discard(self, key: str) -> bool:
        """Remove an entry; return whether it was there."""
        prefix = self._locate(key)
        if key not in self._leaves[prefix].entries:
            return False
        self._leaves[prefix].discard(key)
        self._note(prefix)
        self._merge_upwards(prefix)
        return True

    def _note(self, prefix: str) -> None:
        """Note that a leaf has changed."""
        if prefix not in self._places or not self._leaves[prefix].entries:
            self._made = None
        self._changed.add(prefix)

    def _merge_upwards(self, prefix: str) -> None:
        while len(prefix) > self._root_length and self._merge(prefix[:-1]):
            prefix = prefix[:-1]

    def _merge(self, fork: str) -> bool:
        low, high = self._leaves.get(fork + "0"), self._leaves.get(fork + "1")
        if low is None or high is None:
            return False
        if _is_too_large(len(low.entries) + len(high.entries), low.size + high.size):
            return False
        joined: _Leaf[T] = _Leaf()
        self._made = None
        joined.entries = low.entries | high.entries
        joined.size = low.size + high.size
        del self._leaves[fork + "0"], self._leaves[fork + "1"]
        self._forks.discard(fork)
        self._leaves[fork] = joined
        return True

    def leaves(self) -> Sequence[T]:
        """Return what is made of the leaves that are not empty, in order of their prefixes."""
        if self._made is None:
            found = [(prefix, leaf) for prefix, leaf in sorted(self._leaves.items()) if leaf.entries]
            self._made = [self._content(prefix, leaf) for prefix, leaf in found]
            self._places = {prefix: place for place, (prefix, _) in enumerate(found)}
        elif self._changed:
            self._made = list(self._made)  # the caller of before keeps its own
            for prefix in self._changed:
                self._made[self._places[prefix]] = self._content(prefix, self._leaves[prefix])
        self._changed.clear()
        return self._made

    def _content(self, prefix: str, leaf: _Leaf[T]) -> T:
        if leaf.made is None:
            content = b"[" + b",".join(leaf.entries[key] for key in sorted(leaf.entries)) + b"]"
            leaf.made = self._make(prefix, content)
        return leaf.made


def _is_too_large(entries: int, size: int) -> bool:
    return entries > 1 and (entries > LEAF_ENTRIES or size > CHUNK_LIMIT)


def key_bits(key: str) -> str:
    """Return the bits of a key's SHA-256."""
    return f"{int.from_bytes(hashlib.sha256(key.encode()).digest()):0256b}"
