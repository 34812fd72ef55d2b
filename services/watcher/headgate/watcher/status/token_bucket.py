"""A rate limit that lets bursts pass."""

import asyncio


class TokenBucket:
    """At most `burst` at once and `per_s` a second in the long run; who comes first is served first."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled_at: float | None = None
        self._turn = asyncio.Lock()

    async def take(self) -> None:
        """Wait for a token."""
        async with self._turn:
            self._fill()
            if self._tokens < 1:
                await asyncio.sleep((1 - self._tokens) / self._per_s)
                self._fill()
            self._tokens -= 1

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_s)
        self._filled_at = now
