"""The two stores between the services, as interfaces: the delta log and the snapshot store.

`nats` holds the implementation on JetStream; `redis` holds another one of what gateways need: snapshots and heartbeats.
Everything here is safe to call at any time: a store that cannot be reached raises `StoreUnavailable`, and the `follow`
iterators never end, never raise and reconnect for ever.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from headgate.common.deltas import AnyDelta, ClusterAnnouncement, Delta, LastGood, LogMessage, LogPlace, SyncMarker
from headgate.common.errors import StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.leadership.leases import Lease, StoredLease
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pointer, Version
from headgate.common.status import EncodedStatus, StatusUpdate
from headgate.common.stores.revision_change import RevisionChange
from headgate.common.traffic import Tap, TrafficSummary

TOMBSTONE_AGE_S = 7 * 24 * 3600.0
"""Longer than any reader is away and then goes on where it was, instead of reading again."""

FORGET_AFTER_S = 3600
"""Longer than a watcher is away and still remembers what was wrong with an object."""


class LoggedObject(NamedTuple):
    """The last delta of an object as the log has it, without its content."""

    uid: str
    resource_version: str
    is_deleted: bool
    sequence: int
    digest: str = ""
    """As in `Delta`."""


class LogPosition(NamedTuple):
    """Where the log stands, and which incarnation of the log that is."""

    incarnation: str
    """Changes when the log was lost and made again."""
    last_sequence: int


class DeltaLogWriter(Protocol):
    """What a watcher needs of the log."""

    async def read_state(self, cluster: str) -> Mapping[ObjectRef, LoggedObject]:
        """Return the last delta of every object of a cluster, tombstones included.

        What was read before is kept, also by a call that was interrupted: the next one reads what came since.

        Raises:
            StoreUnavailable: interrupted; ask again.
        """
        ...

    def forget_state(self, cluster: str) -> None:
        """Read everything again at the next `read_state`: somebody may have removed messages."""
        ...

    async def append(self, delta: AnyDelta, expected_last: int | None = None) -> int:
        """Append one delta and return its sequence.

        Args:
            delta: what happened.
            expected_last: sequence that the object's last delta must have (0: none); None does not check.

        Raises:
            Conflict: another delta of the object came in between.
            TooLarge: the log does not take an object of this size; trying again does not help.
            StoreUnavailable: not confirmed; it may or may not be in the log.
        """
        ...

    async def append_all(self, deltas: Sequence[AnyDelta], expected: Sequence[int] | None = None) -> Sequence[int]:
        """Append many deltas as fast as the log takes them (initial lists); return their sequences.

        Args:
            deltas: what happened.
            expected: for each, the last sequence of its object that the caller knows of (0: none): where somebody
                else is found to have said the same and more since, nothing is stored, and its sequence is 0.

        A delta that is too large for the log is left out and logged; its sequence is 0.

        Raises:
            StoreUnavailable: not all confirmed; any of them may be in the log.
        """
        ...

    async def announce(self, announcement: ClusterAnnouncement) -> None:
        """Say which kinds the cluster's deltas are going to have."""
        ...

    async def mark_synced(self, marker: SyncMarker) -> None:
        """Say that a kind is completely in the log."""
        ...

    async def purge_tombstones(self, cluster: str, older_than_s: float = TOMBSTONE_AGE_S) -> int:
        """Forget deletions that are older than this; return how many."""
        ...

    async def forget_cluster(self, cluster: str, up_to: int) -> None:
        """Forget what a cluster's watchers announced and marked, up to a sequence; its objects stay."""
        ...


