"""The stores on NATS JetStream (2.12 or newer).

    bus = await Bus.connect(settings.nats_url, name="translator")
    stores = await NatsStores.open(bus)
    async for item in stores.log_reader.follow(): ...

Every stream is made when it is absent, also when it disappears while running.
"""

import asyncio
import logging
import random

from headgate.common.bus import Bus
from headgate.common.errors import StoreUnavailable
from headgate.common.stores import DeltaLogReader, DeltaLogWriter, HeartbeatBoard, SnapshotStore, StatusBoard
from headgate.common.stores.collecting import CHUNK_GRACE_S
from headgate.common.stores.nats.boards import NatsHeartbeatBoard, NatsStatusBoard, gateways_stream, status_stream
from headgate.common.stores.nats.log import NatsDeltaLogReader, NatsDeltaLogWriter, delta_stream
from headgate.common.stores.nats.snapshots import NatsSnapshotStore, tables_stream

__all__ = ["NatsStores"]

_log = logging.getLogger(__name__)


class NatsStores:
    """All stores on one bus. `NatsStores(bus)` alone does no I/O: what is missing is made on first use."""

    log_writer: DeltaLogWriter
    log_reader: DeltaLogReader
    snapshots: SnapshotStore
    statuses: StatusBoard
    heartbeats: HeartbeatBoard

    def __init__(self, bus: Bus, *, replicas: int = 1, chunk_grace_s: float = CHUNK_GRACE_S) -> None:
        """Describe the stores.

        Args:
            bus: the connection.
            replicas: servers that keep each stream; 3 in a cluster.
            chunk_grace_s: how long a chunk that nothing names is kept.
        """
        self.bus = bus
        log, tables = delta_stream(bus, replicas), tables_stream(bus, replicas)
        statuses, gateways = status_stream(bus, replicas), gateways_stream(bus, replicas)
        self._streams = (log, tables, statuses, gateways)
        self.log_writer = NatsDeltaLogWriter(log)
        self.log_reader = NatsDeltaLogReader(log)
        self.snapshots = NatsSnapshotStore(tables, chunk_grace_s)
        self.statuses = NatsStatusBoard(statuses)
        self.heartbeats = NatsHeartbeatBoard(gateways)

    @classmethod
    async def open(cls, bus: Bus, *, replicas: int = 1, chunk_grace_s: float = CHUNK_GRACE_S) -> "NatsStores":
        """Return the stores with all streams made; waits for JetStream as long as it takes."""
        stores = cls(bus, replicas=replicas, chunk_grace_s=chunk_grace_s)
        pause_s, is_told = 0.05, False
        while True:
            try:
                await stores.ensure()
            except StoreUnavailable as error:
                if not is_told:
                    _log.warning("waiting for JetStream", extra={"nats": bus.address, "reason": str(error)})
                is_told = True
            else:
                return stores
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            pause_s = min(2.0, pause_s * 1.6)

    async def ensure(self) -> None:
        """Make every stream that is missing.

        Raises:
            StoreUnavailable: not now.
        """
        for stream in self._streams:
            await stream.ensure()
