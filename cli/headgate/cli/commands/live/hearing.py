"""Listening to gateways while a command does its work."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from headgate.common.service.tasks import cancel
from headgate.common.stores.opening import Stores
from headgate.common.traffic import TrafficSummary

T = TypeVar("T")


async def beside(background: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]) -> T:
    """Work with something in the background, which is called off at the end; if that fails, so does the work."""
    running, working = asyncio.create_task(background), asyncio.create_task(work)
    try:
        await asyncio.wait((running, working), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            running.result()
        return await working
    finally:
        await cancel(running, working)


async def hear(stores: Stores, table: str, take: Callable[[TrafficSummary], None]) -> None:
    """Give all that the workers of a table say to a function, until cancelled."""
    async for summary in stores.traffic.listen(table):
        take(summary)
