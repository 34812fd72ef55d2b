"""What comes to the translator's loop, one at a time: the log, news of gateways and of the store, and our turns."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from headgate.common.errors import StoreError
from headgate.common.heartbeats import COUNTING_INTERVAL_S
from headgate.common.leadership.leadership import Leadership, run_while_leading
from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import run_together
from headgate.common.snapshot import Pointer
from headgate.common.stores import DeltaLogReader, LogBatch, LogReplay, SnapshotStore
from headgate.translator.leading.leadership import Turn
from headgate.translator.leading.output import Output
from headgate.translator.leading.surroundings import Surroundings

logger = logging.getLogger(__name__)

LOOK_AROUND_S = 5.0
FIRST_LOOK_S = 0.1
"""After a revision, for how far gateways have got with it; each further look takes twice as long to come."""
INBOX: Final = 16


class Remembered(NamedTuple):
    """Objects of one cluster that have a status from before: some may be no longer ours, or have changed since."""

    refs: tuple[ObjectRef, ...]


Item = LogReplay | LogBatch | Surroundings | Remembered | Pointer | Turn


class Feeds:
    """Fills the inbox of a loop."""

    def __init__(self, log: DeltaLogReader, snapshots: SnapshotStore, table: str, leadership: Leadership) -> None:
        """Prepare to read the log and the pointer of a table."""
        self._log = log
        self._snapshots = snapshots
        self._table = table
        self._leadership = leadership
        self.inbox: asyncio.Queue[Item] = asyncio.Queue(INBOX)

    async def run(self, output: Output, begin_term: Callable[[], None]) -> None:
        """Run until cancelled; `begin_term` is called at the beginning of each turn of ours."""
        await run_together(
            self._follow_log(output),
            self._follow_pointer(output),
            output.lookout.run(lambda: self.look(output), lambda: FIRST_LOOK_S, lambda: _longest_pause(output)),
            run_while_leading(self._leadership, lambda: self._lead(output, begin_term)),
        )

    async def take_board(self, refs: Iterable[ObjectRef]) -> None:
        """Take objects that the status board knows."""
        await self.inbox.put(Remembered(tuple(refs)))

    async def _follow_log(self, output: Output) -> None:
        current = output.publisher.manifest
        async for item in self._log.follow(current.last_read if current else None):
            await self.inbox.put(item)

    async def _follow_pointer(self, output: Output) -> None:
        async for pointer in self._snapshots.follow(self._table):
            if pointer.version != output.publisher.version:
                await self.inbox.put(pointer)

    async def look(self, output: Output) -> None:
        """Look at gateways and store once."""
        try:
            known = output.publisher.version
            await self.inbox.put((await output.lookout.look())._replace(known=known))
        except StoreError as error:
            logger.debug("gateways and store cannot be seen", extra={"reason": str(error)})

    async def _lead(self, output: Output, begin_term: Callable[[], None]) -> None:
        begin_term()
        await self.inbox.put(Turn())
        await run_together(output.statuses.run(), output.recorder.run(), output.collect_garbage())


def _longest_pause(output: Output) -> float:
    """Seconds between two looks around."""
    return min(COUNTING_INTERVAL_S, LOOK_AROUND_S) if output.serving.is_stepping else LOOK_AROUND_S
