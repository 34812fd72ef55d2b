"""The stores on NATS JetStream (2.12 or newer).

    bus = await Bus.connect(settings.nats, name="headgate translator")
    stores = await NatsStores.open(bus)
    async for item in stores.log_reader.follow(): ...

The translator makes every stream that is absent, also when it disappears while running, and brings those that are there
to the configuration of this release and these settings; everybody else waits for it (`Upkeep`).
"""

import asyncio
import logging
import random
import time
from collections.abc import Collection

from headgate.common.bus.connection import Bus
from headgate.common.deltas import STREAM
from headgate.common.errors import StoreUnavailable
from headgate.common.status import STATUS_STREAM
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
from headgate.common.stores.collecting import CHUNK_GRACE_S
from headgate.common.stores.nats.boards import (
    GATEWAYS_BUCKET,
    NatsHeartbeatBoard,
    NatsStatusBoard,
    gateways_stream,
    status_stream,
)
from headgate.common.stores.nats.jetstream import OURS, Upkeep
from headgate.common.stores.nats.keys import TABLES_BUCKET
from headgate.common.stores.nats.last_good import NatsLastGoodLog
from headgate.common.stores.nats.leases import NatsLeaseBoard
from headgate.common.stores.nats.log import NatsDeltaLogReader, NatsDeltaLogWriter, delta_stream
from headgate.common.stores.nats.snapshots import NatsSnapshotStore, tables_stream
from headgate.common.stores.nats.traffic import NatsTrafficBoard

__all__ = ["FOR_GATEWAYS", "FOR_WATCHERS", "NatsStores", "Upkeep"]

_log = logging.getLogger(__name__)
USUAL_WAIT_S = 5.0
"""For streams that another service makes as it starts."""

FOR_WATCHERS = (STREAM, STATUS_STREAM)
FOR_GATEWAYS = (f"KV_{TABLES_BUCKET}", f"KV_{GATEWAYS_BUCKET}")
"""The streams that each of them needs; the translator and those who ask need all."""


class NatsStores:
    """All stores on one bus. `NatsStores(bus)` alone does no I/O."""

    log_writer: DeltaLogWriter
    log_reader: DeltaLogReader
    last_good: LastGoodLog
    snapshots: SnapshotStore
    statuses: StatusBoard
    heartbeats: HeartbeatBoard
    leases: LeaseBoard
    traffic: TrafficBoard

    def __init__(self, bus: Bus, *, upkeep: Upkeep = OURS, chunk_grace_s: float = CHUNK_GRACE_S) -> None:
        """Describe the stores.

        Args:
            bus: the connection.
            upkeep: whether we make the streams, and how they are kept.
            chunk_grace_s: how long a chunk that nothing names is kept.
        """
        self.bus = bus
        log, tables = delta_stream(bus, upkeep), tables_stream(bus, upkeep)
        statuses, gateways = status_stream(bus, upkeep), gateways_stream(bus, upkeep)
        self._streams = (log, tables, statuses, gateways)
        self.log_writer = NatsDeltaLogWriter(log)
        self.log_reader = NatsDeltaLogReader(log)
        self.last_good = NatsLastGoodLog(log)
        self.snapshots = NatsSnapshotStore(tables, chunk_grace_s)
        self.statuses = NatsStatusBoard(statuses)
        self.heartbeats = NatsHeartbeatBoard(gateways)
        self.leases = NatsLeaseBoard(tables)
        self.traffic = NatsTrafficBoard(bus)

    @classmethod
    async def open(
        cls, bus: Bus, *, upkeep: Upkeep = OURS, needs: Collection[str] = (), chunk_grace_s: float = CHUNK_GRACE_S
    ) -> "NatsStores":
        """Return the stores once their streams are there; waits for as long as it takes.

        Args:
            bus: the connection.
            upkeep: whether we make the streams, and how they are kept.
            needs: names of the streams that are waited for; all if there is none.
            chunk_grace_s: how long a chunk that nothing names is kept.
        """
        stores = cls(bus, upkeep=upkeep, chunk_grace_s=chunk_grace_s)
        began, pause_s, told = time.monotonic(), 0.05, (0, "")
        while True:
            try:
                await stores.ensure(needs)
            except StoreUnavailable as error:
                # At a first start the streams are made within a second: a warning each time would not be believed.
                level = logging.WARNING if time.monotonic() - began >= USUAL_WAIT_S else logging.INFO
                if bus.is_connected and (level, str(error)) != told:
                    told = (level, str(error))
                    _log.log(level, "waiting for JetStream", extra={"nats": bus.address, "reason": str(error)})
            else:
                return stores
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            pause_s = min(2.0, pause_s * 1.25)

    async def ensure(self, needs: Collection[str] = ()) -> None:
        """See to it that streams are there, as `Stream.ensure` does.

        Args:
            needs: their names; all if there is none.

        Raises:
            StoreUnavailable: not now.
        """
        for stream in self._streams:
            if not needs or stream.name in needs:
                await stream.ensure()