class DeltaLogReader(Protocol):
    """What a translator needs of the log."""

    async def position(self) -> LogPosition:
        """Return where the log stands."""
        ...

    async def went_back(self, place: LogPlace) -> bool:
        """Return whether this is an older copy of the log that had a message there; one that is forgotten is no sign.

        Raises:
            StoreUnavailable: not now.
        """
        ...

    def follow(self, known: LogPlace | None = None) -> "AsyncIterator[LogBatch | LogReplay]":
        """Yield the log: the last message of each subject in order, then everything new, for ever.

        Messages come in batches of at most a few hundred, in order of sequence. A `LogReplay` comes first, and again
        whenever the log was lost, recreated or a gap was found: what follows starts from the beginning.

        Args:
            known: a message that somebody read before; the first `LogReplay` says whether the log went back since.
        """
        ...

    async def announcement(self, cluster: str) -> ClusterAnnouncement | None:
        """Return what a cluster's watcher said last of itself; None: nothing."""
        ...

    async def announcements(self) -> Sequence[ClusterAnnouncement]:
        """Return what each cluster's watcher said last of itself."""
        ...

    def read_after(
        self, selection: "DeltaSelection", after: int, *, with_objects: bool = True
    ) -> "AsyncGenerator[Sequence[LoggedDelta]]":
        """Yield the deltas after a sequence that the log still has, in order, then end; 0 begins with the oldest.

        Of each object the last few deltas are kept. Without objects the deltas come without contents, and faster.

        Raises:
            StoreUnavailable: interrupted; ask again.
        """
        ...

    def tail(
        self, selection: "DeltaSelection", after: int, *, with_objects: bool = True
    ) -> "AsyncGenerator[Sequence[LoggedDelta]]":
        """Yield the deltas after a sequence, then everything new, for ever; a log that was lost from its beginning."""
        ...


class LastGoodLog(Protocol):
    """Records of last good versions, in the log, where its followers read them."""

    async def histories(self, refs: Sequence[ObjectRef]) -> Mapping[ObjectRef, Sequence[Delta]]:
        """Return the deltas of objects that are still in the log, oldest first, the last one included."""
        ...

    async def write(self, record: LastGood) -> None:
        """Write down what stands in for a version that has errors, in place of what was written down before.

        Raises:
            TooLarge: the log does not take a record of this size.
            StoreUnavailable: not confirmed; it may or may not be written.
        """
        ...


class LogReplay(NamedTuple):
    """The log starts again after this; the replay is complete when `position.last_sequence` is reached."""

    position: LogPosition
    went_back: bool = False
    """Whether this is an older copy of the log that was read before, as a store is that was restored from a backup."""


class LogBatch(list[LogMessage]):
    """Messages of the log, in order of sequence."""

    def __init__(self, messages: Iterable[LogMessage], last: LogPlace) -> None:
        """Take messages, of which the last one is there."""
        super().__init__(messages)
        self.last = last


class DeltaSelection(NamedTuple):
    """Which deltas are meant; what is empty selects all."""

    cluster: str = ""
    kinds: tuple[tuple[str, str], ...] = ()
    """Groups and plurals."""
    namespace: str = ""
    name: str = ""


class LoggedDelta(NamedTuple):
    """A delta and when it was logged."""

    delta: Delta
    logged_at: datetime


