"""One worker's view of what all workers of its gateway count."""

import math
import mmap
from hashlib import blake2b
from typing import Final

from headgate.gateway.counting.layout import (
    BUCKET_BYTES,
    BUCKETS,
    KEY,
    KEYS,
    NUMBERS,
    SECRET_BYTES,
    UNTIL,
    UNTIL_AT,
    VERSION,
    VERSION_AT,
    region_at,
    size_of,
)

Numbers = tuple[float, float, float, float]
"""Three that mean what the one that counts says, and the monotonic second until which they matter."""
FOR_EVER: Final = math.inf
"""The end of what matters until it is withdrawn."""
READINGS: Final = 4
"""Of a bucket that changes while it is read; after these a cell counts as not there."""
MASK: Final = (1 << 64) - 1
_FREE: Final = 0


class Peers:
    """Reads the cells of the other workers, and writes this one's.

    Args:
        descriptor: of the memory; it may be closed afterwards.
        workers: how many there are.
        index: which one this is.
    """

    __slots__ = ("_memory", "_others", "_own", "_secret")

    def __init__(self, descriptor: int, workers: int, index: int) -> None:
        self._memory = mmap.mmap(descriptor, size_of(workers))
        self._secret = bytes(self._memory[:SECRET_BYTES])
        self._own = region_at(index)
        self._others = tuple(region_at(other) for other in range(workers) if other != index)

    def place(self, name: str) -> int:
        """Return the key of what is counted under a name, which clients that know the name cannot tell."""
        digest = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8, key=self._secret).digest()
        return int.from_bytes(digest, "little") or 1

    def read(self, place: int) -> list[Numbers]:
        """Return what other workers show under a key, also what does not matter any more."""
        bucket = place % BUCKETS * BUCKET_BYTES
        found: list[Numbers] = []
        for region in self._others:
            if (numbers := self._read_cell(region + bucket, place)) is not None:
                found.append(numbers)
        return found

    def _read_cell(self, bucket: int, place: int) -> Numbers | None:
        memory = self._memory
        for _ in range(READINGS):
            version = VERSION.unpack_from(memory, bucket + VERSION_AT)
            keys = KEYS.unpack_from(memory, bucket)
            if place not in keys:
                return None
            numbers = NUMBERS.unpack_from(memory, bucket + KEYS.size + NUMBERS.size * keys.index(place))
            # Meanwhile the cell may have become that of another key, and perhaps that of this one again.
            if VERSION.unpack_from(memory, bucket + VERSION_AT) == version:
                return numbers
        return None

    def write(self, place: int, first: float, second: float, third: float, until: float) -> None:
        """Show numbers under a key until a monotonic second.

        If there is no room they take that of what ends first; what ends by `withdraw` alone is never lost for it, and
        where it takes all there is nothing is shown.
        """
        memory, bucket = self._memory, self._own + place % BUCKETS * BUCKET_BYTES
        keys = KEYS.unpack_from(memory, bucket)
        if place in keys:
            index = keys.index(place)
            NUMBERS.pack_into(memory, bucket + KEYS.size + NUMBERS.size * index, first, second, third, until)
            return
        index = keys.index(_FREE) if _FREE in keys else self._ends_first(bucket)
        if index < 0:
            return
        # Free first, then another version, and only then other numbers: who found the old key before sees the version
        # change before any number of the new one, so nobody takes those of one key for another's.
        KEY.pack_into(memory, bucket + KEY.size * index, _FREE)
        version = VERSION.unpack_from(memory, bucket + VERSION_AT)[0]
        VERSION.pack_into(memory, bucket + VERSION_AT, version + 1 & MASK)
        NUMBERS.pack_into(memory, bucket + KEYS.size + NUMBERS.size * index, first, second, third, until)
        KEY.pack_into(memory, bucket + KEY.size * index, place)

    def _ends_first(self, bucket: int) -> int:
        """Return which cell of this worker's bucket ends first; -1 if none ever does."""
        base = bucket + KEYS.size + UNTIL_AT
        ends = [UNTIL.unpack_from(self._memory, at)[0] for at in range(base, bucket + VERSION_AT, NUMBERS.size)]
        first = min(ends)
        return -1 if first == FOR_EVER else ends.index(first)

    def withdraw(self, place: int) -> None:
        """Show nothing under a key any more."""
        bucket = self._own + place % BUCKETS * BUCKET_BYTES
        keys = KEYS.unpack_from(self._memory, bucket)
        if place in keys:
            KEY.pack_into(self._memory, bucket + KEY.size * keys.index(place), _FREE)
