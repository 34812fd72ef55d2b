"""From the state of an upstream's endpoints to the policy that chooses among them for now."""

import functools
import math
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from headgate.common.table import Balancing, BalancingPolicy
from headgate.gateway.balancing.deadline_turns import turns_by_weight
from headgate.gateway.balancing.endpoints import EndpointSlot
from headgate.gateway.balancing.hash_picking import HashedMembers, HashPicker, LoadBound, hash_members
from headgate.gateway.balancing.hashing import RequestHash, level_of
from headgate.gateway.balancing.levels import LevelLoad, share_load
from headgate.gateway.balancing.picking import (
    Member,
    Picker,
    RandomPicker,
    RoundRobinPicker,
    TwoChoicesPicker,
    begin_latencies,
    latency_cost,
    load_cost,
)
from headgate.gateway.balancing.round_robin import SmoothRoundRobin, Turns
from headgate.gateway.balancing.seats import PLAIN_RANK, Rank, Seat
from headgate.gateway.balancing.slow_start import SlowStart
from headgate.gateway.model.steps import Steps

if TYPE_CHECKING:
    from headgate.gateway.proxy.request_source import RequestSource

MEMBERS_AT_ONCE = 1024
"""Endpoints that are given their level between two turns of the event loop: about half a millisecond."""
_SHARE_FINENESS = 1000


class EndpointPlan(NamedTuple):
    """What holds until health or time changes it."""

    picker: Picker | None
    """None: nobody may be chosen."""
    out: frozenset[EndpointSlot]
    """Who is not chosen for its health."""
    ends_at: float
    """Monotonic seconds; infinity if only a change ends it."""
    has_healthy: bool = True
    """Whether an endpoint is healthy; without one unhealthy ones may be chosen."""

    @property
    def ring(self) -> Turns[EndpointSlot] | None:
        """The whole plan, if nothing has to be looked at but whose turn it is."""
        return self.picker.ring if isinstance(self.picker, RoundRobinPicker) and self.ends_at == math.inf else None


class LeveledPicker:
    """Several levels, each with a share of the requests."""

    __slots__ = ("_hash", "_pickers", "_shares", "_turns")

    def __init__(
        self, levels: Sequence[tuple[Rank, Picker]], shares: Sequence[float], request_hash: RequestHash | None
    ) -> None:
        self._pickers = dict(levels)
        self._shares = tuple(shares)
        self._hash = request_hash
        self._turns = SmoothRoundRobin(
            (rank, max(1, round(share * _SHARE_FINENESS))) for (rank, _), share in zip(levels, shares, strict=True)
        )

    def choose(self, tried: Collection[EndpointSlot], source: "RequestSource") -> EndpointSlot | None:
        """Let a level choose; if it has only tried ones, the others."""
        rank = self._choose_level(source)
        slot = self._pickers[rank].choose(tried, source)
        if slot is not None and slot not in tried:
            return slot
        for other, picker in self._pickers.items():
            if other != rank and (found := picker.choose(tried, source)) is not None and found not in tried:
                return found
        return slot

    def _choose_level(self, source: "RequestSource") -> Rank:
        key = None if self._hash is None else self._hash.of(source)
        if key is not None:
            return list(self._pickers)[level_of(key, self._shares)]
        rank = self._turns.choose()
        assert rank is not None, "every level has a share"
        return rank

    def adopt(self, previous: Picker) -> None:
        """Go on with the turns of the levels."""
        if isinstance(previous, LeveledPicker):
            self._turns.adopt(previous._turns)


class Marks:
    """Who is out of one upstream by its own checks; shared by its revisions, of which two may be there at a time."""

    __slots__ = ("out",)

    def __init__(self) -> None:
        self.out: WeakSet[EndpointSlot] | tuple[()] = ()
        """Most upstreams never need a set."""

    def set(self, slot: EndpointSlot, *, is_available: bool) -> None:
        """Take an endpoint out, or let it back in."""
        if isinstance(self.out, tuple):
            self.out = WeakSet()
        if is_available:
            self.out.discard(slot)
        else:
            self.out.add(slot)

    def is_fit(self, slot: EndpointSlot, now: float) -> bool:
        """Tell whether an endpoint is healthy, not ejected, and not out."""
        return slot.is_healthy and slot.ejected_until <= now and slot not in self.out


