"""Consistent hashing: the same key goes to the same item, and a change of the items moves few keys.

Every gateway that has the same endpoints decides the same, as nothing but their addresses and weights goes in.
"""

import functools
import itertools
import math
import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.common.table import HashKey
from headgate.gateway.model.steps import Steps

if TYPE_CHECKING:
    from headgate.gateway.proxy.heads.facts import RequestFacts
    from headgate.gateway.proxy.request_source import RequestSource

POINTS_PER_WEIGHT = 160
"""As nginx's `hash ... consistent`."""
MAX_POINTS = 1 << 15
"""Of one ring. For 200 names so many take 13 ms to make, for 10,000 names 28 ms, and a third of that from a ring that
has most of them already; all in steps, between which requests run."""
POINTS_AT_ONCE = 2048
"""Points worked on between two turns of the event loop: about a millisecond."""
_NAMES_PER_POINT = 4
"""Hashing a name once more costs as much as so many points."""
_PER_DIGEST = struct.Struct("<16I")
_MASK = (1 << 64) - 1
_OWNER = (1 << 32) - 1


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
    """A ketama ring: every item has points on it by weight, a key belongs to the next point. Made by `make_ring`.

    Args:
        names: of the items, in their order.
        counts: how many points each has.
        entries: the points in order, each with its item's index in the lower 32 bits.
    """

    __slots__ = ("_counts", "_entries", "_names")

    def __init__(self, names: Sequence[bytes], counts: Sequence[int], entries: Sequence[int]) -> None:
        self._names = names
        self._counts = counts
        self._entries = entries

    def find(self, key: int, is_skipped: IsSkipped | None = None) -> int | None:
        """Walk the ring from the key on."""
        entries = self._entries
        size = len(entries)
        start = bisect_left(entries, (key & 0xFFFFFFFF) << 32)
        if is_skipped is None:
            return entries[start % size] & _OWNER if size else None
        seen: set[int] = set()
        for step in range(size):
            owner = entries[(start + step) % size] & _OWNER
            if owner in seen:
                continue
            if not is_skipped(owner):
                return owner
            seen.add(owner)
            if len(seen) == len(self._names):
                return None
        return None

    def hand_on(self, names: Sequence[bytes], counts: Sequence[int]) -> Steps[tuple[list[int], frozenset[int]]]:
        """Return the points that another ring has as well, in order, and the indices there of their items."""
        places = {(name, count): index for index, (name, count) in enumerate(zip(names, counts, strict=True))}
        yield
        moved = [places.get(owned, -1) for owned in zip(self._names, self._counts, strict=True)]
        known = frozenset(moved) - {-1}
        if len(places) < len(names) or len(known) < len(moved) - moved.count(-1):
            return [], frozenset()  # two items of one name
        yield
        kept: list[int] = []
        for start in range(0, len(self._entries), POINTS_AT_ONCE):
            part = self._entries[start : start + POINTS_AT_ONCE]
            kept += [(entry & ~_OWNER) | to for entry in part if (to := moved[entry & _OWNER]) >= 0]
            yield
        return kept, known


def make_ring(items: Sequence[NamedWeight], previous: ConsistentTable | None = None) -> Steps[HashRing]:
    """Make a ring; what it has in common with a previous one is taken over, which is the same but cheaper."""
    names, counts = [item.name for item in items], point_counts(items)
    runs: list[list[int]] = []
    known: frozenset[int] = frozenset()
    if isinstance(previous, HashRing) and sum(counts) > POINTS_AT_ONCE:
        yield
        kept, known = yield from previous.hand_on(names, counts)
        runs.append(kept)
    run: list[int] = []
    cost = 0
    for index, (name, count) in enumerate(zip(names, counts, strict=True)):
        if index in known:
            continue
        run += [(point << 32) | index for point in _points_of(name, count)]
        cost += count + _NAMES_PER_POINT
        if cost > POINTS_AT_ONCE:
            runs.append(sorted(run))
            run, cost = [], 0
            yield
    runs.append(sorted(run))
    return HashRing(names, counts, (yield from _merge(runs)))


def _merge(runs: Sequence[list[int]]) -> Steps[list[int]]:
    """Return all that is in several sorted lists, sorted."""
    while len(runs) > 1:
        merged = []
        for first in range(0, len(runs), 2):
            pair = list(itertools.chain(*runs[first : first + 2]))
            pair.sort()  # two runs that are in order: a merge
            merged.append(pair)
            yield
        runs = merged
    return runs[0]


def point_counts(items: Sequence[NamedWeight]) -> list[int]:
    """Return how many points each item gets: 160 for each unit of weight, fewer for all if the ring became too long."""
    weights = [item.weight for item in items]
    unit = math.gcd(*weights) or 1
    total = sum(weights) // unit
    scale = min(POINTS_PER_WEIGHT, MAX_POINTS / total) if total else 0
    counts = {weight: max(1, round(weight // unit * scale)) for weight in set(weights)}
    return [counts[weight] for weight in weights]


def _points_of(name: bytes, count: int) -> list[int]:
    points: list[int] = []
    for number in range(math.ceil(count / 16)):
        points += _PER_DIGEST.unpack(blake2b(b"%b#%d" % (name, number)).digest())
    return points[:count]


class Rendezvous:
    """Highest random weight: every item draws a number for the key, the greatest wins. Made by `make_rendezvous`."""

    __slots__ = ("_seeds", "_weights")

    def __init__(self, seeds: Sequence[int], weights: Sequence[int]) -> None:
        self._seeds = seeds
        self._weights = None if len(set(weights)) <= 1 else weights

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
        score = ((mix_bits(drawn) >> 11) + 0.5) / (1 << 53)
        return score if self._weights is None else -self._weights[index] / math.log(score)


def make_rendezvous(items: Sequence[NamedWeight]) -> Steps[Rendezvous]:
    """Hash the names of all items."""
    seeds: list[int] = []
    for start in range(0, len(items), POINTS_AT_ONCE):
        seeds += [hash_bytes(item.name) for item in items[start : start + POINTS_AT_ONCE]]
        yield
    return Rendezvous(seeds, [item.weight for item in items])


def mix_bits(value: int) -> int:
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
        case "query-string":
            return lambda facts: facts.query or None
        case "consumer":
            return lambda facts: facts.consumer or facts.client or None
        case "mqtt-client-id":
            return _mqtt_client_id


def _header(name: bytes, facts: "RequestFacts") -> bytes | None:
    return facts.header(name)


def _cookie(name: bytes, facts: "RequestFacts") -> bytes | None:
    return facts.cookie(name)


def _query_value(name: bytes, facts: "RequestFacts") -> bytes | None:
    return facts.query_value(name)


def _mqtt_client_id(facts: "RequestFacts") -> bytes | None:
    return (facts.target if facts.scheme == b"mqtt" else b"") or facts.client or None


def level_of(key: int, shares: Sequence[float]) -> int:
    """Return which of several levels a key belongs to, by their shares of the load."""
    drawn = mix_bits(key) / (1 << 64)
    for index, share in enumerate(shares):
        drawn -= share
        if drawn < 0:
            return index
    return max(index for index, share in enumerate(shares) if share)
