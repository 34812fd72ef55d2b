"""Finished requests that somebody wants to see, given to each who asks as gateways tell them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final

from headgate.common.errors import NotPermitted, StoreError
from headgate.common.service.tasks import cancel
from headgate.common.stores import TrafficBoard
from headgate.common.traffic import TAP_S, Tap, TappedRequest, TrafficSummary
from headgate.operations.errors import InvalidRequest

MAX_WATCHERS: Final = 16
"""Who may look at once: gateways heed so many taps."""
_WAITING: Final = 1000
"""Requests that wait for one who looks; a slow one misses the others."""
QUIET_S: Final = 10.0
"""After which it is said that there was no request: this is how it is found out who has left."""


class Taps:
    """Who looks at finished requests.

    Args:
        traffic: where requests are asked for.
        table: whose.
    """

    def __init__(self, traffic: TrafficBoard, table: str) -> None:
        self._traffic, self._table = traffic, table
        self._waiting: dict[str, asyncio.Queue[TappedRequest]] = {}

    def take(self, summary: TrafficSummary) -> None:
        """Give what a worker told to those who asked for it."""
        for request in summary.tapped:
            for tap in request.taps:
                queue = self._waiting.get(tap)
                if queue is not None:
                    with suppress(asyncio.QueueFull):
                        queue.put_nowait(request)

    async def watch(self, tap: Tap) -> AsyncGenerator[TappedRequest | None]:
        """Yield requests, for ever; None after `QUIET_S` without one.

        Raises:
            InvalidRequest: as many look already as gateways heed.
            NotPermitted: we may not ask here.
        """
        if len(self._waiting) >= MAX_WATCHERS:
            raise InvalidRequest(f"{MAX_WATCHERS} look at requests already; close one of them")
        queue = self._waiting[tap.id] = asyncio.Queue(_WAITING)
        asking = asyncio.create_task(self._ask(tap))
        taken = asyncio.create_task(queue.get())
        try:
            while True:
                await asyncio.wait((taken, asking), timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
                if taken.done():
                    found, taken = taken.result(), asyncio.create_task(queue.get())
                    yield found
                elif asking.done():
                    asking.result()
                    return
                else:
                    yield None
        finally:
            del self._waiting[tap.id]
            await cancel(asking, taken)

    async def _ask(self, tap: Tap) -> None:
        while True:
            try:
                await self._traffic.tap(self._table, tap)
            except NotPermitted:
                raise
            except StoreError:
                pass  # the next wish is said in a moment
            await asyncio.sleep(TAP_S / 2)
