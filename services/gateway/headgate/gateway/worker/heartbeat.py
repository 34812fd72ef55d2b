"""Announcing a worker: on a new revision, and every few seconds."""

import asyncio
import logging
from collections.abc import Callable

from headgate.common.errors import StoreError
from headgate.common.heartbeats import INTERVAL_S, Heartbeat
from headgate.common.stores import HeartbeatBoard

_log = logging.getLogger(__name__)

APART_S = 0.2
"""Least time between two announcements: twenty revisions a second need not be twenty writes for each worker."""


class Announcer:
    """Tells the heartbeat board about one worker."""

    def __init__(self, describe: Callable[[], Heartbeat], interval_s: float = INTERVAL_S) -> None:
        self._describe = describe
        self.interval_s = interval_s
        """Between two announcements, if nothing happens."""
        self._news = asyncio.Event()

    def announce_soon(self) -> None:
        """Announce without waiting for the next interval, as after a swap, but `APART_S` after the one before."""
        self._news.set()

    async def run(self, board: HeartbeatBoard) -> None:
        """Announce for ever. A board that cannot be reached is the bus's to log."""
        while True:
            self._news.clear()
            try:
                await board.beat(self._describe())
            except StoreError as error:
                _log.debug("heartbeat not sent", extra={"error": str(error)})
            await asyncio.sleep(min(APART_S, self.interval_s))
            try:
                async with asyncio.timeout(max(0.0, self.interval_s - APART_S)):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def leave(self, board: HeartbeatBoard) -> None:
        """Take the announcement back."""
        try:
            await board.remove(self._describe())
        except StoreError as error:
            _log.debug("heartbeat not removed, it expires", extra={"error": str(error)})
