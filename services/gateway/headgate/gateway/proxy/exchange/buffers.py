"""The budget for bodies that one worker holds in memory: a limit for each body does not bound many of them.

A body gets no more than what stays free besides it: one alone half of the budget, two a third each. So a few long
bodies never take all of it, and short ones go on being held beside them. Envoy ends the longest streams when its heap
is full (`envoy.overload_actions.reset_high_memory_stream`); a request that is refused as it grows needs no search.
"""

import logging
import time
from typing import Final

_log = logging.getLogger(__name__)

BUFFERS_FULL: Final = "the worker holds as many bytes of bodies as it may"
RETRY_AFTER: Final = b"Retry-After: 1\r\n"
_REPEAT_S: Final = 60.0


class BufferBudget:
    """What all bodies together may take, in bytes, and what they take."""

    __slots__ = ("_logged_at", "limit", "refused", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.refused = 0
        """Bodies that found no room."""
        self._logged_at = -_REPEAT_S

    @property
    def longest(self) -> int:
        """Bytes of the longest body that there can be room for."""
        return self.limit // 2

    def take(self, held: int, more: int, owner: str) -> bool:
        """Count more bytes of a body of which `held` are counted; False: there is no room.

        `owner` is the name of its route, for the log.
        """
        if held + 2 * more <= self.limit - self.used:
            self.used += more
            return True
        self._refuse(held + more, owner)
        return False

    def change(self, held: int, size: int) -> None:
        """Count a body that was put in the place of one that is counted."""
        self.used += size - held

    def release(self, held: int) -> None:
        """Forget a body."""
        self.used -= held

    def _refuse(self, size: int, owner: str) -> None:
        self.refused += 1
        now = time.monotonic()
        if now - self._logged_at >= _REPEAT_S:
            self._logged_at = now
            _log.warning(
                "a body found no room in memory: raise max_buffered_bytes, or lower the limits of bodies on routes",
                extra={"route": owner, "bytes": size, "held": self.used, "max_buffered_bytes": self.limit},
            )
