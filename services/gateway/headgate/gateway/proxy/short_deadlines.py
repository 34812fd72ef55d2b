"""Deadlines that come too soon for the coarse clock: those of requests that may take less than a few seconds.

Requests whose deadlines fall into the same hundredth of a second share a timer of the event loop, so their number
bounds no cost: at most a hundred timers run out in a second. A request is in one slot at most. It is moved only to an
earlier one: when a slot's time has come and the deadline has been put off meanwhile, the request enters a later slot.
Requests that have seconds to go, or no bound of their own, never come here.
"""

import asyncio
import time
from typing import Final

SHORT_S: Final = 5.0
"""Timeouts below this end within some `_SLOT_S`; longer ones when the coarse clock ticks."""
_SLOT_S: Final = 0.01
_NO_SLOT: Final = -1


class Expiring:
    """Something with a deadline that may be short."""

    __slots__ = ("slot",)

    def __init__(self) -> None:
        self.slot = _NO_SLOT
        """Number of the slot that it waits in."""

    def look(self, now: float) -> None:
        """Compare the deadline with the time, in monotonic seconds."""
        raise NotImplementedError


class ShortDeadlines:
    """Has each `Expiring` look at its deadline soon after it has passed."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: dict[int, set[Expiring]] = {}

    def __len__(self) -> int:
        """Count what waits."""
        return sum(map(len, self._slots.values()))

    def add(self, expiring: Expiring, deadline: float) -> None:
        """Have it look at the end of the hundredth of a second that has the deadline, or at an earlier one it waits
        for already.
        """
        slot = int(deadline / _SLOT_S) + 1
        if expiring.slot != _NO_SLOT:
            if expiring.slot <= slot:
                return
            self.remove(expiring)
        waiting = self._slots.get(slot)
        if waiting is None:
            waiting = set()
            self._slots[slot] = waiting
            delay_s = slot * _SLOT_S - time.monotonic()
            asyncio.get_running_loop().call_later(max(0.0, delay_s), self._look, slot)
        waiting.add(expiring)
        expiring.slot = slot

    def remove(self, expiring: Expiring) -> None:
        """Forget it; it may not have been added."""
        waiting = self._slots.get(expiring.slot)
        if waiting is not None:
            waiting.discard(expiring)
        expiring.slot = _NO_SLOT

    def _look(self, slot: int) -> None:
        now = time.monotonic()
        for expiring in self._slots.pop(slot):
            expiring.slot = _NO_SLOT
            expiring.look(now)
