"""New endpoints get a share that grows to their full weight, so that cold caches and compilers warm up.

An endpoint is new when it joins an upstream that was there before, and again when it comes back from being unhealthy
or ejected. As Envoy's slow start with aggression 1: the share grows linearly, from a tenth.
"""

import math
from collections.abc import Collection, Sequence

from headgate.gateway.balancing.endpoints import EndpointSlot
from headgate.gateway.balancing.picking import Member
from headgate.gateway.model.steps import Steps

MIN_SHARE = 0.1
"""Envoy's `min_weight_percent`."""
STEPS = 20
"""In which a share grows over the whole time."""
WEIGHED_AT_ONCE = 1024
"""Endpoints weighed between two turns of the event loop: about a millisecond."""
_FINENESS = 1000
"""Parts of a unit of weight."""


class SlowStart:
    """Since when each endpoint of an upstream gets requests."""

    __slots__ = ("_available", "_since", "_window_s")

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._available: frozenset[EndpointSlot] | None = None
        """None before there was any."""
        self._since: dict[EndpointSlot, float] = {}
        """Of those that are warming up."""

    def adopt(self, previous: "SlowStart") -> None:
        """Go on from another revision."""
        self._available, self._since = previous._available, dict(previous._since)

    def assume(self, available: Collection[EndpointSlot]) -> None:
        """Take these as warm."""
        self._available = frozenset(available)

    def note(self, available: Collection[EndpointSlot], now: float) -> None:
        """Say who gets requests from now on."""
        before, self._available = self._available, frozenset(available)
        new = self._available - before if before is not None else frozenset()
        warming = {slot: since for slot, since in self._since.items() if slot in self._available}
        warming.update(dict.fromkeys(new, now))
        self._since = {slot: since for slot, since in warming.items() if now - since < self._window_s}

    def weigh(self, members: Sequence[Member], now: float) -> Steps[Sequence[Member]]:
        """Return the members with the weights that they have for now."""
        since = self._since
        if not since or not any(slot in since for slot, _ in members):
            return members
        weighed: list[Member] = []
        for start in range(0, len(members), WEIGHED_AT_ONCE):
            if start:
                yield
            weighed += [
                Member(slot, max(1, round(weight * _FINENESS * self._share(slot, now))))
                for slot, weight in members[start : start + WEIGHED_AT_ONCE]
            ]
        return weighed

    def _share(self, slot: EndpointSlot, now: float) -> float:
        since = self._since.get(slot)
        return 1.0 if since is None else max(MIN_SHARE, (now - since) / self._window_s)

    def next_step(self, now: float) -> float:
        """Return when to weigh again; infinity if all are warm."""
        return now + self._window_s / STEPS if self._since else math.inf