class SnapshotStore(Protocol):
    """Where tables are kept: chunks, manifests and one pointer for each table."""

    async def read_pointer(self, table: str) -> Pointer | None:
        """Return the pointer as the store's leader has it; None if the table was never committed."""
        ...

    async def missing(self, digests: Collection[str]) -> set[str]:
        """Return which chunks the store lacks. What no manifest names may be collected a moment later."""
        ...

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Store chunks; storing one twice does no harm."""
        ...

    async def get_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        """Return chunks as they are stored, by few requests: `open_chunk` decompresses and verifies them.

        Raises:
            NotFound: the store lacks one of them.
            StoreUnavailable: not now.
        """
        ...

    async def commit(
        self, manifest: Manifest, expected: Pointer | None, change: RevisionChange | None = None
    ) -> Pointer:
        """Store the manifest, then move the pointer from `expected` to it in one compare-and-set.

        The chunks that it names are stored before, or with it: those of `change`, which readers then get with the
        notice of the revision.

        Raises:
            Conflict: the pointer is not `expected` any more, or a chunk was collected meanwhile.
            HistoryBroken: the store may have lost commits that it confirmed; a greater epoch is accepted.
        """
        ...

    async def get_manifest(self, table: str, version: Version) -> Manifest:
        """Return the manifest of a revision.

        Raises:
            NotFound: never there, or collected.
        """
        ...

    async def get_manifest_head(self, table: str, version: Version) -> Manifest:
        """Return what `get_manifest` does; of a large table without the names of its chunks, which may be lost.

        Raises:
            NotFound: never there, or collected.
        """
        ...

    async def manifest_of(self, pointer: Pointer) -> Manifest:
        """Return the manifest that a pointer names; nothing is read where notices brought all that is new in it.

        Raises:
            NotFound: never there, or collected.
        """
        ...

    async def versions(self, table: str) -> Sequence[Version]:
        """Return the versions whose manifests are kept, oldest first."""
        ...

    async def collect_garbage(self, table: str, expired: Collection[Version]) -> int:
        """Drop these revisions' manifests, and chunks that no table's manifest names (`Manifest.digests`).

        The manifest that the pointer names stays whatever is asked. Returns how many manifests and chunks were dropped.
        """
        ...

    def follow(self, table: str) -> AsyncIterator[Pointer]:
        """Yield the pointer now and at every change, for ever. A pointer may come more than once."""
        ...


class StatusBoard(Protocol):
    """What each table's translator wants written to objects; its last update of each object counts."""

    async def post(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        """Replace what a table wants for some objects.

        Returns:
            For each, its encoding, or why the board did not take it: that holds no other back.

        Raises:
            StoreUnavailable: not confirmed; each of them may or may not be on the board.
        """
        ...

    async def forget(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        """Do what `post` does for objects that are gone: what is wanted for them is kept for `FORGET_AFTER_S` only."""
        ...

    def follow(self, cluster: str, table: str = "") -> AsyncIterator[StatusUpdate]:
        """Yield what is wanted for every object of a cluster, then every change, for ever.

        Args:
            cluster: whose objects are meant.
            table: which one wants it; empty for all.
        """
        ...

    def follow_encoded(self, cluster: str, table: str) -> AsyncIterator[Sequence[EncodedStatus]]:
        """Yield what `follow` does for one table, several at a time and without reading them."""
        ...

    async def read(self, cluster: str, table: str = "", *, with_problems: bool = False) -> Sequence[StatusUpdate]:
        """Return what is wanted for every object of a cluster now, sorted by object and table.

        Args:
            cluster: whose objects are meant.
            table: which one wants it; empty for all.
            with_problems: leave out objects without any problem, which are not even decoded.

        Raises:
            StoreUnavailable: no answer.
        """
        ...


class HeartbeatBoard(Protocol):
    """Who serves which table, as the gateways themselves say; an entry expires when its worker falls silent."""

    async def beat(self, heartbeat: Heartbeat) -> None:
        """Announce a worker."""
        ...

    async def remove(self, heartbeat: Heartbeat) -> None:
        """Take a worker's announcement back, as on shutdown."""
        ...

    async def live(self) -> Sequence[Heartbeat]:
        """Return the announcements that have not expired."""
        ...


class TrafficBoard(Protocol):
    """What gateway workers say of their traffic, to those who listen at that moment: nothing of it is kept."""

    async def tell(self, summary: TrafficSummary) -> None:
        """Say what one worker's traffic was.

        Raises:
            StoreUnavailable: not now. It need not be said later.
            NotPermitted: we may not say it here.
        """
        ...

    async def tap(self, table: str, tap: Tap) -> None:
        """Ask the workers of a table to tell finished requests in their summaries, for `TAP_S`.

        Raises:
            StoreUnavailable: not now.
            NotPermitted: we may not ask here.
        """
        ...

    def taps(self, table: str) -> AsyncGenerator[Tap]:
        """Yield what is asked of the workers of a table, for ever; the same may come more than once."""
        ...

    def listen(self, table: str) -> AsyncGenerator[TrafficSummary]:
        """Yield what is said of a table's traffic from now on, for ever. What is said during an outage is missing.

        Raises:
            NotPermitted: we may not listen; not every store tells.
        """
        ...


class LeaseBoard(Protocol):
    """Which one of several processes does the work: a lease for each work, moved by compare-and-set.

    The store judges nothing: a lease stays as it was written until somebody writes it again, however old it is, and no
    clock of the store matters. A lease that is lost with the store does no harm; one that comes back from a backup
    neither, as no process renews it.
    """

    async def read(self, name: str) -> StoredLease | None:
        """Return a lease as the store's leader has it; None: there is none, or it was lost.

        Args:
            name: of the work, such as `translator.default`.

        Raises:
            StoreUnavailable: not now.
        """
        ...

    async def write(self, name: str, lease: Lease, expected: str | None) -> StoredLease:
        """Replace a lease if it is still the one that was read, or make the first; return it as it is stored.

        Args:
            name: of the work.
            lease: what to write.
            expected: version that was read; None: there was no lease.

        Raises:
            Conflict: it is another one by now, there is one already, or it is gone.
            NotPermitted: we may not have leases here.
            StoreUnavailable: not confirmed; it may or may not be written.
        """
        ...
