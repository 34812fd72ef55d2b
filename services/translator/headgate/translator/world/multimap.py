"""Several values for each key."""

from collections.abc import Collection, Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

FEW = 8
"""Up to so many values of a key are in a tuple: most keys have one or two, and a set takes four times the memory."""


class Multimap(Generic[K, V]):
    """Which values a key has; knows the first one and the last."""

    def __init__(self) -> None:
        self._values: dict[K, tuple[V, ...] | set[V]] = {}

    def of(self, key: K) -> Collection[V]:
        """Return the values of a key."""
        return self._values.get(key, ())

    @property
    def keys(self) -> Collection[K]:
        """What has values."""
        return self._values.keys()

    def add(self, key: K, value: V) -> bool:
        """Add a value; return whether it is the key's first."""
        found = self._values.get(key)
        if found is None:
            self._values[key] = (value,)
        elif isinstance(found, set):
            found.add(value)
        elif value not in found:
            self._values[key] = (*found, value) if len(found) < FEW else {*found, value}
        return found is None

    def add_to_each(self, keys: Iterable[K], value: V) -> list[K]:
        """Add a value to several keys, which are all different; return those of which it is the first."""
        values, alone = self._values, (value,)
        first = []
        for key in keys:
            if values.setdefault(key, alone) is alone:
                first.append(key)
            else:
                self.add(key, value)
        return first

    def discard(self, key: K, value: V) -> bool:
        """Remove a value; return whether the key has none left."""
        found = self._values.get(key)
        if isinstance(found, set):
            found.discard(value)
        elif found is not None:
            found = self._values[key] = tuple(other for other in found if other != value)
        if not found:
            self._values.pop(key, None)
        return not found
