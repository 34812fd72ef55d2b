"""Choosing an endpoint by what the request says."""

import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headgate.common.table import Balancing, BalancingPolicy
from headgate.gateway.balancing.endpoints import EndpointSlot
from headgate.gateway.balancing.hashing import (
    ConsistentTable,
    NamedWeight,
    RequestHash,
    make_rendezvous,
    make_ring,
)
from headgate.gateway.balancing.maglev import Maglev, make_maglev
from headgate.gateway.balancing.picking import Member, Picker
from headgate.gateway.model.steps import Steps

if TYPE_CHECKING:
    from headgate.gateway.proxy.request_source import RequestSource

Groups = tuple[tuple[Member, ...], ...]
ADDED_AT_ONCE = 32
"""Endpoints whose requests a choice adds up, on average."""
NAMED_AT_ONCE = 1024
"""Endpoints named between two turns of the event loop: about half a millisecond."""


class HashedMembers(NamedTuple):
    """The endpoints of one level as keys are mapped to them, those that are out included."""

    groups: Groups
    names: Sequence[NamedWeight]
    """Of the groups."""
    table: ConsistentTable


def hash_members(
    members: Sequence[Member], balancing: Balancing, previous: HashedMembers | None
) -> Steps[HashedMembers]:
    """Group endpoints and make the table that maps keys to the groups, going on from another revision's, of the same
    policy.
    """
    groups = group_members(members, balancing.subset_size)
    names = yield from _name_groups(groups, balancing.subset_size)
    before = previous.table if previous is not None else None
    if isinstance(before, Maglev) and before.size != balancing.hash_table_size:
        before = None
    if before is not None and previous is not None and previous.names == names:
        return HashedMembers(groups, previous.names, before)
    table: ConsistentTable
    if balancing.policy is BalancingPolicy.RING_HASH:
        table = yield from make_ring(names, before)
    elif balancing.policy is BalancingPolicy.MAGLEV:
        table = yield from make_maglev(names, balancing.hash_table_size)
    else:
        table = yield from make_rendezvous(names)
    return HashedMembers(groups, names, table)


def group_members(members: Sequence[Member], subset_size: int | None) -> Groups:
    """Return what keys are mapped to: each endpoint alone, or subsets in the order of the endpoints.

    The last subset is filled up with the first endpoints (ingress-nginx, `chashsubset.lua`).
    """
    if subset_size is None:
        return tuple(zip(members, strict=True))
    size = min(subset_size, len(members))
    starts = range(0, len(members), size) if size else ()
    circle = (*members, *members)
    return tuple(circle[start : start + size] for start in starts)


def _name_groups(groups: Groups, subset_size: int | None) -> Steps[list[NamedWeight]]:
    """Return the names and weights by which groups are hashed; subsets are numbered: their members may change."""
    if subset_size is not None:
        return [NamedWeight(b"set%d" % number, 1) for number in range(1, len(groups) + 1)]
    names: list[NamedWeight] = []
    for start in range(0, len(groups), NAMED_AT_ONCE):
        if start:
            yield
        names += [NamedWeight(member.slot.name, member.weight) for (member,) in groups[start : start + NAMED_AT_ONCE]]
    return names


class LoadBound:
    """How many requests each endpoint may have under way: a percentage of its share by weight of all that are, in this
    worker. All are added up again and again, of which a choice pays a bounded part: with many endpoints the sum is
    some choices old.

    Args:
        groups: endpoints, of which those that are out have no share.
        out: who is not to be chosen.
        percent: above 100.
    """

    __slots__ = ("_factor", "_left", "_limit", "_slots", "_wait")

    def __init__(self, groups: Groups, out: frozenset[EndpointSlot], percent: int) -> None:
        members = {member.slot: member.weight for group in groups for member in group if member.slot not in out}
        self._slots = tuple(members)
        self._factor = percent / 100 / (sum(members.values()) or 1)
        self._wait = len(members) // ADDED_AT_ONCE
        self._left = 0
        self._limit = 0.0
        """Of a weight of one."""

    def begin(self) -> None:
        """Prepare for a choice."""
        self._left -= 1
        if self._left < 0:
            self._limit = self._factor * (sum([slot.active for slot in self._slots]) + 1)
            self._left = self._wait

    def has_room(self, member: Member) -> bool:
        """Whether an endpoint may have one more."""
        return member.slot.active < math.ceil(self._limit * member.weight)


class HashPicker:
    """Maps keys to groups of endpoints, and draws within the group.

    The table has the endpoints that are out as well and passes over them, so that only their keys move, and come back.

    Args:
        request_hash: what is hashed.
        table: of the groups, in their order.
        groups: endpoints, those that are out included.
        out: who is not to be chosen.
        otherwise: for requests without a key.
        bound: of requests under way; None: there is none.
    """

    __slots__ = ("_bound", "_draw", "_groups", "_hash", "_otherwise", "_out", "_table")

    def __init__(
        self,
        request_hash: RequestHash,
        table: ConsistentTable,
        groups: Groups,
        out: frozenset[EndpointSlot],
        otherwise: Picker,
        draw: Callable[[Sequence[Member]], Member],
        bound: LoadBound | None = None,
    ) -> None:
        self._hash = request_hash
        self._table = table
        self._groups = groups
        self._out = out
        self._otherwise = otherwise
        self._draw = draw
        self._bound = bound

    def choose(self, tried: Collection[EndpointSlot], source: "RequestSource") -> EndpointSlot | None:
        """Find the key's group, or the next one with somebody left."""
        key = self._hash.of(source)
        if key is None:
            return self._otherwise.choose(tried, source)
        avoided = self._out.union(tried) if tried else self._out
        if self._bound is not None and (found := self._find_with_room(key, avoided, self._bound)) is not None:
            return found
        return self._find(key, avoided) or (self._find(key, self._out) if tried else None)

    def _find_with_room(self, key: int, avoided: frozenset[EndpointSlot], bound: LoadBound) -> EndpointSlot | None:
        """Find the first group with an endpoint that may have one more; None: none may, as the sum is too old."""
        bound.begin()

        def left(index: int) -> list[Member]:
            return [one for one in self._groups[index] if one.slot not in avoided and bound.has_room(one)]

        found = self._table.find(key, lambda index: not left(index))
        return self._draw(left(found)).slot if found is not None else None

    def _find(self, key: int, avoided: frozenset[EndpointSlot]) -> EndpointSlot | None:
        groups = self._groups

        def is_skipped(index: int) -> bool:
            group = groups[index]
            return group[0].slot in avoided and all(member.slot in avoided for member in group)

        found = self._table.find(key, is_skipped if avoided else None)
        if found is None:
            return None
        group = groups[found]
        if len(group) == 1:
            return group[0].slot
        return self._draw([member for member in group if member.slot not in avoided]).slot

    def adopt(self, previous: Picker) -> None:
        """Go on with those without a key."""
        if isinstance(previous, HashPicker):
            self._otherwise.adopt(previous._otherwise)
