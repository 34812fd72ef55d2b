"""What everybody needs who reads or writes tables, wherever they are kept."""

from typing import NamedTuple

from headgate.common.stores import HeartbeatBoard, LeaseBoard, SnapshotStore


class TableStores(NamedTuple):
    """The tables, who serves which revision of them, and who may publish."""

    snapshots: SnapshotStore
    heartbeats: HeartbeatBoard
    leases: LeaseBoard
