"""A mapping that shares with its successor whatever did not change.

A table has 100,000 hosts, of which most revisions change one. A copy of a dictionary of all takes milliseconds, again
when it is freed, and again in each collection of cycles that passes over it. Here entries are spread by their hashes
over buckets, and a change copies those that it touches: some hundred entries, and the list of the buckets.

Rejected: changing one dictionary in place when a revision is made current. What holds the revision before would see
the next one, and a revision that changes all hosts would be one long step.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_IN_ONE: Final = 1024
"""Entries of a map that is one bucket."""
BUCKETS: Final = 1024
"""Of a map that was larger once; a power of two. At a million entries each has a thousand."""


class PersistentMap(Generic[K, V]):
    """An immutable mapping to values that are not None; `edit` makes the next one. Its order is none."""

    __slots__ = ("_buckets", "_mask", "_size")

    def __init__(self, buckets: list[dict[K, V]], size: int) -> None:
        """Take buckets that nothing else changes, as `MapEdit` has spread them."""
        self._buckets = buckets
        self._mask = len(buckets) - 1
        self._size = size

    @classmethod
    def of(cls, entries: Mapping[K, V]) -> "PersistentMap[K, V]":
        """Return a map of these entries."""
        edit: MapEdit[K, V] = MapEdit([{}], 0)
        for key, value in entries.items():
            edit.put(key, value)
        return edit.done()

    def get(self, key: K) -> V | None:
        """Return the value of a key, None if there is none."""
        return self._buckets[hash(key) & self._mask].get(key)

    def __getitem__(self, key: K) -> V:
        """Return the value of a key. Raises KeyError."""
        return self._buckets[hash(key) & self._mask][key]

    def __contains__(self, key: object) -> bool:
        """Tell whether there is a key."""
        return key in self._buckets[hash(key) & self._mask]

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._size

    def __iter__(self) -> Iterator[K]:
        """Yield the keys."""
        for bucket in self._buckets:
            yield from bucket

    def values(self) -> Iterator[V]:
        """Yield the values."""
        for bucket in self._buckets:
            yield from bucket.values()

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield the keys with their values."""
        for bucket in self._buckets:
            yield from bucket.items()

    def edit(self) -> "MapEdit[K, V]":
        """Begin the next map."""
        return MapEdit(list(self._buckets), self._size)


class MapEdit(Generic[K, V]):
    """A map in the making; the one that it began with stays as it is."""

    __slots__ = ("_buckets", "_own", "_size")

    def __init__(self, buckets: list[dict[K, V]], size: int) -> None:
        """Take a list of its own, of buckets that belong to others."""
        self._buckets = buckets
        self._own: set[int] = set()
        """Places of buckets that were copied."""
        self._size = size

    def get(self, key: K) -> V | None:
        """Return the value of a key, None if there is none."""
        return self._buckets[hash(key) & (len(self._buckets) - 1)].get(key)

    def put(self, key: K, value: V) -> None:
        """Add or replace a value."""
        bucket = self._bucket_of(key)
        self._size -= len(bucket)
        bucket[key] = value
        self._size += len(bucket)
        if self._size > MOST_IN_ONE and len(self._buckets) == 1:
            self._spread()

    def discard(self, key: K) -> None:
        """Remove a key, if it is there."""
        if self.get(key) is not None:
            del self._bucket_of(key)[key]
            self._size -= 1

    def done(self) -> PersistentMap[K, V]:
        """Return the map; the edit is over."""
        return PersistentMap(self._buckets, self._size)

    def _bucket_of(self, key: K) -> dict[K, V]:
        """Return the bucket of a key, to be changed."""
        place = hash(key) & (len(self._buckets) - 1)
        if place not in self._own:
            self._own.add(place)
            self._buckets[place] = self._buckets[place].copy()
        return self._buckets[place]

    def _spread(self) -> None:
        entries = self._buckets[0]
        self._buckets = [{} for _ in range(BUCKETS)]
        self._own = set(range(BUCKETS))
        for key, value in entries.items():
            self._buckets[hash(key) & (BUCKETS - 1)][key] = value
