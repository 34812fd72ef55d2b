"""Posts what is wanted for objects, when it changed and never because time passed.

What was posted is read from the board and followed there, so that a restarted translator posts only differences, and
one of two posts nothing that the other has posted. Nothing is lost while the board is away: the last wish of each
object waits. The board gets up to 64 statuses at a time (decision 0088).
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Generic, NamedTuple, TypeVar

from headgate.common.errors import DecodeError, StoreError, TooLarge
from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import cancel, run_together
from headgate.common.status import EncodedStatus, StatusUpdate
from headgate.common.stores import StatusBoard
from headgate.translator.status.desired import DesiredStatus, forget, to_update, wanted_by

logger = logging.getLogger(__name__)

QUIET_S = 1.0
"""A board that says nothing for this long has said all; should it say more later, some updates are posted twice."""
BATCH = 64
"""Statuses on their way at once: the board stores them together, some milliseconds of work for its server."""
SLICE_S = 0.003
"""Work at most this long before other tasks get their turn: a change that comes meanwhile has to wait for it."""
FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 5.0
Wish = TypeVar("Wish")
"""What is known of an object, from which its status is made when its turn comes."""
_Post = Callable[..., Awaitable[Sequence[bytes | StoreError]]]


class _Letter(NamedTuple, Generic[Wish]):
    """A status on its way to the board."""

    ref: ObjectRef
    wish: Wish
    update: StatusUpdate
    is_last: bool = False
    """Whether the object is gone."""


class StatusPoster(Generic[Wish]):
    """The writing side of the status board."""

    def __init__(
        self,
        board: StatusBoard,
        table: str,
        desire: Callable[[ObjectRef, Wish, DesiredStatus | None], DesiredStatus | None],
        on_board: Callable[[Iterable[ObjectRef]], Awaitable[None]],
        may_post: Callable[[], bool] = lambda: True,
        calm: asyncio.Event | None = None,
    ) -> None:
        """Prepare.

        Args:
            board: where statuses are posted.
            table: whose statuses they are; those of other tables are left alone.
            desire: makes an object's status of a wish and of what was posted before; None is for an object that is
                gone: the board forgets it.
            on_board: told of every object that has something posted already, once per cluster.
            may_post: whether this translator is the one that posts; statuses wait while it does not.
            calm: set while nothing more urgent is done; statuses wait for that. None: it always is.
        """
        self._board = board
        self._table = table
        self._desire = desire
        self._on_board = on_board
        self._may_post = may_post
        self._posted: dict[ObjectRef, bytes] = {}
        """As the board has it: all of them decoded take ten times the memory."""
        self._doubted: set[ObjectRef] = set()
        """What was posted for these may be lost: it is posted again, also if nothing else is wanted."""
        self._wishes: dict[ObjectRef, Wish] = {}
        self._urgent: dict[ObjectRef, None] = {}
        """Of these the ones that go before all others."""
        self._traceparents: dict[ObjectRef, str] = {}
        """Trace contexts of wishes: those for many objects have none."""
        self._refused: dict[ObjectRef, StoreError] = {}
        """Wishes whose status the board did not take: they wait until all others were tried."""
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
        if posted is None:
            return None
        try:
            return StatusUpdate.decode(posted, ref, self._table)
        except DecodeError as error:
            logger.error("a status is not heeded", extra={"object": str(ref), "reason": str(error)})
            del self._posted[ref]
            return None

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
        self._wishes[ref] = wish
        self._traceparents.pop(ref, None)
        if traceparent is not None:
            self._traceparents[ref] = traceparent
        self._refused.pop(ref, None)
        if is_urgent:
            self._urgent[ref] = None
        self._waiting.set()

    def doubt_board(self) -> None:
        """Say that what was posted may be there no more, or in an older version."""
        self._doubted.update(self._posted)

    def give_up(self) -> None:
        """Forget the statuses that wait: another translator posts from now on."""
        for waiting in (self._wishes, self._urgent, self._traceparents, self._refused):
            waiting.clear()

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
        arrived: asyncio.Queue[Sequence[EncodedStatus]] = asyncio.Queue()
        reading = asyncio.create_task(self._read_board(cluster, arrived))
        found: dict[ObjectRef, None] = {}
        try:
            while True:
                try:
                    async with asyncio.timeout(None if cluster in self._read else QUIET_S):
                        statuses = await arrived.get()
                except TimeoutError:
                    self._read.add(cluster)
                    self._waiting.set()
                    await self._on_board(found)
                    found = {}
                else:
                    for ref, content in statuses:
                        self._note(ref, content)
                    if cluster not in self._read:
                        found.update(dict.fromkeys(ref for ref, _ in statuses))
        finally:
            await cancel(reading)

    async def _read_board(self, cluster: str, arrived: "asyncio.Queue[Sequence[EncodedStatus]]") -> None:
        async for statuses in self._board.follow_encoded(cluster, self._table):
            arrived.put_nowait(statuses)

    def _note(self, ref: ObjectRef, content: bytes) -> None:
        """Take what the board has: mostly what was posted here and comes back, perhaps after the next one."""
        known = self._posted.get(ref)
        if known == content:
            return
        before = self._update(ref)
        try:
            is_older = before is not None and StatusUpdate.decode(content, ref, self._table).at <= before.at
        except DecodeError as error:
            logger.error("a status is not heeded", extra={"object": str(ref), "reason": str(error)})
        else:
            if not is_older:
                self._posted[ref] = content

    # Wishes

    async def _post_for_ever(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            await self._waiting.wait()
            self._waiting.clear()
            try:
                while due := self._due():
                    await self._take_breath()
                    await self._post_some(due)
                    pause_s = FIRST_PAUSE_S
                for refusal in self._refused.values():
                    raise refusal
            except StoreError as error:
                logger.warning("statuses wait", extra={"count": len(self._wishes), "reason": str(error)})
                self._waiting.set()
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
                pause_s = min(_LAST_PAUSE_S, pause_s * 2)
                if not self._due():
                    self._refused.clear()

    def _due(self) -> list[ObjectRef]:
        """Wishes that can be judged: nothing is posted before it is known what was."""
        if not self._may_post():
            return []
        urgent = (ref for ref in self._urgent if ref.cluster in self._read)
        others = (ref for ref in self._wishes if ref.cluster in self._read and ref not in self._urgent)
        return list(islice((ref for ref in chain(urgent, others) if ref not in self._refused), BATCH))

    async def _post_some(self, refs: Iterable[ObjectRef]) -> None:
        """Judge wishes, a slice at a time, and post what is new in them together."""
        letters: list[_Letter[Wish]] = []
        breath = time.perf_counter()
        for ref in refs:
            if time.perf_counter() - breath > SLICE_S:
                await self._take_breath()
                breath = time.perf_counter()
            if (letter := self._judge(ref)) is not None:
                letters.append(letter)
        await self._send(self._board.post, [letter for letter in letters if not letter.is_last])
        await self._send(self._board.forget, [letter for letter in letters if letter.is_last])

    async def _take_breath(self) -> None:
        await asyncio.sleep(0)
        await self._calm.wait()

    def _judge(self, ref: ObjectRef) -> _Letter[Wish] | None:
        """Return what is to be posted of an object; None if nothing is."""
        wish = self._wishes.get(ref)
        if wish is None:
            self._urgent.pop(ref, None)
            return None
        posted, traceparent = self._update(ref), self._traceparents.get(ref)
        before = None if posted is None else wanted_by(posted)
        wanted = self._desire(ref, wish, before)
        if wanted is not None and (wanted != before or ref in self._doubted):
            return _Letter(ref, wish, to_update(wanted, posted, datetime.now(UTC), traceparent, self._table))
        if wanted is None and before is not None:
            if (last := forget(before)) != before:
                update = to_update(last, None, datetime.now(UTC), traceparent, self._table)
                return _Letter(ref, wish, update, is_last=True)
            del self._posted[ref]
        self._settle(ref, wish)
        return None

    async def _send(self, post: _Post, letters: Sequence[_Letter[Wish]]) -> None:
        if not letters or not self._may_post():
            return
        answers = await post(*(letter.update for letter in letters))
        for letter, answer in zip(letters, answers, strict=True):
            self._take_answer(letter, answer)
        if all(letter.ref in self._refused for letter in letters):
            raise self._refused[letters[0].ref]

    def _take_answer(self, letter: _Letter[Wish], answer: bytes | StoreError) -> None:
        ref, wish, update, is_last = letter
        if isinstance(answer, TooLarge):
            logger.error("a status is too large for the bus", extra={"object": str(ref), "reason": str(answer)})
            answer = update.encode()  # not tried again before it changes
        if isinstance(answer, StoreError):
            self._refused[ref] = answer
            return
        if is_last:
            self._posted.pop(ref, None)
        else:
            self._posted[ref] = answer
        self._settle(ref, wish)

    def _settle(self, ref: ObjectRef, wish: Wish) -> None:
        self._doubted.discard(ref)
        if self._wishes.get(ref) is wish:
            del self._wishes[ref]
            self._urgent.pop(ref, None)
            self._traceparents.pop(ref, None)
