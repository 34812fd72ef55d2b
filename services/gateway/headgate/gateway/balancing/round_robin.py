"""Smooth weighted round robin over anything.

Each turn raises every item's credit by its weight, takes the item with the most credit and lowers it by the sum of the
weights (nginx, `ngx_http_upstream_round_robin.c`). Over one period every item gets exactly its weight, and the turns of
a heavy item are spread rather than bunched. Equal weights, which are nearly all there are, reduce to an index.

Rejected: a precomputed sequence (its length is the sum of the weights, up to 65,535 for each item).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

T = TypeVar("T")

MAX_OFFSET: Final = 64
"""Turns that a weighted ring is advanced by at most on start: enough to tell workers apart, cheap to compute."""


class Turns(Protocol[T]):
    """Items that take turns by weight: a `SmoothRoundRobin`, or `DeadlineTurns` for many items of unequal weights."""

    @property
    def items(self) -> tuple[T, ...]:
        """Items that get turns, in the order given."""

    def choose(self, is_skipped: Callable[[T], bool] | None = None) -> T | None:
        """Return whose turn it is; a skipped item only if all are skipped, None if there is no item."""

    def waits(self) -> Mapping[T, float]:
        """Return how long each item waits, as a share of the time between two turns of it; {} if that is not known."""

    def adopt(self, previous: "Turns[T]") -> None:
        """Go on where others stood, as far as they share items."""


class SmoothRoundRobin(Generic[T]):
    """Items that take turns by weight.

    Args:
        items: hashable items with weights; those of weight 0 never get a turn.
        offset: how many turns to begin with, so that the rings of several workers do not march in step.
    """

    __slots__ = ("_credits", "_items", "_next", "_total", "_weights")

    def __init__(self, items: Iterable[tuple[T, int]], offset: int = 0) -> None:
        weighted = [(item, weight) for item, weight in items if weight > 0]
        self._set_items([item for item, _ in weighted], _reduce([weight for _, weight in weighted]), offset)

    @classmethod
    def of_equals(cls, items: Sequence[T], offset: int = 0) -> "SmoothRoundRobin[T]":
        """Return a ring of items that all have the same weight."""
        ring = cls(())
        ring._set_items(items, None, offset)
        return ring

    def _set_items(self, items: Sequence[T], weights: tuple[int, ...] | None, offset: int) -> None:
        self._items = tuple(items)
        self._next = offset % len(self._items) if self._items else 0
        self._weights = weights
        self._total = len(self._items) if weights is None else sum(weights)
        self._credits = [] if weights is None else [0] * len(weights)
        if weights is not None:
            for _ in range(offset % min(self._total, MAX_OFFSET)):
                self._take_turn(weights)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> tuple[T, ...]:
        """Items that get turns, in the order given."""
        return self._items

    def choose(self, is_skipped: Callable[[T], bool] | None = None) -> T | None:
        """Return whose turn it is; a skipped item only if all are skipped, None if there is no item."""
        if not self._items:
            return None
        if is_skipped is not None:
            return self._choose_skipping(is_skipped)
        if self._weights is not None:
            return self._take_turn(self._weights)
        turn = self._next
        self._next = turn + 1 if turn + 1 < len(self._items) else 0
        return self._items[turn]

    def waits(self) -> Mapping[T, float]:
        """Return how long each item waits, 0 to 1; {} for unequal weights, whose turns are not that regular."""
        count = len(self._items)
        if self._weights is not None:
            return {}
        return {item: (index - self._next) % count / count for index, item in enumerate(self._items)}

    def adopt(self, previous: Turns[T]) -> None:
        """Go on where others stood, as far as they share items."""
        if self._weights is None:
            self._begin_with(_in_turn(previous))
        elif isinstance(previous, SmoothRoundRobin) and previous._weights is not None:
            # Credits are in units of the weights: left as they are, a much greater sum of weights would run for long.
            known = dict(zip(previous._items, previous._credits, strict=True))
            self._credits = [known.get(item, 0) * self._total // previous._total for item in self._items]

    def _begin_with(self, upcoming: Iterable[T]) -> None:
        """Let the first of these that there is have the next turn."""
        own = set(self._items)
        first = next((item for item in upcoming if item in own), None)
        if first is not None:
            self._next = self._items.index(first)

    def _take_turn(self, weights: tuple[int, ...]) -> T:
        credits = self._credits
        best = 0
        for index, weight in enumerate(weights):
            credits[index] += weight
            if credits[index] > credits[best]:
                best = index
        credits[best] -= self._total
        return self._items[best]

    def _choose_skipping(self, is_skipped: Callable[[T], bool]) -> T | None:
        left = [index for index, item in enumerate(self._items) if not is_skipped(item)]
        if not left or len(left) == len(self._items):
            return self.choose()
        if self._weights is None:
            best = next((index for index in left if index >= self._next), left[0])
            self._next = (best + 1) % len(self._items)
            return self._items[best]
        for index in left:
            self._credits[index] += self._weights[index]
        best = max(left, key=self._credits.__getitem__)
        self._credits[best] -= sum(self._weights[index] for index in left)
        return self._items[best]


def _reduce(weights: list[int]) -> tuple[int, ...] | None:
    """Return the smallest weights of the same proportions; None if all are equal."""
    if len(set(weights)) < 2:
        return None
    divisor = math.gcd(*weights)
    return tuple(weight // divisor for weight in weights)


def _in_turn(turns: Turns[T]) -> Iterable[T]:
    """Return items as their turns come, roughly where weights are unequal."""
    if isinstance(turns, SmoothRoundRobin):
        return turns._items[turns._next :] + turns._items[: turns._next]
    waits = turns.waits()
    return sorted(waits, key=waits.__getitem__)
