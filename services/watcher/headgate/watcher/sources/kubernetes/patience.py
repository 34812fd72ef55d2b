"""How one kind waits before it asks the API server again, by what went wrong.

- The server is away: until it is back (`outages`).
- It asks for time (`Retry-After`), does not know us, or fails for this kind: up to 30 s, as client-go waits.
- Watches that end, break or expire although it is well: up to 5 s, and up to 30 s if they do not live at all.
- A missing right: up to 5 min.
"""

from random import Random

from headgate.watcher.api.backoff import Backoff, WatchPauses, slow_backoff
from headgate.watcher.errors import ApiStatusError, ApiUnreachable, Expired, Forbidden, WatcherError
from headgate.watcher.sources.kubernetes.outages import Outages


class Patience:
    """That of one kind in one scope."""

    def __init__(self, outages: Outages, rng: Random) -> None:
        """Begin with short waits."""
        self._outages = outages
        self._backoff = Backoff(rng)
        self._slow_backoff = slow_backoff(rng)
        self._pauses = WatchPauses(rng)

    async def after(self, error: WatcherError, *, list_s: float = 0.0) -> None:
        """Wait after an error; `list_s` is what the last list took."""
        if isinstance(error, Forbidden):
            await self._slow_backoff.wait()
        elif _may_be_outage(error) and await self._outages.outwait():
            return
        elif isinstance(error, Expired | ApiUnreachable):
            await self._pauses.wait(list_s)
        else:
            await self._backoff.wait(error.retry_after_s if isinstance(error, ApiStatusError) else None)

    async def after_short_watch(self) -> None:
        """Wait after a watch that ended well but early."""
        await self._pauses.wait()


def _may_be_outage(error: WatcherError) -> bool:
    if isinstance(error, ApiStatusError):
        return error.status >= 500 and error.retry_after_s is None
    return isinstance(error, ApiUnreachable)
