"""Opening the stores that the settings name: the one place where NATS and Redis are chosen between.

Log and statuses are always on NATS; tables, heartbeats and leases are on NATS or on Redis. The client of Redis is
imported where it is needed only: it takes 24 MB and 0.15 s.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from headgate.common.stores import (
    DeltaLogReader,
    DeltaLogWriter,
    HeartbeatBoard,
    LastGoodLog,
    LeaseBoard,
    SnapshotStore,
    StatusBoard,
    TrafficBoard,
)
from headgate.common.stores.settings import StoreSettings
from headgate.common.stores.tables import TableStores

if TYPE_CHECKING:
    from headgate.common.bus.connection import Bus
    from headgate.common.stores.nats import NatsStores

OpenTables = Callable[[], AbstractAsyncContextManager[TableStores]]
"""Opens the stores of tables, however long that takes, and closes them on exit."""


class Stores(NamedTuple):
    """All stores, each where the settings say."""

    bus: "Bus"
    log_reader: DeltaLogReader
    log_writer: DeltaLogWriter
    last_good: LastGoodLog
    statuses: StatusBoard
    snapshots: SnapshotStore
    heartbeats: HeartbeatBoard
    leases: LeaseBoard
    traffic: TrafficBoard


def choose_redis(settings: StoreSettings, name: str, wait_s: float | None = None) -> OpenTables | None:
    """Return what opens the tables on Redis; None if the settings say that they are on NATS.

    Args:
        settings: where the tables are.
        name: of this process, as the server's list of clients shows it.
        wait_s: seconds to wait for the connection; None: as long as it takes.
    """
    target = settings.redis
    if target is None:
        return None
    from headgate.common.stores.redis.stores import open_tables as open_redis

    return lambda: open_redis(target, name, wait_s)


def open_tables(
    settings: StoreSettings, stores: "NatsStores", name: str, wait_s: float | None = None
) -> AbstractAsyncContextManager[TableStores]:
    """Open the stores of tables for a process that is connected to NATS already; arguments as of `choose_redis`.

    Raises:
        StoreUnavailable: Redis did not answer in time.
    """
    on_redis = choose_redis(settings, name, wait_s)
    return nullcontext(tables_of(stores)) if on_redis is None else on_redis()


def tables_of(stores: "NatsStores") -> TableStores:
    """Return the stores of tables on NATS."""
    return TableStores(stores.snapshots, stores.heartbeats, stores.leases, stores.traffic)


def combine(stores: "NatsStores", tables: TableStores) -> Stores:
    """Return all stores: those of tables as given, the others on NATS."""
    return Stores(stores.bus, stores.log_reader, stores.log_writer, stores.last_good, stores.statuses, *tables)
