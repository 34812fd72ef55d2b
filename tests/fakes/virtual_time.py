"""An event loop whose clock jumps: minutes of timeouts pass in milliseconds, and every test run is the same.

When no callback is ready and no socket has data, time moves to the next timer. Real sockets work, as long as both ends
are in the same loop and the kernel's buffers have room: where they are full, the kernel's own timers take longer than
`_SETTLE_S`. What would run in a thread runs at once: the loop could not see that it is under way. In a test,
`time.monotonic` gives the loop's time, too.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec
from unittest import mock

_P = ParamSpec("_P")
_SETTLE_S = 0.003
"""What was sent over loopback arrives within this; only then is it certain that nobody has anything to do."""


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.jumped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(min(timeout, _SETTLE_S))
        if not ready:
            self.jumped_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop that never waits."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds; they begin at 0."""
        return self._jumping.jumped_s

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Call the function here and now."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def in_virtual_time(test: Callable[_P, Coroutine[Any, Any, None]]) -> Callable[_P, None]:
    """Run an async test in a `VirtualTimeLoop`."""

    @functools.wraps(test)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        with (
            asyncio.Runner(loop_factory=VirtualTimeLoop) as runner,
            mock.patch("time.monotonic", runner.get_loop().time),
        ):
            runner.run(test(*args, **kwargs))

    return run
