"""The stores as a translator uses them."""

from typing import NamedTuple

from headgate.common.stores import (
    DeltaLogReader,
    DeltaLogWriter,
    HeartbeatBoard,
    LastGoodLog,
    SnapshotStore,
    StatusBoard,
)
from headgate.translator.leading.log_confirmation import AskWatchers


class Stores(NamedTuple):
    """What the translator's loop needs of the stores."""

    log: DeltaLogReader
    last_good: LastGoodLog
    snapshots: SnapshotStore
    statuses: StatusBoard
    heartbeats: HeartbeatBoard
    ask_watchers: AskWatchers | None = None
    """None where no watcher can be asked, and where the log never is an older copy."""
    log_writer: DeltaLogWriter | None = None
    """For decisions about clusters that the log lost; None: nothing is ever written back."""
