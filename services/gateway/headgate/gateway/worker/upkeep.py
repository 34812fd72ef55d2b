"""What a worker does beside serving: parts with what no table names any more, and reviews what metrics show."""

import asyncio

from headgate.gateway.observability.rollout_watch import RolloutWatch
from headgate.gateway.observability.traffic_metrics import gone_routes
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.worker.wiring import TableParts

RETIRE_S = 5.0
"""Between two looks for pools of endpoints that are gone; their connections are idle by then."""
REVIEW_S = 60.0
"""Between two reviews of which routes metrics show by themselves; as often as most collectors ask."""
DROPS_AT_ONCE = 500
"""Pools dropped between two turns of the event loop."""
_ROUTES_AT_ONCE = 200
"""Counted routes that are looked for in the table between two turns of the event loop: some tenths of a millisecond."""


class Upkeep:
    """The background work of one worker. What is counted of a rollout must not fall meanwhile."""

    def __init__(self, table: TableParts, stats: ProxyStats, rollout: RolloutWatch) -> None:
        self._table = table
        self._stats = stats
        self._rollout = rollout
        self._swapped = asyncio.Event()
        self._looked_in = table.hosts()
        """The hosts of the table in which the counted routes were looked for last."""

    def note_swap(self) -> None:
        """Hear that another table is served."""
        self._swapped.set()

    async def retire_pools(self) -> None:
        """Close the connections to endpoints that no table names any more."""
        while True:
            await self._swapped.wait()
            await asyncio.sleep(RETIRE_S)
            self._swapped.clear()
            for count, key in enumerate(self._table.directory.take_orphans(), 1):
                if count % DROPS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                self._table.pools.drop(*key)

    async def review_series(self) -> None:
        """Drop what was counted of routes that are gone, and have metrics show the routes that matter most now.

        Looking for all counted routes takes a tenth of a second at 100,000, too much after every change.
        """
        while True:
            await asyncio.sleep(REVIEW_S)
            await self.forget_routes()
            for _ in self._stats.review() if not self._rollout.is_counting else ():
                await asyncio.sleep(0)

    async def forget_routes(self) -> None:
        """Drop what was counted of routes that are gone, if any host is not as it was the last time."""
        hosts = self._table.hosts()
        # The table that ends a rollout is applied here too.
        if hosts is self._looked_in or self._table.compiler.table is None or self._rollout.is_counting:
            return
        self._looked_in = hosts
        counted = list(self._stats.routes)
        for start in range(0, len(counted), _ROUTES_AT_ONCE):
            # In the table as it is now: a route that came back meanwhile counts on.
            self._stats.forget(list(gone_routes(counted[start : start + _ROUTES_AT_ONCE], self._table.hosts())))
            await asyncio.sleep(0)
