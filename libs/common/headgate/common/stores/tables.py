"""What everybody needs who reads or writes tables, wherever they are kept."""

from typing import NamedTuple

from headgate.common.stores import HeartbeatBoard, LeaseBoard, SnapshotStore, TrafficBoard


class TableStores(NamedTuple):
    """The tables, who serves which revision of them, who may publish, and what traffic there is."""

    snapshots: SnapshotStore
    heartbeats: HeartbeatBoard
    leases: LeaseBoard
    traffic: TrafficBoard
