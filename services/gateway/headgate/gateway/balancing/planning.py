"""From the state of an upstream's endpoints to the policy that chooses among them for now."""

import functools
import math
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from headgate.common.table import Balancing, Endpoint, Policy
from headgate.gateway.balancing.endpoints import EndpointSlot
from headgate.gateway.balancing.hash_picking import HashPicker, TableKey, group_members, name_groups
from headgate.gateway.balancing.hashing import ConsistentTable, HashRing, Rendezvous, RequestHash, level_of
from headgate.gateway.balancing.levels import NOWHERE, LevelLoad, Place, nearness, share_load
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
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.balancing.slow_start import SlowStart

if TYPE_CHECKING:
    from headgate.gateway.proxy.seam import RequestSource

Rank = tuple[int, int]
"""Failover level and nearness; the lowest is preferred."""
_SHARE_FINENESS = 1000


class Plan(NamedTuple):
    """What holds until health or time changes it."""

    picker: Picker | None
    """None: nobody may be chosen."""
    out: frozenset[EndpointSlot]
    """Who is not chosen for its health."""
    ends_at: float
    """Monotonic seconds; infinity if only a change ends it."""

    @property
    def ring(self) -> SmoothRoundRobin[EndpointSlot] | None:
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
PLAIN_RANK: Rank = 0, 0


def level_members(
    endpoints: Sequence[tuple[Endpoint, EndpointSlot]], balancing: Balancing, place: Place = NOWHERE
) -> Levels:
    """Return endpoints by level, the preferred one first."""
    levels: Levels = {}
    for endpoint, slot in endpoints:
        levels.setdefault(_rank(endpoint, place, balancing), []).append(Member(slot, endpoint.weight))
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
        "_leveled",
        "_levels",
        "_marks",
        "_offset",
        "_pickers",
        "_slow_start",
        "_tables",
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
        self._tables: dict[TableKey, ConsistentTable] = {}

    @classmethod
    def of_ring(
        cls,
        balancing: Balancing,
        ring: SmoothRoundRobin[EndpointSlot],
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
            self._tables = dict(previous._tables)
        if self._slow_start is not None:
            if previous._slow_start is not None:
                self._slow_start.adopt(previous._slow_start)
            else:
                self._slow_start.assume(previous.slots)

    def make_plan(self, now: float) -> Plan:
        """Plan for the state that the slots are in."""
        suspects = self.slots if self._marks.out else [slot for slot in self.slots if slot.is_suspect]
        out = frozenset(slot for slot in suspects if not self._marks.is_fit(slot, now))
        loads = share_load(
            [(len(members), _count_fit(members, out)) for members in self._levels.values()],
            self._balancing.panic_threshold,
        )
        ends_at = min((slot.ejected_until for slot in out if slot.ejected_until > now), default=math.inf)
        if self._slow_start is not None:
            self._slow_start.note([slot for slot in self.slots if slot not in out], now)
            ends_at = min(ends_at, self._slow_start.next_step(now))
        if self._balancing.policy is Policy.PEAK_EWMA:
            begin_latencies([member for members in self._levels.values() for member in members], now)
        out -= self._kept_by_panic(loads)
        return Plan(self._combine(loads, out, now), out, ends_at)

    def _kept_by_panic(self, loads: Sequence[LevelLoad]) -> frozenset[EndpointSlot]:
        return frozenset(
            member.slot
            for members, load in zip(self._levels.values(), loads, strict=True)
            if load.ignores_health
            for member in members
        )

    def _combine(self, loads: Sequence[LevelLoad], out: frozenset[EndpointSlot], now: float) -> Picker | None:
        taking = [(rank, load.share) for rank, load in zip(self._levels, loads, strict=True) if load.share > 0]
        tables = self._tables
        self._tables = {}
        pickers = [(rank, self._make_picker(self._levels[rank], out, now, tables)) for rank, _ in taking]
        for rank, picker in pickers:
            if rank in self._pickers:
                picker.adopt(self._pickers[rank])
        # Those of levels without load are kept: it comes back to where they stood.
        self._pickers.update(pickers)
        if len(pickers) < 2:
            return pickers[0][1] if pickers else None
        leveled = LeveledPicker(pickers, [share for _, share in taking], self._hash)
        if self._leveled is not None:
            leveled.adopt(self._leveled)
        self._leveled = leveled
        return leveled

    def _make_picker(
        self,
        members: Sequence[Member],
        out: frozenset[EndpointSlot],
        now: float,
        tables: dict[TableKey, ConsistentTable],
    ) -> Picker:
        available = [member for member in members if member.slot not in out] if out else members
        weighed = available if self._slow_start is None else self._slow_start.weigh(available, now)
        match self._balancing.policy:
            case Policy.ROUND_ROBIN:
                return RoundRobinPicker(SmoothRoundRobin(weighed, self._offset))
            case Policy.RANDOM:
                return RandomPicker(weighed, self._chance)
            case Policy.LEAST_REQUESTS:
                return TwoChoicesPicker(weighed, self._chance, load_cost)
            case Policy.PEAK_EWMA:
                return TwoChoicesPicker(weighed, self._chance, latency_cost(self._clock))
            case Policy.RING_HASH | Policy.RENDEZVOUS:
                otherwise = RoundRobinPicker(SmoothRoundRobin(available, self._offset))
                return self._make_hash_picker(members, out, otherwise, tables)

    def _make_hash_picker(
        self,
        members: Sequence[Member],
        out: frozenset[EndpointSlot],
        otherwise: Picker,
        tables: dict[TableKey, ConsistentTable],
    ) -> Picker:
        subset_size = self._balancing.subset_size
        groups = group_members(members, subset_size)
        names = name_groups(groups, subset_size)
        table = tables.get(names)
        if table is None:
            table = HashRing(names) if self._balancing.policy is Policy.RING_HASH else Rendezvous(names)
        self._tables[names] = table
        request_hash = self._hash or RequestHash(())
        return HashPicker(request_hash, table, groups, out, otherwise, functools.partial(_draw, self._chance))


def _rank(endpoint: Endpoint, place: Place, balancing: Balancing) -> Rank:
    if balancing.locality == "none":
        return endpoint.priority, 0
    return endpoint.priority, nearness(place, Place(endpoint.zone, endpoint.cluster), balancing.locality)


def _count_fit(members: Sequence[Member], out: frozenset[EndpointSlot]) -> int:
    return sum(member.slot not in out for member in members) if out else len(members)


def _draw(chance: Random, members: Sequence[Member]) -> Member:
    return chance.choices(members, [member.weight for member in members])[0]
