"""Posts what is wanted for objects, when it changed and never because time passed.

What was posted before is read from the board once per cluster, so that a restarted translator posts only differences.
Nothing is lost while the board is away: the last wish of each object waits.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime

from headgate.common.errors import StoreError
from headgate.common.resources import ObjectRef
from headgate.common.stores import StatusBoard
from headgate.translator.conditions import Wanted, forget, to_update, wanted_by

logger = logging.getLogger(__name__)

QUIET_S = 1.0
"""A board that says nothing for this long has said all; should it say more later, some updates are posted twice."""
PARALLEL = 32
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 5.0
Wish = Callable[[Wanted | None], Wanted | None]
"""From what was posted before to what is wanted now; None is for an object that is gone: the board forgets it."""


class StatusPoster:
    """The writing side of the status board."""

    def __init__(
        self,
        board: StatusBoard,
        on_board: Callable[[Iterable[ObjectRef]], None],
        may_post: Callable[[], bool] = lambda: True,
    ) -> None:
        """Prepare.

        Args:
            board: where wishes go.
            on_board: told of every object that has something posted already, once per cluster.
            may_post: asked at the last moment before wishes are posted.
        """
        self._board = board
        self._may_post = may_post
        self._on_board = on_board
        self._read_boards: set[str] = set()
        self._posted: dict[ObjectRef, Wanted] = {}
        self._wishes: dict[ObjectRef, tuple[Wish, str | None]] = {}
        self._clusters: dict[str, None] = {}
        self._waiting = asyncio.Event()

    @property
    def pending(self) -> int:
        """Objects whose wish is not posted yet."""
        return len(self._wishes)

    @property
    def known(self) -> Collection[ObjectRef]:
        """Objects for which something was posted."""
        return self._posted.keys()

    def watch(self, cluster: str) -> None:
        """Say that a cluster is in the table, so that what was posted for its objects matters."""
        if cluster not in self._read_boards:
            self._clusters[cluster] = None
            self._waiting.set()

    def want(self, ref: ObjectRef, wish: Wish, traceparent: str | None = None) -> None:
        """Say what is wanted for an object; replaces a wish that waits."""
        self._wishes[ref] = (wish, traceparent)
        self._waiting.set()

    def give_up(self) -> None:
        """Forget wishes and what was posted: another one posts from now on."""
        self._wishes.clear()
        self._posted.clear()
        self._clusters.clear()
        self._read_boards.clear()

    async def _read_board(self, cluster: str) -> None:
        """Learn what was posted for a cluster's objects before this process began."""
        updates = self._board.follow(cluster)
        found: dict[ObjectRef, Wanted] = {}
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    update = await anext(updates)
            except (TimeoutError, StopAsyncIteration):
                break
            found[update.ref] = wanted_by(update)
        self._posted.update(found)
        self._read_boards.add(cluster)
        self._on_board(found)

    async def run(self) -> None:
        """Post wishes for ever."""
        pause_s = _FIRST_PAUSE_S
        while True:
            await self._waiting.wait()
            self._waiting.clear()
            try:
                while self._clusters:
                    cluster = next(iter(self._clusters))
                    await self._read_board(cluster)
                    self._clusters.pop(cluster, None)
                while self._wishes and self._may_post():
                    await self._post_some()
                    pause_s = _FIRST_PAUSE_S
            except StoreError as error:
                logger.warning("statuses wait", extra={"count": len(self._wishes), "reason": str(error)})
                self._waiting.set()
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
                pause_s = min(_LAST_PAUSE_S, pause_s * 2)

    async def _post_some(self) -> None:
        refs = list(self._wishes)[:PARALLEL]
        results = await asyncio.gather(*(self._post(ref) for ref in refs), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _post(self, ref: ObjectRef) -> None:
        entry = self._wishes.get(ref)
        if entry is None:
            return
        wish, traceparent = entry
        before = self._posted.get(ref)
        wanted = wish(before)
        if wanted is not None and wanted != before:
            await self._board.post(to_update(wanted, before, datetime.now(UTC), traceparent))
            self._posted[ref] = wanted
        elif wanted is None and before is not None:
            if (last := forget(before)) != before:
                await self._board.forget(to_update(last, before, datetime.now(UTC), traceparent))
            del self._posted[ref]
        if self._wishes.get(ref) is entry:
            del self._wishes[ref]
