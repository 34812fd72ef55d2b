"""Waiting for a condition, with a bound."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], within_s: float = 30.0) -> None:
    """Wait until a condition holds; raises `TimeoutError` when it does not come true in time."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - conditions are about things that have no event
            await asyncio.sleep(0.02)
