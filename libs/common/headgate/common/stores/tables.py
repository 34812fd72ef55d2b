"""What everybody needs who reads or writes tables, wherever they are kept."""

from typing import NamedTuple

from headgate.common.stores import HeartbeatBoard, SnapshotStore


class TableStores(NamedTuple):
    """The tables, and who serves which revision of them."""

    snapshots: SnapshotStore
    heartbeats: HeartbeatBoard
