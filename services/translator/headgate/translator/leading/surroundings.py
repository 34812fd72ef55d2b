"""What gateways and store look like, looked at now and then, and more often when something is expected of them."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Pointer, Version
from headgate.common.status import LoadBalancerAddress
from headgate.common.stores import HeartbeatBoard, SnapshotStore
from headgate.translator.sources.addresses import announced


class Surroundings(NamedTuple):
    """What gateways and store look like now."""

    pointer: Pointer | None
    served: Version | None
    """Greatest version that a gateway serves."""
    addresses: tuple[LoadBalancerAddress, ...] | None
    heartbeats: tuple[Heartbeat, ...]
    """Of the table's gateways."""
    known: Version | None = None
    """Version of the pointer that was known when the look began."""

    def seen_by(self, pointer: Pointer | None) -> "Surroundings":
        """Return it with the pointer that we have committed since the look began, if we have: the one read is older."""
        is_past = pointer is not None and pointer.version != self.known
        is_older = self.pointer is not None and pointer is not None and self.pointer.version < pointer.version
        return self._replace(pointer=pointer) if is_past and is_older else self


class Lookout:
    """Looks at the store and the gateways of one table."""

    def __init__(self, board: HeartbeatBoard, store: SnapshotStore, table: str) -> None:
        self._board = board
        self._store = store
        self._table = table
        self._soon = asyncio.Event()

    async def gateways(self) -> tuple[Heartbeat, ...]:
        """Return what the table's gateways say.

        Raises:
            StoreUnavailable: not now.
        """
        return tuple(beat for beat in await self._board.live() if beat.table == self._table)

    async def look(self) -> Surroundings:
        """Return what gateways and store look like; raises what `gateways` does."""
        # Heartbeats first: a pointer read later is older than one of them only if the store went back.
        heartbeats = await self.gateways()
        served = max((beat.version for beat in heartbeats if beat.version is not None), default=None)
        pointer = await self._store.read_pointer(self._table)
        return Surroundings(pointer, served, announced(heartbeats, self._table), heartbeats)

    def look_soon(self) -> None:
        """Have the next look come soon, and each further one after twice the time."""
        self._soon.set()

    async def run(
        self, look: Callable[[], Awaitable[None]], first_s: Callable[[], float], longest_s: Callable[[], float]
    ) -> None:
        """Look for ever.

        Args:
            look: does it.
            first_s: seconds from `look_soon` to the next look.
            longest_s: seconds between two looks.
        """
        pause_s = longest_s()
        while True:
            try:
                async with asyncio.timeout(pause_s * random.uniform(0.8, 1.0)):  # noqa: S311 - not a secret
                    await self._soon.wait()
            except TimeoutError:
                await look()
                pause_s = min(longest_s(), pause_s * 2)
            else:
                self._soon.clear()
                pause_s = min(longest_s(), first_s())
