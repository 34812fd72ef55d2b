"""Cancelling a coroutine at one chosen await of its own, while what it waits for is open, or in the turn it is done.

    task = asyncio.create_task(cancelled_at(7, Moment.DONE, work()))

The second moment is the treacherous one: the answer is there and so is the cancellation. `asyncio.wait_for` before
Python 3.12 hands out the answer then and forgets the cancellation.
"""

import asyncio
from collections.abc import Coroutine, Generator
from enum import Enum
from typing import Any


class Moment(Enum):
    """When the cancellation comes."""

    OPEN = "open"
    """What is waited for is not there yet."""
    DONE = "done"
    """It is there, and the waiting task has not run yet."""


class NotReached(Exception):
    """The coroutine ended before the chosen await."""


async def cancelled_at(number: int, moment: Moment, work: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine in this task and cancel the task once, at its await of a number (the first is 1).

    Raises:
        NotReached: the coroutine ended with fewer awaits.
    """
    await _Meddler(number, moment, work)
    raise NotReached


class _Meddler:
    def __init__(self, number: int, moment: Moment, work: Coroutine[Any, Any, object]) -> None:
        self._left = number
        self._moment = moment
        self._work = work

    def __await__(self) -> Generator[Any, Any, None]:
        error: BaseException | None = None
        while True:
            try:
                awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration:
                return
            self._left -= 1
            if self._left == 0:
                self._cancel(awaited)
            error = None
            try:
                yield awaited
            except BaseException as raised:
                error = raised

    def _cancel(self, awaited: "asyncio.Future[Any] | None") -> None:
        task = asyncio.current_task()
        assert task is not None
        if awaited is None or self._moment is Moment.OPEN:  # None: a bare `sleep(0)`
            asyncio.get_running_loop().call_soon(task.cancel)
        else:
            awaited.add_done_callback(lambda _: task.cancel())  # before the task's own callback, which wakes it
