"""Who of several leads: a process that holds a lease for as long as it can, and what works under it.

    elector = Elector(stores.leases, "translator.default", "pod-1", Timing(2.0, 1.4, 0.3))
    await run_together(elector.run(), work(elector))
    await elector.release()    # once the work has stopped: the other one begins at once

`is_leader` looks at the clock each time it is asked: a process that stood still for a while is no leader when it goes
on, before it has heard of anything. The work asks before each thing that only a leader should do.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Protocol

from prometheus_client import Counter, Gauge

from headgate.common.errors import Conflict, NotPermitted, StoreError
from headgate.common.leadership.election import Election, Timing
from headgate.common.service.tasks import cancel
from headgate.common.stores import LeaseBoard

_log = logging.getLogger(__name__)
_LEADER = Gauge("headgate_leader", "1 while this process does the work that one of several does")
_TAKEOVERS = Counter("headgate_leader_takeovers", "Times that this process began to lead")

UNGUARDED_LOOK_S = 30.0
"""Between two looks at whether a missing right was given."""
PARTING_S = 0.5
"""A lease that cannot be given back within this expires by itself."""
_BREATH_S = 0.01


class Leadership(Protocol):
    """Whether this process does the work."""

    async def run(self) -> None:
        """Want to lead, for ever."""
        ...

    async def release(self) -> None:
        """Give way to another process at once; call it when the work has stopped."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether it does so now. Once this is False, another term begins before it is True again."""
        ...

    @property
    def term(self) -> int:
        """How often it began to: what it knew of others' work in an earlier term may be out of date."""
        ...

    async def until_leading(self) -> None:
        """Wait until this process leads."""
        ...

    async def until_following(self) -> None:
        """Wait until it does not."""
        ...


class Sole:
    """The leadership of a process that is the only one of its kind."""

    is_leader = True
    term = 1

    def __init__(self) -> None:
        _LEADER.set(1)

    async def run(self) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    async def release(self) -> None:
        """No other process is there to give way to."""

    async def until_leading(self) -> None:
        """Return at once."""

    async def until_following(self) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()


class Elector:
    """Holds a lease, or waits for it."""

    def __init__(
        self,
        board: LeaseBoard,
        name: str,
        identity: str,
        timing: Timing,
        *,
        is_ready: Callable[[], bool] = lambda: True,
        behind_since: Callable[[], datetime | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `run` does the work.

        Args:
            board: where the lease is.
            name: of the lease.
            identity: name of this process among those that want it.
            timing: how fast it changes hands.
            is_ready: whether this process could begin at once; others are given the chance to be first if not.
            behind_since: when the oldest change was made that this process has not dealt with; told in the lease.
            clock: monotonic seconds that go on while the process stands still, which those of uvloop do not.
        """
        self._board = board
        self._name = name
        self._identity = identity
        self._timing = timing
        self._is_ready = is_ready
        self._behind_since = behind_since
        self._clock = clock
        self._election = Election(identity, timing)
        self._must_read = True
        self._is_unguarded = False
        self._complaint = ""
        self._term = 0
        self._leading, self._following = asyncio.Event(), asyncio.Event()
        self._following.set()
        _LEADER.set(0)

    @property
    def is_leader(self) -> bool:
        """Whether this process may act as the leader at this very moment."""
        return self._is_unguarded or self._election.is_leader(self._clock())

    @property
    def term(self) -> int:
        """How often this process began to lead."""
        return self._term

    async def until_leading(self) -> None:
        """Wait until this process leads."""
        await self._leading.wait()

    async def until_following(self) -> None:
        """Wait until this process does not lead."""
        await self._following.wait()

    async def run(self) -> None:
        """Want the lease for ever."""
        try:
            while True:
                await self._attempt()
                self._tell()
                await asyncio.sleep(self._pause_s())
        finally:
            self._is_unguarded = False

    def _pause_s(self) -> float:
        if self._is_unguarded:
            return UNGUARDED_LOOK_S
        now, jitter = self._clock(), random.random()  # noqa: S311 - not a secret
        return max(_BREATH_S, self._election.next_look_at(now, jitter, is_ready=self._is_ready()) - now)

    async def _attempt(self) -> None:
        try:
            async with asyncio.timeout(self._election.attempt_s(self._clock())):
                await self._take_or_renew()
        except Conflict as error:
            _log.debug("somebody else wrote the lease", extra={"lease": self._name, "reason": str(error)})
        except NotPermitted as error:
            self._lead_unguarded(str(error))
        except StoreError as error:
            self._election.board_was_away()
            self._complain(str(error))
        except TimeoutError:
            self._election.pace.timed_out()
            self._complain("no answer in time")
        else:
            self._election.pace.answered()
            self._is_unguarded, self._complaint = False, ""

    async def _take_or_renew(self) -> None:
        self._tell()
        if self._must_read or not self._election.is_ours:
            self._election.observe(await self._board.read(self._name), self._clock())
            self._tell()  # that it was lost, even if it is free and ours again in a moment
        self._must_read = True  # unless it is known how the next write ends
        began_at, stored = self._clock(), self._election.stored
        lease = self._election.bid(began_at, datetime.now(UTC), is_ready=self._is_ready())
        if lease is not None:
            lease = lease.model_copy(update={"behind_since": self._behind_since()})
            written = await self._board.write(self._name, lease, stored.version if stored else None)
            self._tell()  # that it had expired, if this took so long
            self._election.won(written, began_at, self._clock())
            self._must_read = False

    def _complain(self, reason: str) -> None:
        if not self._complaint:
            _log.warning("the lease cannot be read or written now", extra={"lease": self._name, "reason": reason})
        self._complaint = reason

    def _lead_unguarded(self, reason: str) -> None:
        """Lead without a lease that we may not have: two that do the work are better than none."""
        if not self._is_unguarded:
            extra = {"lease": self._name, "reason": reason}
            _log.warning("leading without a lease, as others may do at the same time", extra=extra)
        self._is_unguarded = True

    def _tell(self) -> None:
        is_leader = self.is_leader
        if is_leader is self._leading.is_set():
            return
        _LEADER.set(is_leader)
        (self._leading if is_leader else self._following).set()
        (self._following if is_leader else self._leading).clear()
        if is_leader:
            self._term += 1
            _TAKEOVERS.inc()
        text = "leading from now on" if is_leader else "no longer leading"
        _log.info(text, extra={"lease": self._name, "as": self._identity})

    async def release(self) -> None:
        """Give the lease back, for another process to begin at once; call it when the work has stopped."""
        lease = self._election.resign(datetime.now(UTC))
        self._tell()
        if lease is None:
            return
        try:
            async with asyncio.timeout(PARTING_S):
                stored = await self._board.read(self._name)
                self._election.observe(stored, self._clock())
                if stored is not None and self._election.is_ours:
                    await self._board.write(self._name, lease, stored.version)
        except (StoreError, TimeoutError) as error:
            _log.info("the lease is left to expire", extra={"lease": self._name, "reason": str(error)})


async def run_while_leading(leadership: Leadership, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run something for ever whenever this process leads; it is cancelled when it does not any more.

    Args:
        leadership: of this process.
        work: begun again each time; it never returns, and what it raises is raised.
    """
    while True:
        await leadership.until_leading()
        working, following = asyncio.ensure_future(work()), asyncio.ensure_future(leadership.until_following())
        try:
            await asyncio.wait((working, following), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel(working, following)
        if not working.cancelled():
            working.result()
