"""The log as it comes in: when the replay is complete, which clusters are, and what has changed since a revision.

Pure bookkeeping. A cluster is complete when it was announced and every announced kind has a marker; it stays so while
this incarnation of the log lasts, because from then on the log follows the cluster. Clusters that the table does not
select are passed over, and one that was removed is forgotten until its watchers announce it again.
"""

from collections.abc import Mapping
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple

from headgate.common.acme import ACME_CLUSTER
from headgate.common.clusters import describe, is_cluster_ref, read_settings
from headgate.common.deltas import (
    Author,
    ClusterAnnouncement,
    Delta,
    KindName,
    LastGood,
    LogMessage,
    LogPlace,
    Operation,
    SyncMarker,
)
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import MAX_CAUSES, Cause
from headgate.common.stores import LogBatch, LogPosition
from headgate.translator.translation import Translation


class Causes:
    """The changes that led to the next revision: the last one of each object, the first `MAX_CAUSES` by name."""

    def __init__(self, published: Mapping[str, int] | None = None, began_at: datetime | None = None) -> None:
        """Begin again.

        Args:
            published: cluster to the sequence up to which its deltas led to earlier revisions, as after a restart.
            began_at: with a log that no revision was made from: no change counts as older, as most are served already.
        """
        self._published = published or {}
        self._began_at = began_at
        self._changes: dict[ObjectRef, _Change] = {}
        self.traceparent: str | None = None
        """Trace of the first change that had one."""

    def add(self, delta: Delta, kind: str) -> None:
        """Note a change."""
        self.traceparent = self.traceparent or delta.traceparent
        if delta.sequence > self._published.get(delta.ref.cluster, 0):
            self._changes[delta.ref] = _Change(
                kind, delta.operation, delta.sequence, delta.author, delta.observed_at, _note(delta)
            )

    @property
    def since(self) -> datetime | None:
        """When the oldest of these changes was seen by a watcher; None: there is none."""
        oldest = min((one.observed_at for one in self._changes.values()), default=None)
        return max(oldest, self._began_at) if oldest and self._began_at else oldest

    def forget(self, published: Mapping[str, int]) -> None:
        """Forget what led to a revision by now; `published` is as at the beginning."""
        self._published = published
        changes = self._changes.items()
        self._changes = {ref: one for ref, one in changes if one.sequence > published.get(ref.cluster, 0)}
        if not self._changes:
            self.traceparent = None

    @property
    def count(self) -> int:
        """How many objects have changed."""
        return len(self._changes)

    @property
    def named(self) -> list[Cause]:
        """The first `MAX_CAUSES` of them, each with its last change."""
        return [_cause(ref, change) for ref, change in islice(self._changes.items(), MAX_CAUSES)]


class _Change(NamedTuple):
    """What is kept of a delta: much less than a `Cause` is."""

    kind: str
    operation: Operation
    sequence: int
    author: Author | None
    observed_at: datetime
    note: str


def _note(delta: Delta) -> str:
    """Say what somebody decided; an object that is listed elsewhere speaks for itself."""
    if not is_cluster_ref(delta.ref):
        return ""
    settings = read_settings(delta.object or {})
    gateways = (*settings.gateways, *chain.from_iterable(settings.table_gateways.values()))
    return describe(settings.model_copy(update={"gateways": gateways}))


def _cause(ref: ObjectRef, change: _Change) -> Cause:
    author = change.author
    return Cause(
        cluster=ref.cluster,
        kind=change.kind,
        namespace=ref.namespace,
        name=ref.name,
        operation=change.operation,
        sequence=change.sequence,
        by=author.name if author else "",
        at=(author.at if author else None) or change.observed_at,
        note=change.note,
    )


