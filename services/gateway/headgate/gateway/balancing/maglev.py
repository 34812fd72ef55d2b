"""Maglev hashing: a table from keys to items that one look-up reads, whatever the number of items.

Each item has an order of its own in which it wants the entries of the table. Items take turns by weight, and each takes
the first entry of its order that is free (Eisenbud and others, "Maglev: A Fast and Reliable Software Network Load
Balancer", NSDI 2016, section 3.4; Envoy, `maglev_lb.cc`). Shares are even to one entry. A change of the items moves the
share of those that changed, and few other keys.

Unlike in Envoy the table does not change with health: keys of an item that is skipped go on to other entries, so that
no other key moves, and they come back. Which entries these are is drawn from the key. The entries that follow would not
do: orders are arithmetic, so that few items are behind most entries of another one.
"""

import heapq
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from headgate.gateway.balancing.hashing import IsSkipped, NamedWeight, mix_bits
from headgate.gateway.model.steps import Steps

LOOKS_AT_ONCE: Final = 16384
"""Entries looked at between two turns of the event loop: half a millisecond compiled, two without."""
_LOOKS_PER_TURN: Final = 8
"""Whose turn is next costs as much as so many looks."""
NAMES_AT_ONCE: Final = 512
COPIED_AT_ONCE: Final = 16384
ENTRIES_DRAWN: Final = 256
"""In which an item that is not skipped is looked for."""
_FREE: Final = -1


class Maglev:
    """A table of Maglev. Made by `make_maglev`.

    Args:
        entries: the index of an item each; empty without items.
        count: how many items there are; with more than entries, some have none.
    """

    __slots__ = ("_count", "_entries")

    def __init__(self, entries: "array[int]", count: int) -> None:
        self._entries = entries
        self._count = count

    @property
    def size(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    def find(self, key: int, is_skipped: IsSkipped | None = None) -> int | None:
        """Read the key's entry, then others that are drawn from it, then ask all items."""
        entries = self._entries
        size = len(entries)
        if not size:
            return None
        owner = entries[key % size]
        if is_skipped is None or not is_skipped(owner):
            return owner
        skipped = {owner}
        for step in range(1, ENTRIES_DRAWN):
            owner = entries[mix_bits(key + step) % size]
            if owner in skipped:
                continue
            if not is_skipped(owner):
                return owner
            skipped.add(owner)
            if len(skipped) == self._count:
                return None
        for step in range(self._count):
            owner = (key + step) % self._count
            if owner not in skipped and not is_skipped(owner):
                return owner
        return None


class _Filling:
    """A table that is being filled.

    Args:
        size: how many entries it has, a prime.
        weights: of the items, above 0.
    """

    def __init__(self, size: int, weights: Sequence[int]) -> None:
        self.entries: list[int] = [_FREE] * size
        self._size = size
        self._left = size
        self._weights = weights
        self._next: list[int] = []
        """The entry that each item wants next."""
        self._skips: list[int] = []
        self._taken = [0] * len(weights)
        self._due: list[tuple[float, int]] = []
        """Whose turn is when: an item of weight w has one each 1 / w, the first ones all at 0."""

    def add(self, names: Sequence[bytes]) -> None:
        """Give the next items the orders in which they want the entries, and their first turns."""
        for name in names:
            digest = blake2b(name, digest_size=16).digest()
            self._due.append((0.0, len(self._due)))
            self._next.append(int.from_bytes(digest[:8], "little") % self._size)
            self._skips.append(int.from_bytes(digest[8:], "little") % (self._size - 1) + 1)

    def advance(self) -> bool:
        """Let some items have their turns; False when the table is full."""
        entries, size, due = self.entries, self._size, self._due
        looks = LOOKS_AT_ONCE
        while self._left:
            index = due[0][1]
            at, skip = self._next[index], self._skips[index]
            while entries[at] != _FREE and looks > 0:
                looks -= 1
                at += skip
                if at >= size:
                    at -= size
            self._next[index] = at
            if looks <= 0:
                return True
            entries[at] = index
            self._left -= 1
            looks -= _LOOKS_PER_TURN
            taken = self._taken[index] + 1
            self._taken[index] = taken
            heapq.heapreplace(due, (taken / self._weights[index], index))
        return False


def make_maglev(items: Sequence[NamedWeight], size: int) -> Steps[Maglev]:
    """Fill a table of so many entries, a prime, in steps."""
    table = array("I")
    if not items:
        return Maglev(table, 0)
    filling = _Filling(size, [item.weight for item in items])
    for start in range(0, len(items), NAMES_AT_ONCE):
        filling.add([item.name for item in items[start : start + NAMES_AT_ONCE]])
        yield
    while filling.advance():
        yield
    for start in range(0, size, COPIED_AT_ONCE):
        table.extend(filling.entries[start : start + COPIED_AT_ONCE])
        yield
    return Maglev(table, len(items))
