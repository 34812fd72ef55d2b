"""Consistent hashing: the same key goes to the same item, and a change of the items moves few keys.

Every gateway that has the same endpoints decides the same, as nothing but their addresses and weights goes in.
"""

import functools
import math
import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.common.table import HashKey

if TYPE_CHECKING:
    from headgate.gateway.proxy.facts import RequestFacts
    from headgate.gateway.proxy.seam import RequestSource

POINTS_PER_WEIGHT = 160
"""As nginx's `hash ... consistent`."""
MAX_POINTS = 1 << 15
"""Of one ring: it takes about 10 ms to make, during which no request runs."""
_PER_DIGEST = struct.Struct("<16I")
_MASK = (1 << 64) - 1


class NamedWeight(NamedTuple):
    """An item as hashing sees it."""

    name: bytes
    weight: int


IsSkipped = Callable[[int], bool]


class ConsistentTable(Protocol):
    """Finds the item of a key."""

    def find(self, key: int, is_skipped: IsSkipped | None = None) -> int | None:
        """Return the index of the item for a 64-bit key, the next best if that is skipped; None if all are."""


def hash_bytes(value: bytes) -> int:
    """Return 64 bits."""
    return int.from_bytes(blake2b(value, digest_size=8).digest(), "little")


class HashRing:
    """A ketama ring: every item has points on it by weight, a key belongs to the next point."""

    __slots__ = ("_count", "_owners", "_points")

    def __init__(self, items: Sequence[NamedWeight]) -> None:
        self._count = len(items)
        owned = sorted(
            (point << 32) | index
            for index, (item, count) in enumerate(zip(items, point_counts(items), strict=True))
            for point in _points_of(item.name, count)
        )
        self._points = [entry >> 32 for entry in owned]
        self._owners = [entry & 0xFFFFFFFF for entry in owned]

    def find(self, key: int, is_skipped: IsSkipped | None = None) -> int | None:
        """Walk the ring from the key on."""
        size = len(self._owners)
        start = bisect_left(self._points, key & 0xFFFFFFFF)
        if is_skipped is None:
            return self._owners[start % size] if size else None
        seen: set[int] = set()
        for step in range(size):
            owner = self._owners[(start + step) % size]
            if owner in seen:
                continue
            if not is_skipped(owner):
                return owner
            seen.add(owner)
            if len(seen) == self._count:
                return None
        return None


def point_counts(items: Sequence[NamedWeight]) -> list[int]:
    """Return how many points each item gets: 160 for each unit of weight, fewer for all if the ring became too long."""
    unit = math.gcd(*(item.weight for item in items)) or 1
    total = sum(item.weight for item in items) // unit
    scale = min(POINTS_PER_WEIGHT, MAX_POINTS / total) if total else 0
    return [max(1, round(item.weight // unit * scale)) for item in items]


def _points_of(name: bytes, count: int) -> list[int]:
    points: list[int] = []
    for number in range(math.ceil(count / 16)):
        points += _PER_DIGEST.unpack(blake2b(b"%b#%d" % (name, number)).digest())
    return points[:count]


class Rendezvous:
    """Highest random weight: every item draws a number for the key, the greatest wins."""

    __slots__ = ("_seeds", "_weights")

    def __init__(self, items: Sequence[NamedWeight]) -> None:
        self._seeds = [hash_bytes(item.name) for item in items]
        equal = len({item.weight for item in items}) <= 1
        self._weights = None if equal else [item.weight for item in items]

    def find(self, key: int, is_skipped: IsSkipped | None = None) -> int | None:
        """Let all that are not skipped draw."""
        best, best_score = None, -1.0
        for index, seed in enumerate(self._seeds):
            if is_skipped is None or not is_skipped(index):
                score = self._score(key ^ seed, index)
                if score > best_score:
                    best, best_score = index, score
        return best

    def _score(self, drawn: int, index: int) -> float:
        """Return a draw between 0 and 1 as a score; of weight w -w / ln(u) (Schindelhauer and Schomaker)."""
        score = ((_mix(drawn) >> 11) + 0.5) / (1 << 53)
        return score if self._weights is None else -self._weights[index] / math.log(score)


def _mix(value: int) -> int:
    """Spread 64 bits (splitmix64's finaliser)."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


Read = Callable[["RequestFacts"], bytes | None]


class RequestHash:
    """What of a request is hashed."""

    __slots__ = ("_readers",)

    def __init__(self, keys: Sequence[HashKey]) -> None:
        self._readers = tuple(_reader(key) for key in keys)

    def of(self, source: "RequestSource") -> int | None:
        """Return 64 bits; None if the request has none of it."""
        facts = source.facts()
        values = [read(facts) for read in self._readers]
        if all(value is None for value in values):
            return None
        return hash_bytes(b"\0".join(value or b"" for value in values))


def _reader(key: HashKey) -> Read:
    name = key.name.encode()
    match key.source:
        case "header":
            return functools.partial(_header, name.lower())
        case "cookie":
            return functools.partial(_cookie, name)
        case "query":
            return functools.partial(_query_value, name)
        case "client":
            return lambda facts: facts.client or None
        case "host":
            return lambda facts: facts.host or None
        case "path":
            return lambda facts: facts.path
        case "uri":
            return lambda facts: facts.target


def _header(name: bytes, facts: "RequestFacts") -> bytes | None:
    return facts.header(name)


def _cookie(name: bytes, facts: "RequestFacts") -> bytes | None:
    return facts.cookie(name)


def _query_value(name: bytes, facts: "RequestFacts") -> bytes | None:
    return facts.query_value(name)


def level_of(key: int, shares: Sequence[float]) -> int:
    """Return which of several levels a key belongs to, by their shares of the load."""
    drawn = _mix(key) / (1 << 64)
    for index, share in enumerate(shares):
        drawn -= share
        if drawn < 0:
            return index
    return max(index for index, share in enumerate(shares) if share)
