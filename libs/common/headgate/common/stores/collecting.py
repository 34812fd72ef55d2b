"""Which chunks may go: those that no manifest has named for a while.

A writer stores chunks first and names them afterwards, so one that was just found unused may be about to be used.
"""

import time
from collections.abc import Callable, Iterable

CHUNK_GRACE_S = 300.0
"""An unused chunk is dropped when it was already found unused this long ago: a commit under way may count on it."""


class UnusedChunks:
    """Remembers since when chunks are unused, as far as this process has seen."""

    def __init__(self, grace_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._grace_s = grace_s
        self._clock = clock
        self._since: dict[str, float] = {}

    def forget(self, digests: Iterable[str]) -> None:
        """Begin anew with these chunks: a commit under way counts on them, or they were dropped."""
        for digest in digests:
            self._since.pop(digest, None)

    def find_idle(self, unused: set[str]) -> list[str]:
        """Take in which chunks are unused now, and return those that have been for the whole grace period."""
        now = self._clock()
        self._since = {digest: self._since.get(digest, now) for digest in unused}
        return [digest for digest, since in self._since.items() if now - since >= self._grace_s]
