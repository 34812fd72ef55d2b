"""Every implementation of the stores."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol

from fakes.stores.nats import real_stores
from headgate.common.stores import (
    DeltaLogReader,
    DeltaLogWriter,
    HeartbeatBoard,
    SnapshotStore,
    StatusBoard,
    TrafficBoard,
)
from headgate.common.stores.memory.stores import MemoryStores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Tables(Protocol):
    """What gateways need, too."""

    snapshots: SnapshotStore
    heartbeats: HeartbeatBoard
    traffic: TrafficBoard


class Stores(Tables, Protocol):
    """What stands between watchers and translators, besides."""

    log_writer: DeltaLogWriter
    log_reader: DeltaLogReader
    statuses: StatusBoard


@asynccontextmanager
async def memory() -> AsyncIterator[Stores]:
    yield MemoryStores()


IMPLEMENTATIONS: dict[str, Callable[[], AbstractAsyncContextManager[Stores]]] = {
    "memory": memory,
    "nats": real_stores,
}
