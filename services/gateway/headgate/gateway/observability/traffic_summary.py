"""What a worker says of its traffic each second: the difference between what is counted now and what was told before.

The hot path notes only which routes and endpoints have news. All else is done here, in steps of a few microseconds for
each of these, and for a bounded number of them in a second: what is left over is told later, with what came since.
"""

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec

from headgate.common.errors import StoreError
from headgate.common.stores import TrafficBoard
from headgate.common.traffic import (
    INTERVAL_S,
    MAX_ROWS,
    EndpointCounts,
    RouteCounts,
    TrafficSummary,
    UnfitEndpoint,
    added,
)
from headgate.gateway.observability.tapping import Tapping
from headgate.gateway.proxy.traffic import EndpointTraffic, RouteTraffic, Traffic

MAX_TOLD = 2000
"""Routes, and endpoints, that are looked at in a second: some 10 ms of processor time."""
_GATHER_S = 0.05
"""From the first request of a new wish to the summary that tells of it."""
_STEP = 100
"""That are looked at before requests have a turn."""

_log = logging.getLogger(__name__)


class TrafficTeller:
    """Tells of one worker's traffic.

    Args:
        table: that it serves.
        replica: name of the replica.
        worker: number within it.
        routes: those that have news; what is told is taken out.
        endpoints: the same.
        tapping: has the finished requests that somebody wishes to see; None: there are none.
        unfit: tells which endpoints get no requests now, `MAX_ROWS` at most.
    """

    def __init__(
        self,
        table: str,
        replica: str,
        worker: int,
        routes: list[Traffic],
        endpoints: list[Traffic],
        tapping: Tapping | None = None,
        unfit: Callable[[], tuple[UnfitEndpoint, ...]] = tuple,
    ) -> None:
        self._table, self._replica, self._worker = table, replica, worker
        self._routes, self._endpoints = routes, endpoints
        self._tapping, self._unfit = tapping, unfit
        self._told_at = time.monotonic()

    async def run(self, board: TrafficBoard) -> None:
        """Tell every second in which there is something to tell, and of a new wish's first request at once.

        What cannot be told is not told later.
        """
        while True:
            await self._pause()
            unfit = self._unfit()
            tapped, untold = self._tapping.take() if self._tapping is not None else ((), 0)
            failed = self._tapping.take_failed() if self._tapping is not None else ()
            if not self._routes and not self._endpoints and not unfit:
                self._told_at = time.monotonic()
                continue
            summary = await self._summary()
            summary = msgspec.structs.replace(summary, unfit=unfit, tapped=tapped, untold=untold, failed=failed)
            try:
                await board.tell(summary)
            except StoreError as error:
                _log.debug("a summary of traffic was not sent", extra={"error": str(error)})

    async def _pause(self) -> None:
        """Wait for a second, or until somebody who has just begun to look for requests can be told of one."""
        if self._tapping is None:
            await asyncio.sleep(INTERVAL_S)
            return
        try:
            async with asyncio.timeout(INTERVAL_S):
                await self._tapping.found.wait()
                await asyncio.sleep(_GATHER_S)
        except TimeoutError:
            return

    async def _summary(self) -> TrafficSummary:
        now, at = time.monotonic(), time.time()
        since, self._told_at = now - self._told_at, now
        routes: list[RouteCounts] = []
        endpoints: list[EndpointCounts] = []
        for number, traffic in enumerate((*_taken(self._routes), *_taken(self._endpoints)), 1):
            if isinstance(traffic, RouteTraffic):
                routes.append(RouteCounts(traffic.route, traffic.upstream, traffic.take_news()))
            elif isinstance(traffic, EndpointTraffic):
                endpoints.append(EndpointCounts(traffic.endpoint, traffic.take_news()))
            if number % _STEP == 0:
                await asyncio.sleep(0)
        routes.sort(key=lambda row: row.counts.requests, reverse=True)
        endpoints.sort(key=lambda row: row.counts.requests, reverse=True)
        return TrafficSummary(
            table=self._table,
            replica=self._replica,
            worker=self._worker,
            at=at,
            seconds=since,
            routes=tuple(routes[:MAX_ROWS]),
            endpoints=tuple(endpoints[:MAX_ROWS]),
            others=added(row.counts for row in routes[MAX_ROWS:]),
            folded=len(routes[MAX_ROWS:]),
        )


def _taken(news: list[Traffic]) -> list[Traffic]:
    """Take out those that have had news for the longest time."""
    taken = news[:MAX_TOLD]
    del news[:MAX_TOLD]
    return taken
