"""Whether the API server itself is away: found out once for all kinds that meet trouble, and so is its return.

A connection that is refused and an answer 500 may be the server's trouble or that of one kind (an aggregated API, a
proxy that cuts large answers). `/readyz` tells them apart: it is cheap, may be read by everyone, and fails when the
server has lost its storage. One request at a time asks it, every few seconds, and when it answers well all who wait go
on within a second. So an outage ends for everybody soon after it ends, and meanwhile costs the server less than a
Lease does. A kind that finds the server well at once has trouble of its own, which the health of others never shortens.

Rejected: each kind with a backoff of its own, as client-go does it: what is short enough to be back soon is too often
for eight kinds in fifty namespaces. And taking any kind's success for the server's return: others succeed all the
time while one kind is broken.
"""

import asyncio
from contextlib import suppress
from random import Random

from headgate.watcher.api.backoff import Backoff
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.errors import ApiStatusError, WatcherError

PATH = "/readyz"
ANSWER_S = 3.0
"""A server that takes longer for this is not there for lists either."""
LONGEST_PAUSE_S = 3.0
"""Between the beginnings of two requests, unless one takes longer."""
SPREAD_S = 1.0
"""All who waited go on within this, each at a time of its own."""
OUTWAITED_S = (15.0, 30.0)
"""A kind that waits tries by itself after this: the server's opinion of itself may be wrong."""
_SOON_S = 0.2


class Outages:
    """Those of one server."""

    def __init__(self, transport: KubernetesTransport, rng: Random) -> None:
        """Choose the server, and where jitter comes from."""
        self._transport = transport
        self._rng = rng
        self._pauses = Backoff(rng, longest_s=LONGEST_PAUSE_S, jitter=0.5)
        self._asking = asyncio.Lock()
        self._well_at = self._away_at = self._next_at = float("-inf")

    async def outwait(self) -> bool:
        """Return False if the server is well; if it is away, wait until it is back or for half a minute: True."""
        began_at = _now()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._rng.uniform(*OUTWAITED_S)), self._asking:
                while self._well_at < began_at:
                    await self._ask()
        if self._away_at < began_at:
            return False
        await asyncio.sleep(self._rng.uniform(0, SPREAD_S))
        return True

    async def _ask(self) -> None:
        """Ask once, not too soon after a bad answer, whichever kind got that."""
        await asyncio.sleep(max(0.0, self._next_at - _now()))
        asked_at = _now()
        if await self._is_well():
            self._well_at = asked_at
            return
        self._away_at = _now()
        self._next_at = max(asked_at + self._pauses.next_delay(asked_at), self._away_at + _SOON_S)

    async def _is_well(self) -> bool:
        try:
            await self._transport.request("GET", PATH, timeout_s=ANSWER_S)
        except ApiStatusError as error:
            return error.status < 500  # the server that keeps it from us is there
        except WatcherError:
            return False
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()
