"""Statuses, heartbeats and leases on dictionaries, and traffic for those who listen."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from headgate.common.errors import Conflict, StoreError
from headgate.common.heartbeats import TTL_S, Heartbeat
from headgate.common.leadership.leases import Lease, StoredLease
from headgate.common.status import EncodedStatus, StatusUpdate, status_subject
from headgate.common.stores.memory.changes import Changes
from headgate.common.stores.memory.log import Clock
from headgate.common.traffic import Tap, TrafficSummary


class MemoryStatusBoard:
    """`StatusBoard` on a dictionary."""

    def __init__(self) -> None:
        self._changes = Changes()
        self.updates: dict[str, tuple[int, StatusUpdate]] = {}
        self.sequence = 0

    async def post(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        """Replace what is wanted for some objects."""
        for update in updates:
            self.sequence += 1
            subject = status_subject(update.ref, update.table)
            self.updates.pop(subject, None)
            self.updates[subject] = (self.sequence, update)
        self._changes.tell()
        return [update.encode() for update in updates]

    async def forget(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        """Replace what is wanted for objects that are gone; kept, as no process lives long enough to matter."""
        return await self.post(*updates)

    async def follow(self, cluster: str, table: str = "") -> AsyncGenerator[StatusUpdate]:
        """Yield what is wanted for every object of a cluster, then every change, for ever."""
        changed = self._changes.listen()
        seen = 0
        try:
            while True:
                changed.clear()
                for sequence, update in list(self.updates.values()):
                    if sequence > seen:
                        seen = sequence
                        if update.ref.cluster == cluster and table in ("", update.table):
                            yield update
                if seen == self.sequence:
                    await changed.wait()
        finally:
            self._changes.forget(changed)

    async def follow_encoded(self, cluster: str, table: str) -> AsyncIterator[Sequence[EncodedStatus]]:
        """Yield what `follow` does for one table, each as it is encoded."""
        async with aclosing(self.follow(cluster, table)) as updates:
            async for update in updates:
                yield [EncodedStatus(update.ref, update.encode())]

    async def read(self, cluster: str, table: str = "", *, with_problems: bool = False) -> Sequence[StatusUpdate]:
        """Return what is wanted for every object of a cluster now, or for those with problems."""
        updates = (update for _, update in self.updates.values() if update.problems or not with_problems)
        wanted = (one for one in updates if one.ref.cluster == cluster and table in ("", one.table))
        return sorted(wanted, key=lambda update: (update.ref, update.table))


class MemoryHeartbeatBoard:
    """`HeartbeatBoard` on a dictionary."""

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self._beats: dict[tuple[str, int, str], tuple[float, Heartbeat]] = {}

    async def beat(self, heartbeat: Heartbeat) -> None:
        """Announce a worker."""
        self._beats[heartbeat.replica, heartbeat.worker, heartbeat.table] = (self._clock(), heartbeat)

    async def remove(self, heartbeat: Heartbeat) -> None:
        """Take a worker's announcement back."""
        self._beats.pop((heartbeat.replica, heartbeat.worker, heartbeat.table), None)

    async def live(self) -> Sequence[Heartbeat]:
        """Return the announcements that have not expired, sorted by replica and worker."""
        limit = self._clock() - TTL_S
        return [heartbeat for _, (at, heartbeat) in sorted(self._beats.items()) if at > limit]


class MemoryLeaseBoard:
    """`LeaseBoard` on a dictionary."""

    def __init__(self) -> None:
        self.leases: dict[str, StoredLease] = {}
        self._writes = 0

    async def read(self, name: str) -> StoredLease | None:
        """Return a lease; None if there is none."""
        return self.leases.get(name)

    async def write(self, name: str, lease: Lease, expected: str | None) -> StoredLease:
        """Replace a lease if it is still the one that was read."""
        before = self.leases.get(name)
        found = before.version if before else None
        if found != expected:
            raise Conflict(f"lease {name}: expected version {expected}, found {found}")
        self._writes += 1
        self.leases[name] = StoredLease(lease, str(self._writes))
        return self.leases[name]


class MemoryTrafficBoard:
    """`TrafficBoard` in memory."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[TrafficSummary]] = set()
        self._tapping: set[asyncio.Queue[tuple[str, Tap]]] = set()

    async def tell(self, summary: TrafficSummary) -> None:
        """Say what one worker's traffic was."""
        for listener in self._listeners:
            listener.put_nowait(summary)

    async def listen(self, table: str) -> AsyncGenerator[TrafficSummary]:
        """Yield what is said of a table's traffic from now on, for ever."""
        heard: asyncio.Queue[TrafficSummary] = asyncio.Queue()
        self._listeners.add(heard)
        try:
            while True:
                summary = await heard.get()
                if summary.table == table:
                    yield summary
        finally:
            self._listeners.discard(heard)

    async def tap(self, table: str, tap: Tap) -> None:
        """Ask the workers of a table to tell finished requests."""
        for each in self._tapping:
            each.put_nowait((table, tap))

    async def taps(self, table: str) -> AsyncGenerator[Tap]:
        """Yield what is asked of the workers of a table, for ever."""
        heard: asyncio.Queue[tuple[str, Tap]] = asyncio.Queue()
        self._tapping.add(heard)
        try:
            while True:
                of, tap = await heard.get()
                if of == table:
                    yield tap
        finally:
            self._tapping.discard(heard)
