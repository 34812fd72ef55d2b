"""Routes of one host by path, where what wins is decided when the table is compiled; immutable."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from headgate.gateway.proxy.request_source import RequestSource

T = TypeVar("T")
SLASH: Final = 0x2F


class PathIndex(Generic[T]):
    """Routes of exact paths, and of prefixes that end with a segment.

    Args:
        exact: the winner for each path.
        prefixes: for each prefix, without its trailing slash.
    """

    __slots__ = ("_exact", "_lengths", "_prefixes")

    def __init__(self, exact: dict[bytes, T], prefixes: dict[bytes, T]) -> None:
        self._exact = exact
        self._prefixes = prefixes
        self._lengths = longest_first(prefixes)

    def match(self, path: bytes, source: "RequestSource") -> T | None:
        """Return the winning route of a path."""
        found = self._exact.get(path)
        if found is not None:
            return found
        size = len(path)
        for length in self._lengths:
            if length > size or (0 < length < size and path[length] != SLASH):
                continue
            found = self._prefixes.get(path[:length])
            if found is not None:
                return found
        return None


class StartIndex(Generic[T]):
    """Routes of exact paths, and of prefixes that are mere text.

    Args:
        exact: the winner for each path.
        starts: for each prefix.
    """

    __slots__ = ("_exact", "_lengths", "_starts")

    def __init__(self, exact: dict[bytes, T], starts: dict[bytes, T]) -> None:
        self._exact = exact
        self._starts = starts
        self._lengths = longest_first(starts)

    def match(self, path: bytes, source: "RequestSource") -> T | None:
        """Return the winning route of a path."""
        found = self._exact.get(path)
        if found is not None:
            return found
        for length in self._lengths:
            # A path that is shorter is looked up as a whole, and is as long as no key of this length.
            found = self._starts.get(path[:length])
            if found is not None:
                return found
        return None


def longest_first(keys: Iterable[bytes]) -> tuple[int, ...]:
    """Return the lengths of keys."""
    return tuple(sorted({len(key) for key in keys}, reverse=True))
