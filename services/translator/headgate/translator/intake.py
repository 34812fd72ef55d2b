"""The log as it comes in: when the replay is complete, which clusters are, and what has changed since a revision.

Pure bookkeeping. A cluster is complete when it was announced and every announced kind has a marker; it stays so while
this incarnation of the log lasts, because from then on the log follows the cluster.
"""

from collections.abc import Iterable, Mapping

from headgate.common.deltas import ClusterAnnouncement, Delta, KindName, LastGood, LogMessage, SyncMarker
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import MAX_CAUSES, Cause
from headgate.common.stores import LogPosition
from headgate.translator.translation import Translation


class Causes:
    """The changes that led to the next revision: the last one of each object, the first `MAX_CAUSES` by name."""

    def __init__(self, published: Mapping[str, int] | None = None) -> None:
        """Begin anew.

        Args:
            published: cluster to the sequence up to which its deltas led to earlier revisions, as after a restart.
        """
        self._published = published or {}
        self._places: dict[ObjectRef, int] = {}
        self.named: list[Cause] = []
        self.count = 0
        self.traceparent: str | None = None
        """Trace of the first change that had one."""

    def add(self, delta: Delta, kind: str) -> None:
        """Note a change."""
        self.traceparent = self.traceparent or delta.traceparent
        if delta.sequence <= self._published.get(delta.ref.cluster, 0):
            return
        place = self._places.get(delta.ref)
        if place is None:
            place = self._places[delta.ref] = self.count
            self.count += 1
        if place < MAX_CAUSES:
            self.named[place : place + 1] = [_cause(delta, kind)]


def _cause(delta: Delta, kind: str) -> Cause:
    author = delta.author
    return Cause(
        cluster=delta.ref.cluster,
        kind=kind,
        namespace=delta.ref.namespace,
        name=delta.ref.name,
        operation=delta.operation,
        sequence=delta.sequence,
        by=author.name if author else "",
        at=(author.at if author else None) or delta.observed_at,
    )


class Intake:
    """One replay of the log and what follows it, taken into one translation."""

    def __init__(self, position: LogPosition, translation: Translation) -> None:
        self._target = position
        self._translation = translation
        self._announced: dict[str, frozenset[KindName]] = {}
        self._synced: dict[str, set[KindName]] = {}
        self._sequences: dict[str, int] = {}
        self._sequence = 0

    @property
    def incarnation(self) -> str:
        """Which log this is."""
        return self._target.incarnation

    @property
    def sequence(self) -> int:
        """Sequence of the last message taken in."""
        return self._sequence

    @property
    def is_replayed(self) -> bool:
        """Whether everything that was in the log at its beginning is here."""
        return self._sequence >= self._target.last_sequence

    @property
    def inputs(self) -> Mapping[str, int]:
        """Sequence of the last delta of each active cluster."""
        return {cluster: self._sequences.get(cluster, 0) for cluster in sorted(self._translation.active_clusters)}

    def receive(self, messages: Iterable[LogMessage], causes: Causes) -> bool:
        """Take messages in; return whether the table may have changed by it."""
        before = self._translation.active_clusters
        has_changed = [self._receive(message, causes) for message in messages]
        self._activate_complete()
        return any(has_changed) or before != self._translation.active_clusters

    def _receive(self, message: LogMessage, causes: Causes) -> bool:
        self._sequence = max(self._sequence, message.sequence)
        match message:
            case Delta():
                return self._apply(message, causes)
            case LastGood():
                return self._translation.remember(message) and message.ref.cluster in self._translation.active_clusters
            case ClusterAnnouncement():
                self._announced[message.cluster] = frozenset(message.kinds)
            case SyncMarker():
                self._synced.setdefault(message.cluster, set()).add(message.kind)
        return False

    def _apply(self, delta: Delta, causes: Causes) -> bool:
        self._sequences[delta.ref.cluster] = delta.sequence
        kind = self._translation.world.kind_of(delta.ref)
        if kind is None or not self._translation.apply(delta):
            return False
        causes.add(delta, kind.kind)
        return delta.ref.cluster in self._translation.active_clusters

    def _activate_complete(self) -> None:
        """Only after the replay: a message replayed later may belong to before the marker."""
        if not self.is_replayed:
            return
        for cluster, kinds in self._announced.items():
            if kinds <= self._synced.get(cluster, set()):
                self._translation.activate(cluster)

    def incomplete(self) -> Mapping[str, list[str]]:
        """Return the clusters that are announced but not complete, with the kinds that are missing."""
        return {
            cluster: sorted(str(kind.resource) for kind in kinds - self._synced.get(cluster, set()))
            for cluster, kinds in sorted(self._announced.items())
            if cluster not in self._translation.active_clusters
        }
