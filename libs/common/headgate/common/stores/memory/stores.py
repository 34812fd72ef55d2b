"""All stores in one process."""

import time

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
from headgate.common.stores.memory.boards import (
    MemoryHeartbeatBoard,
    MemoryLeaseBoard,
    MemoryStatusBoard,
    MemoryTrafficBoard,
)
from headgate.common.stores.memory.log import Clock, MemoryDeltaLog
from headgate.common.stores.memory.snapshots import MemorySnapshotStore


class MemoryStores:
    """All stores, empty."""

    log_writer: DeltaLogWriter
    log_reader: DeltaLogReader
    last_good: LastGoodLog
    snapshots: SnapshotStore
    statuses: StatusBoard
    heartbeats: HeartbeatBoard
    leases: LeaseBoard
    traffic: TrafficBoard

    def __init__(self, clock: Clock = time.time) -> None:
        """Make empty stores; `clock` (seconds) decides what is old."""
        self.log = MemoryDeltaLog(clock)
        self.log_writer = self.log_reader = self.last_good = self.log
        self.snapshots = MemorySnapshotStore()
        self.statuses = MemoryStatusBoard()
        self.heartbeats = MemoryHeartbeatBoard(clock)
        self.leases = MemoryLeaseBoard()
        self.traffic = MemoryTrafficBoard()
