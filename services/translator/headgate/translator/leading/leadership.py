"""One translator commits and posts, others follow the log beside it: what a turn begins with.

The lease says who should commit. What must not happen is kept from happening by the compare-and-set of the pointer,
and by this: a translator that begins to commit first reads as much of the log as any may have read before. So no table
is followed by one that knows less.
"""

import sys
from typing import NamedTuple

from headgate.common.leadership.leadership import Leadership
from headgate.common.stores import DeltaLogReader

PATIENCE = 2
"""Looks at the surroundings after which what could not be read is gone on without."""


class Turn(NamedTuple):
    """This process leads from now on."""


class Turns:
    """Which turn to lead this process has begun: it is given one by the lease, and begins it when it comes to that."""

    def __init__(self, leadership: Leadership) -> None:
        """Count a turn that is ours already as begun."""
        self._leadership = leadership
        self._term = leadership.term if leadership.is_leader else 0
        """Of the turn that was begun last."""

    @property
    def is_given(self) -> bool:
        """Whether it is our turn now, begun or not."""
        return self._leadership.is_leader

    @property
    def leads(self) -> bool:
        """Whether it is our turn now, and we have begun it."""
        return self._leadership.is_leader and self._term == self._leadership.term

    def begin(self) -> bool:
        """Begin the turn of now; return False if that was done already."""
        was_begun = self._term == self._leadership.term
        self._term = self._leadership.term
        return not was_begun


class CatchUp:
    """How far the log has to be read before the next commit."""

    def __init__(self, log: DeltaLogReader) -> None:
        """Begin with nothing to wait for."""
        self._log = log
        self._target = 0
        self._looks = 0
        self.must_ask = False
        """Whether it is to be found out first where the log ends."""

    def begin(self) -> None:
        """Somebody else committed, or may have: go on when as much was read as they may have read."""
        self.must_ask, self._target, self._looks = True, 0, 0

    async def ask(self, incarnation: str) -> None:
        """Find out where the log ends; `incarnation` is that of the log that is being read.

        Raises:
            StoreUnavailable: not now.
        """
        position = await self._log.position()
        self.must_ask = False
        # A log that was made again is read from its beginning in a moment.
        self._target = position.last_sequence if position.incarnation == incarnation else sys.maxsize

    def is_done(self, sequence: int) -> bool:
        """Whether enough was read, as far as `sequence`."""
        return not self.must_ask and sequence >= self._target

    @property
    def is_waiting(self) -> bool:
        """Whether anything is waited for."""
        return self.must_ask or self._target > 0

    def look(self) -> None:
        """Some seconds have passed; what is not there by now cannot be read, or is gone.

        Looks are counted and not seconds: a process that stood still has not read meanwhile.
        """
        self._looks += 1
        if self._looks >= PATIENCE:
            self.end()

    def end(self) -> None:
        """Wait for nothing any more."""
        self.must_ask, self._target = False, 0
