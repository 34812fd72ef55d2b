"""Posts what is wanted for objects, when it changed and never because time passed.

What was posted is read from the board and followed there, so that a restarted translator posts only differences, and
one of two posts nothing that the other has posted. Nothing is lost while the board is away: the last wish of each
object waits.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import UTC, datetime
from itertools import chain, islice

from headgate.common.errors import StoreError, TooLarge
from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import cancel, run_together
from headgate.common.status import StatusUpdate
from headgate.common.stores import StatusBoard
from headgate.translator.status.desired import DesiredStatus, forget, to_update, wanted_by

logger = logging.getLogger(__name__)

QUIET_S = 1.0
"""A board that says nothing for this long has said all; should it say more later, some updates are posted twice."""
PARALLEL = 16
"""Statuses on their way at once: some milliseconds of work, which a change that comes meanwhile has to wait for."""
FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 5.0
Wish = Callable[[DesiredStatus | None], DesiredStatus | None]
"""From what was posted before to what is wanted now; None is for an object that is gone: the board forgets it."""


class StatusPoster:
    """The writing side of the status board."""

    def __init__(
        self,
        board: StatusBoard,
        table: str,
        on_board: Callable[[Iterable[ObjectRef]], Awaitable[None]],
        may_post: Callable[[], bool] = lambda: True,
        calm: asyncio.Event | None = None,
    ) -> None:
        """Prepare.

        Args:
            board: where statuses are posted.
            table: whose statuses they are; those of other tables are left alone.
            on_board: told of every object that has something posted already, once per cluster.
            may_post: whether this translator is the one that posts; statuses wait while it does not.
            calm: set while nothing more urgent is done; statuses wait for that. None: it always is.
        """
        self._board = board
        self._table = table
        self._on_board = on_board
        self._may_post = may_post
        self._posted: dict[ObjectRef, tuple[datetime, bytes]] = {}
        """When and what, encoded: all of them decoded take ten times the memory."""
        self._doubted: set[ObjectRef] = set()
        """What was posted for these may be lost: it is posted again, also if nothing else is wanted."""
        self._wishes: dict[ObjectRef, tuple[Wish, str | None]] = {}
        self._urgent: dict[ObjectRef, None] = {}
        """Of these the ones that go before all others."""
        self._clusters: dict[str, None] = {}
        self._news = asyncio.Event()
        self._read: set[str] = set()
        self._waiting = asyncio.Event()
        self._calm = calm or asyncio.Event()
        if calm is None:
            self._calm.set()

    @property
    def pending(self) -> int:
        """Objects whose wish is not posted yet."""
        return len(self._wishes)

    @property
    def known(self) -> Collection[ObjectRef]:
        """Objects for which something was posted."""
        return self._posted.keys()

    def posted(self, ref: ObjectRef) -> DesiredStatus | None:
        """Return what was posted last for an object."""
        update = self._update(ref)
        return None if update is None else wanted_by(update)

    def _update(self, ref: ObjectRef) -> StatusUpdate | None:
        posted = self._posted.get(ref)
        return None if posted is None else StatusUpdate.model_validate_json(posted[1])

    @property
    def waiting(self) -> Collection[ObjectRef]:
        """Objects whose wish was not judged yet."""
        return self._wishes

    def watch(self, cluster: str) -> None:
        """Say that a cluster is there, so that what was posted for its objects matters."""
        if cluster not in self._clusters:
            self._clusters[cluster] = None
            self._news.set()

    def want(self, ref: ObjectRef, wish: Wish, traceparent: str | None = None, *, is_urgent: bool = False) -> None:
        """Say what is wanted for an object; replaces a wish that waits. What is urgent goes before all the others."""
        self._wishes[ref] = (wish, traceparent)
        if is_urgent:
            self._urgent[ref] = None
        self._waiting.set()

    def doubt_board(self) -> None:
        """Say that what was posted may be there no more, or in an older version."""
        self._doubted.update(self._posted)

    def give_up(self) -> None:
        """Forget the statuses that wait: another translator posts from now on."""
        self._wishes.clear()
        self._urgent.clear()

    async def run(self) -> None:
        """Post statuses for ever."""
        await run_together(self._post_for_ever(), self._follow_clusters())

    # The board

    async def _follow_clusters(self) -> None:
        """Follow the boards of all clusters; one that comes is followed beside the others."""
        async with asyncio.TaskGroup() as tasks:
            followed: set[str] = set()
            while True:
                self._news.clear()
                for cluster in self._clusters.keys() - followed:
                    tasks.create_task(self._follow(cluster), name=f"statuses of {cluster}")
                    followed.add(cluster)
                await self._news.wait()

    async def _follow(self, cluster: str) -> None:
        """Learn what is posted for a cluster's objects, by others and before this process began."""
        updates: asyncio.Queue[StatusUpdate] = asyncio.Queue()
        reading = asyncio.create_task(self._read_board(cluster, updates))
        found: dict[ObjectRef, None] = {}
        try:
            while True:
                try:
                    async with asyncio.timeout(None if cluster in self._read else QUIET_S):
                        update = await updates.get()
                except TimeoutError:
                    self._read.add(cluster)
                    self._waiting.set()
                    await self._on_board(found)
                    found = {}
                else:
                    self._note(update)
                    found[update.ref] = None
        finally:
            await cancel(reading)

    async def _read_board(self, cluster: str, updates: "asyncio.Queue[StatusUpdate]") -> None:
        async for update in self._board.follow(cluster, self._table):
            updates.put_nowait(update)

    def _note(self, update: StatusUpdate) -> None:
        before = self._posted.get(update.ref)
        if before is None or before[0] < update.at:  # what was posted here comes back, perhaps after the next one
            self._posted[update.ref] = (update.at, update.model_dump_json().encode())

    # Wishes

    async def _post_for_ever(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            await self._waiting.wait()
            self._waiting.clear()
            try:
                while due := self._due():
                    await self._calm.wait()
                    await self._post_some(due)
                    pause_s = FIRST_PAUSE_S
            except StoreError as error:
                logger.warning("statuses wait", extra={"count": len(self._wishes), "reason": str(error)})
                self._waiting.set()
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
                pause_s = min(_LAST_PAUSE_S, pause_s * 2)

    def _due(self) -> list[ObjectRef]:
        """Wishes that can be judged: nothing is posted before it is known what was."""
        if not self._may_post():
            return []
        urgent = (ref for ref in self._urgent if ref.cluster in self._read)
        others = (ref for ref in self._wishes if ref.cluster in self._read and ref not in self._urgent)
        return list(islice(chain(urgent, others), PARALLEL))

    async def _post_some(self, refs: Iterable[ObjectRef]) -> None:
        results = await asyncio.gather(*(self._post(ref) for ref in refs), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _post(self, ref: ObjectRef) -> None:
        entry = self._wishes.get(ref)
        if entry is None:
            self._urgent.pop(ref, None)
            return
        wish, traceparent = entry
        posted = self._update(ref)
        before = None if posted is None else wanted_by(posted)
        wanted = wish(before)
        if wanted is not None and (wanted != before or ref in self._doubted):
            update = to_update(wanted, posted, datetime.now(UTC), traceparent, self._table)
            await self._send(update)
            self._note(update)
        elif wanted is None and before is not None:
            if (last := forget(before)) != before:
                await self._board.forget(to_update(last, None, datetime.now(UTC), traceparent, self._table))
            self._posted.pop(ref, None)
        self._doubted.discard(ref)
        if self._wishes.get(ref) is entry:
            del self._wishes[ref]
            self._urgent.pop(ref, None)

    async def _send(self, update: StatusUpdate) -> None:
        try:
            await self._board.post(update)
        except TooLarge as error:
            logger.error("a status is too large for the bus", extra={"object": str(update.ref), "reason": str(error)})
