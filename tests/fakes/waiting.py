"""Waiting for a condition, with a bound."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def until(check: Callable[[], Any], within_s: float = 30.0, *, despite: tuple[type[Exception], ...] = ()) -> Any:
    """Return the first true value of a check, which may be a coroutine function.

    Args:
        check: asked again and again, as what is waited for has no event.
        within_s: after which `TimeoutError` is raised.
        despite: errors of the check that mean "not yet".
    """
    is_remote = False
    async with asyncio.timeout(within_s):
        while True:
            try:
                found = check()
                if is_remote := inspect.isawaitable(found):
                    found = await found
            except despite:
                found = None
            if found:
                return found
            await asyncio.sleep(0.02 if is_remote else 0.002)
