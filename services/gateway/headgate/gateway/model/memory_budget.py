"""Memory that many holders share: a limit for each of them does not bound all of them together.

A holder gets no more than what stays free beside it: one alone half of the budget, two a third each. So a few large
ones never take all of it, and small ones go on beside them. Envoy ends the longest streams when its heap is full
(`envoy.overload_actions.reset_high_memory_stream`); a holder that is refused as it grows needs no search.
"""

import logging
import time
from typing import Final, NamedTuple

_REPEAT_S: Final = 60.0


class Shortage(NamedTuple):
    """What the log says, once in a while, when a holder finds no room."""

    logger: logging.Logger
    text: str
    owner_field: str
    """Under which the line names who asked."""
    limit_field: str
    """Under which it has the limit."""


class MemoryBudget:
    """What all holders together may take, in bytes, and what they take."""

    def __init__(self, limit: int, shortage: Shortage) -> None:
        self.limit = limit
        self.used = 0
        self.refused = 0
        """How often there was no room."""
        self._shortage = shortage
        self._logged_at = -_REPEAT_S

    @property
    def longest(self) -> int:
        """Bytes of the largest holder that there can be room for."""
        return self.limit // 2

    def take(self, held: int, more: int, owner: str) -> bool:
        """Count more bytes of a holder of which `held` are counted; False: there is no room. `owner` is for the log."""
        if held + 2 * more <= self.limit - self.used:
            self.used += more
            return True
        self._refuse(held + more, owner)
        return False

    def change(self, held: int, size: int) -> None:
        """Count something that was put in the place of what is counted."""
        self.used += size - held

    def release(self, held: int) -> None:
        """Count so many bytes less."""
        self.used -= held

    def _refuse(self, size: int, owner: str) -> None:
        self.refused += 1
        now = time.monotonic()
        if now - self._logged_at >= _REPEAT_S:
            self._logged_at = now
            said = self._shortage
            fields = {said.owner_field: owner, "bytes": size, "held": self.used, said.limit_field: self.limit}
            said.logger.warning(said.text, extra=fields)