Levels = dict[Rank, list[Member]]


def level_members(seats: Sequence[Seat]) -> Steps[Levels]:
    """Return endpoints by level, the preferred one first."""
    levels: Levels = {}
    for start in range(0, len(seats), MEMBERS_AT_ONCE):
        if start:
            yield
        for slot, standing in seats[start : start + MEMBERS_AT_ONCE]:
            levels.setdefault(standing.rank, []).append(Member(slot, standing.weight))
    return dict(sorted(levels.items()))


class Planner:
    """Makes the plans of one revision of an upstream.

    Args:
        balancing: what the upstream wants.
        levels: who may be chosen while healthy, with weights above 0.
        marks: who is out of this upstream.
        clock: monotonic seconds.
        chance: what random choices are drawn from.
        offset: how many turns a round begins with.
    """

    __slots__ = (
        "_balancing",
        "_chance",
        "_clock",
        "_hash",
        "_hashed",
        "_leveled",
        "_levels",
        "_marks",
        "_offset",
        "_pickers",
        "_slow_start",
        "slots",
    )

    def __init__(
        self,
        balancing: Balancing,
        levels: Levels,
        marks: Marks,
        clock: Callable[[], float],
        chance: Random,
        offset: int = 0,
    ) -> None:
        self._balancing = balancing
        self._clock = clock
        self._chance = chance
        self._offset = offset
        self._levels = levels
        self.slots = tuple(member.slot for members in levels.values() for member in members)
        self._hash = RequestHash(balancing.hash) if balancing.hash else None
        self._slow_start = SlowStart(balancing.slow_start_s) if balancing.slow_start_s else None
        self._marks = marks
        self._pickers: dict[Rank, Picker] = {}
        self._leveled: LeveledPicker | None = None
        self._hashed: dict[Rank, HashedMembers] = {}
        """For the hashing policies; health does not change it."""

    @classmethod
    def of_ring(
        cls,
        balancing: Balancing,
        ring: Turns[EndpointSlot],
        marks: Marks,
        clock: Callable[[], float],
        chance: Random,
    ) -> "Planner":
        """Go on from a ring over endpoints of one level and equal weights."""
        planner = cls(balancing, {PLAIN_RANK: [Member(slot, 1) for slot in ring.items]}, marks, clock, chance)
        planner._pickers[PLAIN_RANK] = RoundRobinPicker(ring)
        return planner

    def adopt(self, previous: "Planner") -> None:
        """Go on from the plans of another revision."""
        self._marks = previous._marks
        self._pickers, self._leveled = dict(previous._pickers), previous._leveled
        if previous._balancing.policy is self._balancing.policy:
            self._hashed = dict(previous._hashed)
        if self._slow_start is not None:
            if previous._slow_start is not None:
                self._slow_start.adopt(previous._slow_start)
            else:
                self._slow_start.assume(previous.slots)

    def prepare(self) -> Steps[None]:
        """Do what plans need and takes long: once, after `adopt`, before the first plan."""
        policy = self._balancing.policy
        if policy is BalancingPolicy.PEAK_EWMA:
            yield from begin_latencies(self.slots, self._clock())
        elif policy.hashes:
            before, self._hashed = self._hashed, {}
            for rank, members in self._levels.items():
                self._hashed[rank] = yield from hash_members(members, self._balancing, before.get(rank))

    def make_plan(self, now: float) -> Steps[EndpointPlan]:
        """Plan for the state that the slots are in at the beginning; steps are worth while with thousands of them."""
        suspects = self.slots if self._marks.out else [slot for slot in self.slots if slot.is_suspect]
        out = frozenset(slot for slot in suspects if not self._marks.is_fit(slot, now))
        loads = share_load(
            [(len(members), _count_fit(members, out)) for members in self._levels.values()],
            self._balancing.panic_threshold,
        )
        ends_at = min((slot.ejected_until for slot in out if slot.ejected_until > now), default=math.inf)
        if len(self.slots) > MEMBERS_AT_ONCE:
            yield
        if self._slow_start is not None:
            self._slow_start.note([slot for slot in self.slots if slot not in out] if out else self.slots, now)
            ends_at = min(ends_at, self._slow_start.next_step(now))
        has_healthy = len(out) < len(self.slots)
        out -= self._kept_by_panic(loads)
        return EndpointPlan((yield from self._combine(loads, out, now)), out, ends_at, has_healthy)

    def find_untried(self, tried: Collection[EndpointSlot], out: frozenset[EndpointSlot]) -> EndpointSlot | None:
        """Return an endpoint for another attempt where all are tried that get requests: one of the next level."""
        for members in self._levels.values():
            left = [member for member in members if member.slot not in tried and member.slot not in out]
            if left:
                return _draw(self._chance, left).slot
        return None

    def _kept_by_panic(self, loads: Sequence[LevelLoad]) -> frozenset[EndpointSlot]:
        return frozenset(
            member.slot
            for members, load in zip(self._levels.values(), loads, strict=True)
            if load.ignores_health
            for member in members
        )

    def _combine(self, loads: Sequence[LevelLoad], out: frozenset[EndpointSlot], now: float) -> Steps[Picker | None]:
        taking = [(rank, load.share) for rank, load in zip(self._levels, loads, strict=True) if load.share > 0]
        pickers: list[tuple[Rank, Picker]] = []
        for rank, _ in taking:
            picker = yield from self._make_picker(rank, out, now)
            if len(self._levels[rank]) > MEMBERS_AT_ONCE:
                yield
            if rank in self._pickers:
                picker.adopt(self._pickers[rank])
            pickers.append((rank, picker))
        # Those of levels without load are kept: it comes back to where they stood.
        self._pickers.update(pickers)
        if len(pickers) < 2:
            return pickers[0][1] if pickers else None
        leveled = LeveledPicker(pickers, [share for _, share in taking], self._hash)
        if self._leveled is not None:
            leveled.adopt(self._leveled)
        self._leveled = leveled
        return leveled

    def _make_picker(self, rank: Rank, out: frozenset[EndpointSlot], now: float) -> Steps[Picker]:
        members = self._levels[rank]
        available = [member for member in members if member.slot not in out] if out else members
        weighed: Sequence[Member] = available
        if self._slow_start is not None:
            weighed = yield from self._slow_start.weigh(available, now)
        match self._balancing.policy:
            case BalancingPolicy.ROUND_ROBIN:
                return RoundRobinPicker(turns_by_weight(weighed, self._offset))
            case BalancingPolicy.RANDOM:
                return RandomPicker(weighed, self._chance)
            case BalancingPolicy.LEAST_REQUESTS:
                return TwoChoicesPicker(weighed, self._chance, load_cost)
            case BalancingPolicy.PEAK_EWMA:
                return TwoChoicesPicker(weighed, self._chance, latency_cost(self._clock))
            case BalancingPolicy.RING_HASH | BalancingPolicy.RENDEZVOUS | BalancingPolicy.MAGLEV:
                return self._make_hash_picker(rank, out, available)

    def _make_hash_picker(self, rank: Rank, out: frozenset[EndpointSlot], available: Sequence[Member]) -> Picker:
        groups, _, table = self._hashed[rank]
        otherwise = RoundRobinPicker(turns_by_weight(available, self._offset))
        request_hash = self._hash or RequestHash(())
        percent = self._balancing.hash_balance_factor
        bound = LoadBound(groups, out, percent) if percent is not None else None
        return HashPicker(request_hash, table, groups, out, otherwise, functools.partial(_draw, self._chance), bound)


def _count_fit(members: Sequence[Member], out: frozenset[EndpointSlot]) -> int:
    return sum(member.slot not in out for member in members) if out else len(members)


def _draw(chance: Random, members: Sequence[Member]) -> Member:
    return chance.choices(members, [member.weight for member in members])[0]
