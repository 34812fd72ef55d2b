"""Choosing one endpoint of several: the policies that do not look at the request."""

import itertools
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.gateway.balancing.endpoints import EndpointSlot
from headgate.gateway.balancing.latency import PeakLatency
from headgate.gateway.balancing.round_robin import Turns
from headgate.gateway.model.steps import Steps

if TYPE_CHECKING:
    from headgate.gateway.proxy.request_source import RequestSource

BEGUN_AT_ONCE = 1024
"""Endpoints that latency is begun for between two turns of the event loop: about half a millisecond."""
_BLIND_DRAWS = 8
"""Draws before looking for somebody who is left: with few avoided the first or second does."""


class Member(NamedTuple):
    """A slot and its weight, above 0."""

    slot: EndpointSlot
    weight: int


class Picker(Protocol):
    """A policy over a fixed set of endpoints."""

    def choose(self, tried: Collection[EndpointSlot], source: "RequestSource") -> EndpointSlot | None:
        """Choose, a tried one only if there is no other; None if there is nobody."""

    def adopt(self, previous: "Picker") -> None:
        """Go on where another stood, as far as the two have something in common."""


class RoundRobinPicker:
    """Turns by weight."""

    __slots__ = ("ring",)

    def __init__(self, ring: Turns[EndpointSlot]) -> None:
        self.ring = ring

    def choose(self, tried: Collection[EndpointSlot], source: "RequestSource") -> EndpointSlot | None:
        """Give the turn to the next."""
        return self.ring.choose(tried.__contains__ if tried else None)

    def adopt(self, previous: Picker) -> None:
        """Go on in the middle of the round."""
        if isinstance(previous, RoundRobinPicker):
            self.ring.adopt(previous.ring)


class Lottery:
    """Draws by weight."""

    __slots__ = ("_chance", "_members", "_sums")

    def __init__(self, members: Sequence[Member], chance: Random) -> None:
        self._members = tuple(members)
        self._chance = chance
        equal = len({member.weight for member in members}) <= 1
        self._sums = None if equal else tuple(itertools.accumulate(member.weight for member in members))

    def __len__(self) -> int:
        return len(self._members)

    def draw(self, avoided: Collection[EndpointSlot]) -> Member | None:
        """Draw one that is not avoided, with the chances that these have among each other; None if nobody is left."""
        if len(avoided) < len(self._members):
            for _ in range(_BLIND_DRAWS):
                member = self._draw_any()
                if not avoided or member.slot not in avoided:
                    return member
        left = [member for member in self._members if member.slot not in avoided]
        return self._chance.choices(left, [member.weight for member in left])[0] if left else None

    def _draw_any(self) -> Member:
        ticket = self._chance.random()
        if self._sums is None:
            return self._members[int(ticket * len(self._members))]
        return self._members[bisect_right(self._sums, ticket * self._sums[-1])]


class RandomPicker:
    """Each request to anyone, by weight."""

    __slots__ = ("_lottery",)

    def __init__(self, members: Sequence[Member], chance: Random) -> None:
        self._lottery = Lottery(members, chance)

    def choose(self, tried: Collection[EndpointSlot], source: "RequestSource") -> EndpointSlot | None:
        """Draw."""
        drawn = self._lottery.draw(tried) or self._lottery.draw(())
        return drawn.slot if drawn else None

    def adopt(self, previous: Picker) -> None:
        """Chance has no memory."""


Cost = Callable[[Member], float]


class TwoChoicesPicker:
    """Of two drawn by weight the one that costs less; of equals the first drawn.

    Nearly as even as looking at all, without everybody running to the one that looks best (Mitzenmacher, "The power of
    two choices in randomized load balancing").
    """

    __slots__ = ("_cost", "_lottery")

    def __init__(self, members: Sequence[Member], chance: Random, cost: Cost) -> None:
        self._lottery = Lottery(members, chance)
        self._cost = cost

    def choose(self, tried: Collection[EndpointSlot], source: "RequestSource") -> EndpointSlot | None:
        """Draw two and compare."""
        first = self._lottery.draw(tried) or self._lottery.draw(())
        if first is None or len(self._lottery) == 1:
            return first.slot if first else None
        second = self._lottery.draw((*tried, first.slot))
        if second is None or self._cost(first) <= self._cost(second):
            return first.slot
        return second.slot

    def adopt(self, previous: Picker) -> None:
        """What it compares is kept by the slots."""


def load_cost(member: Member) -> float:
    """Requests under way for the weight."""
    return member.slot.active / member.weight


def latency_cost(clock: Callable[[], float]) -> Cost:
    """Expected seconds until an answer, as if requests under way came one after the other, for the weight."""

    def cost(member: Member) -> float:
        latency = member.slot.latency
        expected = latency.expected(clock()) if latency is not None else 0.0
        return expected * (member.slot.active + 1) / member.weight

    return cost


def begin_latencies(slots: Sequence[EndpointSlot], now: float) -> Steps[None]:
    """Let those of whom nothing is known begin with the mean of the others, so that nobody is flooded for being new."""
    new = [slot for slot in slots if slot.latency is None]
    if not new:
        return
    known = [slot.latency.expected(now) for slot in slots if slot.latency is not None]
    mean = sum(known) / len(known) if known else 0.0
    for start in range(0, len(new), BEGUN_AT_ONCE):
        if start:
            yield
        for slot in new[start : start + BEGUN_AT_ONCE]:
            slot.measure(PeakLatency(mean, now))
