"""A hook of a plugin that is being awaited: the only thing for which a request with plugins has a task."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from headgate.gateway.plugins.interface.messages import Response

if TYPE_CHECKING:
    from headgate.gateway.proxy.exchange.exchange import Exchange


class HookWait:
    """At most one hook of a request is awaited at a time."""

    def __init__(self, exchange: "Exchange", route: str) -> None:
        self._exchange = exchange
        self._route = route
        self._task: asyncio.Task[None] | None = None
        self._turn = 0
        """Of what is being awaited: a hook whose turn is over has nothing to say any more."""
        self._has_begun = False
        """The task has made its first step."""

    @property
    def is_waiting(self) -> bool:
        """A hook is being awaited."""
        return self._task is not None

    def wait(self, pending: Awaitable[Response | None], then: Callable[[Response | None], None]) -> None:
        """Await a hook, and call `then` with its outcome unless it is called off before."""
        self._turn += 1
        self._has_begun = False
        waiting = self._wait(pending, then, self._turn)
        self._task = asyncio.get_running_loop().create_task(waiting, name=f"plugins of {self._route}")
        self._exchange.wait_for_hooks()

    async def _wait(
        self, pending: Awaitable[Response | None], then: Callable[[Response | None], None], turn: int
    ) -> None:
        self._has_begun = True
        if turn != self._turn:
            # Called off before the first step: the hook gets as far as its first wait, and ends there.
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        outcome = await pending
        if turn == self._turn:
            self._task = None
            then(outcome)

    def call_off(self) -> None:
        """Take no notice any more of the hook that is being awaited, if there is one, and end it."""
        self._turn += 1
        task, self._task = self._task, None
        if task is not None and self._has_begun:
            task.cancel()
