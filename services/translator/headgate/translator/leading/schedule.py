"""When the next revision is due: at once after a change that comes alone, after a rest where changes never end."""

import asyncio
import random
import time
from typing import TypeVar

from headgate.translator.leading.output import SLICE_S

T = TypeVar("T")

LONGEST_REST_S = 0.1
"""After a revision we rest half as long as it was work, at most this long: churn of small changes never takes more than
two thirds of a core, and a change that comes after a large one need not wait for long."""
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 5.0
_STAND_BACK_S = 0.05


class Schedule:
    """The time of the next revision. Seconds are those of `time.monotonic`."""

    def __init__(self, debounce_s: float) -> None:
        """Begin with nothing due; two revisions are `debounce_s` apart at least."""
        self._debounce_s = debounce_s
        self._due: float | None = None
        self._earliest = float("-inf")
        self._pause_s = _FIRST_PAUSE_S

    @property
    def is_empty(self) -> bool:
        """Whether nothing is due, now or later."""
        return self._due is None

    @property
    def is_due(self) -> bool:
        """Whether a revision is due now."""
        return self._due is not None and self._due <= time.monotonic()

    def add(self, *, after_s: float = 0.0) -> None:
        """Have a revision as soon as the rest after the last one allows, and not before so many seconds have passed."""
        due = max(time.monotonic() + after_s, self._earliest)
        self._due = due if self._due is None else min(self._due, due)

    def add_at_once(self) -> None:
        """Have a revision now, whatever came before."""
        self._due = time.monotonic()

    def stand_back(self) -> None:
        """Have a revision a little later, as another translator may have been faster."""
        self.add(after_s=random.uniform(0.0, _STAND_BACK_S))  # noqa: S311 - not a secret

    def add_again(self) -> None:
        """Have a revision after the pause of a failure."""
        self.add(after_s=self.next_pause())

    def next_pause(self) -> float:
        """Return the pause after a failure, in seconds; each is longer than the one before, until `succeeded`."""
        pause_s, self._pause_s = self._pause_s, min(_LAST_PAUSE_S, self._pause_s * 2)
        return pause_s * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret

    def succeeded(self) -> None:
        """Note that the store works."""
        self._pause_s = _FIRST_PAUSE_S

    def clear(self) -> None:
        """Have nothing due."""
        self._due = None

    def begin(self) -> None:
        """Note that a revision is made."""
        self._earliest = time.monotonic() + self._debounce_s

    def rest(self, worked_s: float) -> None:
        """Note that a revision took so much time of the processor."""
        self._earliest = max(self._earliest, time.monotonic() + min(worked_s / 2, LONGEST_REST_S))

    async def next_of(self, inbox: asyncio.Queue[T]) -> T | None:
        """Return the next item; None when a revision is due. That does not wait for items that never pause."""
        now = time.monotonic()
        if self._due is not None and self._due <= now and (inbox.empty() or self._due < now - SLICE_S):
            return None
        try:
            async with asyncio.timeout(None if self._due is None else max(0.0, self._due - now)):
                return await inbox.get()
        except TimeoutError:
            return None
