"""A log of which a reader learns late."""

import asyncio
from collections.abc import AsyncIterator

from headgate.common.deltas import LogPlace
from headgate.common.stores import DeltaLogReader, LogBatch, LogPosition, LogReplay
from headgate.common.stores.memory.stores import MemoryStores


class LateReader:
    """Reads a log whose news it can be kept from, but not from knowing where the log ends."""

    def __init__(self, log: DeltaLogReader) -> None:
        self._log = log
        self.flows = asyncio.Event()
        self.flows.set()

    async def position(self) -> LogPosition:
        return await self._log.position()

    async def went_back(self, place: LogPlace) -> bool:
        return await self._log.went_back(place)

    async def follow(self, known: LogPlace | None = None) -> AsyncIterator[LogBatch | LogReplay]:
        async for item in self._log.follow(known):
            await self.flows.wait()
            yield item


def behind(stores: MemoryStores) -> LateReader:
    """Have who reads the log of these stores from now on read it late."""
    late = LateReader(stores.log)
    stores.log_reader = late  # type: ignore[assignment]
    return late
