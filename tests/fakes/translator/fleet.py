"""Gateways that say in heartbeats what a table's manifest has them serve, with the figures that a test gives them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from headgate.common.errors import NotFound
from headgate.common.heartbeats import Heartbeat, RolloutReport, TrafficCounts
from headgate.common.snapshot import Manifest, RolloutPhase
from headgate.common.stores import HeartbeatBoard, SnapshotStore

BOUNDS_S = (0.01, 0.1, 1.0)


def counts(requests: int, errors: int = 0, *, slow: int = 0) -> TrafficCounts:
    """Requests that took less than 10 ms, but for those that took more than a second."""
    return TrafficCounts(errors=errors, bounds_s=BOUNDS_S, buckets=(requests - slow, 0, 0, slow))


@dataclass
class FakeGateway:
    """One replica with one worker."""

    replica: str
    requests: int = 1000
    """Said of every step."""
    errors: int = 0
    errors_of_next: int = 0
    slow_of_next: int = 0
    manifest: Manifest | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_silent: bool = False
    refuses_next: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def is_next(self) -> bool:
        """Whether it serves the next table."""
        rollout = self.manifest.rollout if self.manifest else None
        return rollout is not None and self.replica in rollout.replicas

    def beat(self, table: str = "default") -> Heartbeat:
        manifest, report = self.manifest, None
        rollout = manifest.rollout if manifest else None
        if rollout is not None and rollout.phase is RolloutPhase.STEPPING:
            errors = self.errors_of_next if self.is_next else self.errors
            done = counts(self.requests, errors, slow=self.slow_of_next if self.is_next else 0)
            report = RolloutReport(
                step=rollout.begun, is_next=self.is_next, started=self.started, changed=done, all=done
            )
        return Heartbeat(
            replica=self.replica,
            worker=0,
            table=table,
            version=manifest.version if manifest else None,
            pinned=manifest.pin.version if manifest and manifest.pin else None,
            routes=manifest.routes_of(self.replica) if manifest and rollout else None,
            rollout=report,
            at=datetime.now(UTC),
            **self.more,
        )


class FakeFleet:
    """Replicas of one table, each at its newest revision."""

    def __init__(self, snapshots: SnapshotStore, board: HeartbeatBoard) -> None:
        self._snapshots = snapshots
        self._board = board
        self.gateways: dict[str, FakeGateway] = {}

    def __getitem__(self, replica: str) -> FakeGateway:
        return self.gateways[replica]

    def add(self, *replicas: str, **figures: Any) -> None:
        for replica in replicas:
            self.gateways[replica] = FakeGateway(replica, **figures)

    async def remove(self, replica: str) -> None:
        """It leaves and says so."""
        await self._board.remove(self.gateways.pop(replica).beat())

    @property
    def next(self) -> list[str]:
        """Those that serve the next table."""
        return sorted(name for name, gateway in self.gateways.items() if gateway.is_next)

    async def look(self) -> None:
        """Each takes the newest table and says what it does."""
        pointer = await self._snapshots.read_pointer("default")
        for gateway in list(self.gateways.values()):
            if pointer is not None and (gateway.manifest is None or gateway.manifest.version < pointer.version):
                with suppress(NotFound):
                    manifest = await self._snapshots.get_manifest("default", pointer.version)
                    rollout = manifest.rollout
                    is_next = rollout is not None and gateway.replica in rollout.replicas
                    if not (gateway.refuses_next and is_next):
                        gateway.manifest = manifest
            if not gateway.is_silent and gateway.replica in self.gateways:
                await self._board.beat(gateway.beat())


@asynccontextmanager
async def fleet_of(
    snapshots: SnapshotStore, board: HeartbeatBoard, *replicas: str, every_s: float = 0.005, **figures: Any
) -> AsyncIterator[FakeFleet]:
    """Run replicas."""
    fleet = FakeFleet(snapshots, board)
    fleet.add(*replicas, **figures)

    async def run(look: Callable[[], Any]) -> None:
        while True:
            await look()
            await asyncio.sleep(every_s)

    await fleet.look()
    task = asyncio.create_task(run(fleet.look))
    try:
        yield fleet
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()
