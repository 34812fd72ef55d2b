"""Log entries on their way to a service: collected, sent off the way of requests, dropped when there are too many."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from headgate.gateway.plugins.kit.memory import Allocation

MAX_PENDING: Final = 16 << 20
"""Bytes of entries that wait in one worker for one service; further ones are dropped."""
SHORTEST_RETRY_S: Final = 0.1
"""Between two tries at a batch, whatever is configured, as a service may refuse at once."""
CLOSE_S = 3.0

Send = Callable[[Sequence[bytes]], Awaitable[None]]
"""Sends entries; whatever it raises means that it failed."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is sent."""

    size: int
    idle_s: float
    """After the last entry."""
    age_s: float
    """After the first entry."""
    retries: int = 0
    retry_s: float = 1.0


class Batches:
    """Entries for one service."""

    def __init__(self, send: Send, limits: BatchLimits, name: str, logger: logging.Logger, waiting: Allocation) -> None:
        self._send = send
        self._limits = limits
        self._name = name
        self._logger = logger
        self._collected: list[bytes] = []
        self._ready: deque[list[bytes]] = deque()
        self._waiting = waiting
        """Of all that was not sent yet."""
        self._first_at = self._last_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sender: asyncio.Task[None] | None = None
        self.dropped = 0
        """Entries that were never sent."""
        self._tell_at = 1
        """Number of them that is told next."""

    def add(self, entry: bytes) -> None:
        """Take an entry."""
        if self._waiting.size + len(entry) > MAX_PENDING or not self._waiting.grow(len(entry)):
            self.drop(1, "too many wait")
            return
        loop = asyncio.get_running_loop()
        self._last_at = loop.time()
        if not self._collected:
            self._first_at = self._last_at
        self._collected.append(entry)
        if len(self._collected) >= self._limits.size:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_at(self._due_at(), self._look)

    def _due_at(self) -> float:
        return min(self._last_at + self._limits.idle_s, self._first_at + self._limits.age_s)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        if not self._collected:
            return
        if loop.time() >= self._due_at():
            self._flush()
        else:
            self._timer = loop.call_at(self._due_at(), self._look)

    def _flush(self) -> None:
        batch, self._collected = self._collected, []
        self._ready.append(batch)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(
                self._send_ready(), name=f"log entries to {self._name}"
            )

    async def _send_ready(self) -> None:
        while self._ready:
            batch = self._ready.popleft()
            await self._deliver(batch)
            self._waiting.shrink(sum(map(len, batch)))

    async def _deliver(self, batch: list[bytes]) -> None:
        for attempt in range(self._limits.retries + 1):
            if attempt:
                await asyncio.sleep(max(self._limits.retry_s, SHORTEST_RETRY_S))
            try:
                await self._send(batch)
                return
            except Exception as error:  # a client library may raise anything at what a service answers
                fault = str(error) or type(error).__name__
        self.drop(len(batch), fault)

    def drop(self, count: int, why: str) -> None:
        """Note that entries are given up."""
        self.dropped += count
        if self.dropped >= self._tell_at:
            # At ever greater distances: a service that is down must not fill our own log.
            self._tell_at = 2 * self.dropped
            self._logger.warning("%d log entries to %s were dropped: %s", self.dropped, self._name, why)

    async def close(self) -> None:
        """Send what is there, in a few seconds at most."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._collected:
            self._flush()
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=CLOSE_S)
            self._sender.cancel()
