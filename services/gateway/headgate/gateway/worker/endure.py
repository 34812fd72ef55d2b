"""Background work that may fail without taking traffic with it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)

PAUSE_S = 1.0
"""Between a failure and the next try."""


async def endure(name: str, work: Callable[[], Awaitable[None]], pause_s: float = PAUSE_S) -> None:
    """Run work for ever; log whatever ends it and begin again.

    Following the store, writing files and retiring pools must never end a process that serves requests, whatever a
    library under them raises.
    """
    while True:
        try:
            await work()
        except Exception:
            _log.exception("background work failed and is begun again", extra={"work": name})
        await asyncio.sleep(pause_s)
