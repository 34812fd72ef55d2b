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


class Upkeep:
    """The background work of one worker. What is counted of a rollout must not fall meanwhile."""

    def __init__(self, table: TableParts, stats: ProxyStats, rollout: RolloutWatch) -> None:
        self._table = table
        self._stats = stats
        self._rollout = rollout
        self._swapped = asyncio.Event()

    def note_swap(self) -> None:
        """Hear that another table is served."""
        self._swapped.set()

    async def retire_pools(self) -> None:
        """Close the connections to endpoints that no table names any more, and drop what was counted of routes."""
        while True:
            await self._swapped.wait()
            await asyncio.sleep(RETIRE_S)
            self._swapped.clear()
            for count, key in enumerate(self._table.directory.take_orphans(), 1):
                if count % DROPS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                self._table.pools.drop(*key)
            # The table that ends a rollout is applied here too.
            if self._table.compiler.table is not None and not self._rollout.is_counting:
                for gone in gone_routes([route for route, _ in self._stats.routes], self._table.hosts()):
                    self._stats.forget(gone)
                    await asyncio.sleep(0)

    async def review_series(self) -> None:
        """Have metrics show the routes that matter most now."""
        while True:
            await asyncio.sleep(REVIEW_S)
            for _ in self._stats.review() if not self._rollout.is_counting else ():
                await asyncio.sleep(0)
