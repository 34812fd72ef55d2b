"""Waiting for a condition, with a bound."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_LONGEST_PAUSE_S = 0.02
"""Between two looks. In virtual time each look costs real milliseconds, and some tests wait for minutes."""


async def until(check: Callable[[], Any], within_s: float = 30.0, *, despite: tuple[type[Exception], ...] = ()) -> Any:
    """Return the first true value of a check, which may be a coroutine function.

    Args:
        check: asked again and again, as what is waited for has no event.
        within_s: after which `TimeoutError` is raised.
        despite: errors of the check that mean "not yet".
    """
    is_remote, pause_s = False, 0.002
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
            await asyncio.sleep(_LONGEST_PAUSE_S if is_remote else pause_s)
            pause_s = min(1.5 * pause_s, _LONGEST_PAUSE_S)


async def until_still(read: Callable[[], T], for_s: float = 0.3, within_s: float = 30.0) -> T:
    """Wait until a figure stays the same for some seconds, and return it: nothing goes on that would change it."""
    async with asyncio.timeout(within_s):
        while True:
            before = read()
            await asyncio.sleep(for_s)
            if read() == before:
                return before
