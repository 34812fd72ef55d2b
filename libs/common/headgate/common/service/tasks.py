"""Tasks that stand and fall together.

Rejected: bare `create_task` (an exception in it is heard of when the program ends, if at all) and `asyncio.TaskGroup`
for the long-running parts of a service: it waits for all, while a service must end when any of its parts ends.
"""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

ASK_AGAIN_S = 1.0
"""Longer than an orderly clean-up takes, which a second cancellation would cut short."""


async def run_together(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Run coroutines until one returns or raises, then cancel the others, wait for them and re-raise.

    Of several that raise at once the first as given is raised; the others are its context. Cancelling the caller
    cancels all.
    """
    tasks = [asyncio.create_task(coroutine, name=_name(coroutine)) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*tasks)
    failures = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    if failures:
        raise failures[0]


async def cancel(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks and wait until they have ended, whatever they end with.

    A task that goes on is cancelled again: `heed_cancellation` names those who swallow a cancellation.
    """
    waiting = set(tasks)
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=ASK_AGAIN_S)


async def heed_cancellation(awaitable: Awaitable[T]) -> T:
    """Await something that may swallow a cancellation of this task, and raise it afterwards if that happened.

    nats-py swallows one that meets it while it flushes (`Client._flush_pending`) or closes; `asyncio.wait_for`, which
    it uses throughout, one that comes in the same turn as the result (before Python 3.12).
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    try:
        return await awaitable
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


def _name(coroutine: Coroutine[Any, Any, object]) -> str:
    return getattr(coroutine, "__qualname__", type(coroutine).__name__)
