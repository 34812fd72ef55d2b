"""Finds out and writes down what stands in for versions with errors, in the log, where a later translator finds it.

Every translator of a table does so, and all write the same: the log takes equal records once. A record that cannot be
written is tried again for ever.
"""

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from headgate.common.errors import StoreError, TooLarge
from headgate.common.resources import ObjectRef
from headgate.common.stores import LastGoodLog
from headgate.translator.translation import Translation
from headgate.translator.world.versions import Record
from headgate.translator.world.world import World

logger = logging.getLogger(__name__)

PATIENCE_S = 10.0
"""Histories that cannot be read for this long are gone on without: better a table than none."""
AGAIN_S = 30.0
"""A record that was written and not heard of since is written again."""
PARALLEL = 32
FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 5.0


class _Sent(NamedTuple):
    record: Record
    at: float


class LastGoodRecorder:
    """Reads and writes records for one translation after another."""

    def __init__(self, log: LastGoodLog, table: str) -> None:
        self._log, self._table = log, table
        self._world: World | None = None
        self._sent: dict[ObjectRef, _Sent] = {}
        self._wake = asyncio.Event()
        self._failing_since: float | None = None

    async def recall(self, translation: Translation) -> bool:
        """Find out what earlier versions of objects were good; return whether anything changed by it.

        Raises:
            StoreError: histories cannot be read now; after `PATIENCE_S` of that it goes on without them.
        """
        unsure = list(translation.world.tracker.unsure)
        if not unsure:
            return False
        try:
            histories = await self._log.histories(unsure)
        except StoreError as error:
            now = time.monotonic()
            self._failing_since = self._failing_since or now  # until it works again: patience is for the first time
            if now - self._failing_since < PATIENCE_S:
                raise
            logger.warning("going on without earlier versions", extra={"count": len(unsure), "reason": str(error)})
            histories = {}
        else:
            self._failing_since = None
        return any([translation.recall(ref, histories.get(ref, ())) for ref in unsure])

    def look_after(self, world: World) -> None:
        """Write down what is not written yet of a world; one that was looked after before no longer counts."""
        if world is not self._world:
            self.rest()
            self._world = world
        if world.tracker.unwritten:
            self._wake.set()

    def rest(self) -> None:
        """Write nothing until there is something to look after again: while a log is being read, much is not known."""
        self._world = None
        self._sent.clear()

    async def run(self) -> None:
        """Write records for ever."""
        pause_s, complaint = FIRST_PAUSE_S, ""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                while self._world is not None and (due := self._due()):
                    await self._write_some(self._world, due)
                    pause_s, complaint = FIRST_PAUSE_S, ""
            except StoreError as error:
                if str(error) != complaint:
                    complaint = str(error)
                    logger.warning("records of last good versions wait", extra={"reason": complaint})
                self._wake.set()
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
                pause_s = min(_LAST_PAUSE_S, pause_s * 2)

    def _due(self) -> list[ObjectRef]:
        if self._world is None:
            return []
        now, tracker = time.monotonic(), self._world.tracker
        self._sent = {ref: sent for ref, sent in self._sent.items() if ref in tracker.unwritten}
        wanted = ((ref, tracker.record(ref), self._sent.get(ref)) for ref in tracker.unwritten)
        due = (
            ref
            for ref, record, sent in wanted
            if record is not None and (sent is None or sent.record != record or now - sent.at > AGAIN_S)
        )
        return list(islice(due, PARALLEL))

    async def _write_some(self, world: World, due: Iterable[ObjectRef]) -> None:
        results = await asyncio.gather(*(self._write(world, ref) for ref in due), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _write(self, world: World, ref: ObjectRef) -> None:
        said, record = world.record(ref), world.tracker.record(ref)
        if said is None or record is None:
            return
        try:
            await self._log.write(said.model_copy(update={"table": self._table}))
        except TooLarge as error:
            logger.warning("a last good version will not outlive this process", extra={"reason": str(error)})
        if world is self._world:
            self._sent[ref] = _Sent(record, time.monotonic())
