"""Turns by weight among many items, for a cost that grows with the logarithm of their number.

Each item has a deadline, the earliest is next, and gets a new one after a time that is the inverse of its weight
(earliest deadline first, as Envoy's scheduler does it). `SmoothRoundRobin` looks at every item in every turn: for a
thousand of them that is 0.15 ms. It is exact and regular, so it stays the way of the few.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

from headgate.gateway.balancing.round_robin import SmoothRoundRobin, Turns

FEW = 32
"""Items of unequal weights that are all looked at: some microseconds in each turn."""
_SPREAD = (5**0.5 - 1) / 2
T = TypeVar("T")


class DeadlineTurns(Generic[T]):
    """Items that take turns by weight; over a period each gets its weight, give or take one turn.

    Args:
        items: hashable items with weights above 0.
        offset: turns by which the beginning is moved, so that those of several workers do not march in step.
    """

    __slots__ = ("_heap", "_items", "_pauses")

    def __init__(self, items: Sequence[tuple[T, int]], offset: int = 0) -> None:
        self._items = tuple(item for item, _ in items)
        self._pauses = [1 / weight for _, weight in items]
        """Time between two turns, by item."""
        # Not all at once: multiples of the golden ratio spread whichever items have the same weight.
        self._heap = [(pause * ((index + offset) * _SPREAD % 1.0), index) for index, pause in enumerate(self._pauses)]
        heapify(self._heap)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> tuple[T, ...]:
        """Items that get turns, in the order given."""
        return self._items

    def choose(self, is_skipped: Callable[[T], bool] | None = None) -> T | None:
        """Return whose turn it is; a skipped item only if all are skipped, None if there is no item."""
        heap = self._heap
        if not heap:
            return None
        passed: list[tuple[float, int]] = []
        if is_skipped is not None:
            while heap and is_skipped(self._items[heap[0][1]]):
                passed.append(heappop(heap))
            if not heap:
                heap.append(passed.pop(0))
        deadline, index = heap[0]
        heapreplace(heap, (deadline + self._pauses[index], index))
        for entry in passed:
            heappush(heap, entry)
        return self._items[index]

    def waits(self) -> Mapping[T, float]:
        """Return for each item the share of its pause that is left, 0 to 1."""
        now = self._heap[0][0] if self._heap else 0.0
        return {self._items[index]: (deadline - now) / self._pauses[index] for deadline, index in self._heap}

    def adopt(self, previous: Turns[T]) -> None:
        """Let items wait for the rest of the pause that they had; those that are new wait as they begin."""
        pauses, wait_of = self._pauses, previous.waits().get
        known = list(map(wait_of, self._items))
        self._heap = [
            (deadline, index) if (wait := known[index]) is None else (pauses[index] * wait, index)
            for deadline, index in self._heap
        ]
        heapify(self._heap)


def turns_by_weight(items: Iterable[tuple[T, int]], offset: int = 0) -> Turns[T]:
    """Return what lets items take turns; those of weight 0 get none. The offset is that of both ways."""
    weighted = [item for item in items if item[1] > 0]
    if len(weighted) > FEW and len({weight for _, weight in weighted}) > 1:
        return DeadlineTurns(weighted, offset)
    return SmoothRoundRobin(weighted, offset)
