"""Active checks: one scheduler asks every endpoint from time to time, and says when the verdict on one changes.

A heap of due times and a single timer serve all upstreams of a worker: an endpoint costs two small objects and no task
while it rests. A task exists for as long as a check is under way, and no more than `max_under_way` are at a time. The
alternative, a task with a loop per endpoint, costs some kilobytes and a timer each.

As in nginx and Envoy without a warming phase an endpoint is healthy until its checks say otherwise: after a start, or
when an endpoint is new, there is traffic at once. The first check follows within a second, at a time drawn at random.
"""

import asyncio
import heapq
import random
from collections.abc import Awaitable, Callable
from typing import Final

from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.target import CheckTarget

Probe = Callable[[CheckTarget], Awaitable[str | None]]
"""Asks an endpoint once, within the check's timeout; returns why it failed, None if it did not."""
OnVerdict = Callable[[bool], None]

FIRST_WITHIN_S: Final = 1.0
JITTER: Final = 0.1
"""Share by which intervals vary, so that checks that began together do not stay together."""
MAX_UNDER_WAY: Final = 512


class _Watched:
    """One target, for all who asked for it."""

    __slots__ = ("due", "is_healthy", "listeners", "reason", "streak", "target")

    def __init__(self, target: CheckTarget, is_healthy: bool, due: float) -> None:
        self.target = target
        self.due = due
        self.is_healthy = is_healthy
        self.reason = ""
        self.streak = 0
        """Results in a row that speak against the verdict."""
        self.listeners: dict[Watch, OnVerdict] = {}

    def take(self, failure: str | None) -> bool:
        """Learn a result; True if the verdict changed."""
        self.reason = failure or ""
        if self.is_healthy == (failure is None):
            self.streak = 0
            return False
        self.streak += 1
        check = self.target.check
        if self.streak < (check.unhealthy_after if self.is_healthy else check.healthy_after):
            return False
        self.is_healthy = not self.is_healthy
        self.streak = 0
        return True

    @property
    def interval_s(self) -> float:
        check = self.target.check
        return check.interval_s if self.is_healthy else (check.unhealthy_interval_s or check.interval_s)


class Watch:
    """A wish to hear of a target."""

    __slots__ = ("_checker", "_target")

    def __init__(self, checker: "ActiveChecker", target: CheckTarget) -> None:
        self._checker = checker
        self._target = target

    def why_unhealthy(self) -> str:
        """Return what the last check of an unhealthy target said; empty for a healthy one."""
        return self._checker.why_unhealthy(self._target)

    def cancel(self) -> None:
        """Hear no more; the last to leave ends the check."""
        self._checker.unwatch(self._target, self)


class ActiveChecker:
    """All checks of one worker. Made and used on its event loop.

    Args:
        probe: asks an endpoint.
        stats: where checks are counted.
        draw: gives numbers from 0 to 1 for the spread in time.
        max_under_way: checks at a time; further ones begin late.
    """

    def __init__(
        self,
        probe: Probe,
        stats: HealthStats,
        draw: Callable[[], float] = random.random,
        max_under_way: int = MAX_UNDER_WAY,
    ) -> None:
        self._probe = probe
        self._stats = stats
        self._draw = draw
        self._max_under_way = max_under_way
        self._watched: dict[CheckTarget, _Watched] = {}
        self._queue: list[tuple[float, int, _Watched]] = []
        self._count = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._watched)

    def why_unhealthy(self, target: CheckTarget) -> str:
        """What the last check of an unhealthy target said; empty for a healthy one."""
        watched = self._watched.get(target)
        return "" if watched is None or watched.is_healthy else watched.reason

    def watch(self, target: CheckTarget, is_healthy: bool, on_verdict: OnVerdict) -> Watch:
        """Check a target from now on and tell every change of the verdict, which at first is `is_healthy`.

        If the target is checked for somebody else, and the verdict another, that is told before this returns.
        """
        watched = self._watched.get(target)
        if watched is None:
            within_s = min(FIRST_WITHIN_S, target.check.interval_s)
            due = asyncio.get_running_loop().time() + self._draw() * within_s
            watched = self._watched[target] = _Watched(target, is_healthy, due)
            self._enqueue(watched)
        watch = Watch(self, target)
        watched.listeners[watch] = on_verdict
        if watched.is_healthy != is_healthy:
            on_verdict(watched.is_healthy)
        return watch

    def unwatch(self, target: CheckTarget, watch: Watch) -> None:
        """End what `watch` began."""
        watched = self._watched.get(target)
        if watched is None or watched.listeners.pop(watch, None) is None or watched.listeners:
            return
        del self._watched[target]
        if len(self._queue) > 2 * len(self._watched) + 64:
            self._queue = [entry for entry in self._queue if entry[2].listeners]
            heapq.heapify(self._queue)

    async def close(self) -> None:
        """End all checks, those under way included."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._watched.clear()
        self._queue.clear()
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _enqueue(self, watched: _Watched) -> None:
        self._count += 1
        heapq.heappush(self._queue, (watched.due, self._count, watched))
        if self._queue[0][2] is watched or self._timer is None:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queue and not self._is_closed and len(self._under_way) < self._max_under_way:
            self._timer = asyncio.get_running_loop().call_at(self._queue[0][0], self._begin_due)

    def _begin_due(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        queue = self._queue
        while queue and queue[0][0] <= now and len(self._under_way) < self._max_under_way:
            _, _, watched = heapq.heappop(queue)
            if watched.listeners:
                self._stats.check_delay_s = now - watched.due
                task = asyncio.create_task(self._check(watched, now))
                self._under_way.add(task)
                task.add_done_callback(self._note_done)
        self._set_timer()

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.result()
        if self._timer is None:
            self._set_timer()

    async def _check(self, watched: _Watched, began: float) -> None:
        check = watched.target.check
        try:
            failure = await self._probe(watched.target)
        except Exception as error:
            # Whatever it is, a check that ends for ever would leave its last verdict standing.
            failure = repr(error)
        self._stats.checks[check.type, "failure" if failure else "success"] += 1
        if not watched.listeners:
            return
        has_changed = watched.take(failure)
        spread = 1 + JITTER * (2 * self._draw() - 1)
        watched.due = max(began + watched.interval_s * spread, asyncio.get_running_loop().time())
        self._enqueue(watched)
        if has_changed:
            for watch, on_verdict in list(watched.listeners.items()):
                if watch in watched.listeners:
                    on_verdict(watched.is_healthy)