class Intake:
    """One replay of the log and what follows it, taken into one translation."""

    def __init__(self, position: LogPosition, translation: Translation, table: str) -> None:
        self._target = position
        self._translation = translation
        self._table = table
        self._announced: dict[str, ClusterAnnouncement] = {}
        self._removed: dict[str, datetime] = {}
        """Clusters that were not announced since they were removed, and when that was."""
        self._synced: dict[str, dict[KindName, int]] = {}
        """Cluster to its marked kinds, each with the sequence of its last marker."""
        self._sequences: dict[str, int] = {}
        self._sequence = 0
        self.last_read: LogPlace | None = None
        """The last message taken in."""
        self.decided: dict[str, Delta] = {}
        """What people decided last of each cluster, by cluster."""

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
    def removed(self) -> frozenset[str]:
        """Clusters that are gone for good, and are not waited for."""
        return frozenset(self._removed)

    @property
    def inputs(self) -> Mapping[str, int]:
        """Sequence of the last delta of each active cluster."""
        return {cluster: self._sequences.get(cluster, 0) for cluster in sorted(self._translation.active_clusters)}

    def receive(self, messages: LogBatch, causes: Causes) -> bool:
        """Take messages in; return whether the table may have changed by it."""
        before = self._translation.active_clusters
        self.last_read = messages.last
        # Also past messages that cannot be read: the last one of the log would be waited for.
        self._sequence = max(self._sequence, messages.last.sequence)
        has_changed = [self._receive(message, causes) for message in messages]
        self._activate_complete()
        return any(has_changed) or before != self._translation.active_clusters

    def _receive(self, message: LogMessage, causes: Causes) -> bool:
        if isinstance(message, Delta):
            return self._takes_part(message.ref.cluster) and self._apply(message, causes)
        if not self._takes_part(message.ref.cluster if isinstance(message, LastGood) else message.cluster):
            return False
        match message:
            case LastGood() if message.table == self._table:
                return self._translation.remember(message) and self._translation.is_active(message.ref.cluster)
            case ClusterAnnouncement():
                self._admit(message)
            case SyncMarker():
                self._synced.setdefault(message.cluster, {})[message.kind] = message.sequence
        return False

    def _takes_part(self, cluster: str) -> bool:
        if cluster == ACME_CLUSTER or self._translation.selection.has_cluster(cluster):
            return True
        self._translation.left_out.add(cluster)
        return False

    def _apply(self, delta: Delta, causes: Causes) -> bool:
        ref = delta.ref
        self._sequences[ref.cluster] = delta.sequence
        kind = self._translation.world.kind_of(ref)
        is_decision = is_cluster_ref(ref)
        if is_decision:
            self._decide(delta)
        # Manifests carry every decision, so one that changes no route is published all the same, and not only by the
        # next leader.
        if kind is None or not (self._translation.apply(delta) or is_decision):
            return False
        causes.add(delta, kind.kind)
        return ref.cluster == ACME_CLUSTER or self._translation.is_active(ref.cluster)

    def _admit(self, announcement: ClusterAnnouncement) -> None:
        """By time, not by place: a decision is written again into a log that lost it, after what came since."""
        cluster = announcement.cluster
        if cluster not in self._removed or announcement.announced_at > self._removed[cluster]:
            self._removed.pop(cluster, None)
            self._announced[cluster] = announcement

    def _decide(self, delta: Delta) -> None:
        cluster = delta.ref.cluster
        self.decided[cluster] = delta
        removal, announced = read_settings(delta.object or {}).removed, self._announced.get(cluster)
        if removal is None or (announced and announced.announced_at > removal.at):
            self._removed.pop(cluster, None)
            return
        self._removed[cluster] = removal.at
        self._announced.pop(cluster, None)
        self._synced.pop(cluster, None)
        self._translation.dismiss(cluster)

    def _activate_complete(self) -> None:
        """Only after the replay: a message replayed later may belong to before the marker."""
        if not self.is_replayed:
            return
        active = self._translation.active_clusters
        for cluster, announcement in self._announced.items():
            if cluster not in active and {*announcement.kinds} <= self._synced.get(cluster, {}).keys():
                self._translation.activate(cluster)

    def not_marked_after(self, sequence: int) -> set[str]:
        """Return the clusters of which a kind was not marked after a sequence."""
        return {
            cluster
            for cluster, announcement in self._announced.items()
            if any(self._synced.get(cluster, {}).get(kind, 0) <= sequence for kind in announcement.kinds)
        }

    def incomplete(self) -> Mapping[str, list[str]]:
        """Return the clusters that are announced but not complete, with the kinds that are missing."""
        return {
            cluster: sorted(str(kind.resource) for kind in {*announcement.kinds} - self._synced.get(cluster, {}).keys())
            for cluster, announcement in sorted(self._announced.items())
            if cluster not in self._translation.active_clusters
        }
