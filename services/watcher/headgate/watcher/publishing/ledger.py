"""What should be in the log and what is: the publisher's memory; pure.

One entry for each object, however often it changes while the log is away. What has to be published is never queued
but found by comparison, so the same rule serves a change, a relist, a restart of the watcher and a lost log.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from headgate.common.deltas import Author, EncodedDelta, Operation
from headgate.common.resources import CLUSTER, JsonObject, ObjectRef, ResourceKind
from headgate.common.stores import LoggedObject
from headgate.watcher.objects.preparing import encode

KindName = tuple[str, str]
"""Group and plural."""
_DECISIONS: KindName = (CLUSTER.group, CLUSTER.resource)


class PreparedObject(msgspec.Struct, frozen=True, gc=False):
    """The present state of an object, ready to be sent."""

    uid: str
    version: str
    digest: bytes
    """Of the content without its version: tells a change that matters from one of status only."""
    body: bytes
    """The prepared object in JSON, a tenth of what it takes as dictionaries."""
    observed_at: datetime
    traceparent: str | None = None
    author: Author | None = None
    is_secret: bool = False

    @property
    def logged_digest(self) -> str:
        """The digest as the log has it; empty for what is secret, so that no guess at it can be tried."""
        return "" if self.is_secret else self.digest.hex()


@dataclass(frozen=True, slots=True)
class Gone:
    """An object that the source saw deleted."""

    version: str
    observed_at: datetime
    traceparent: str | None = None


def content_digest(manifest: JsonObject) -> bytes:
    """Digest a stripped object without what changes at every write."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "resourceVersion"}
    return hashlib.blake2b(encode({**manifest, "metadata": metadata}), digest_size=16).digest()


class Ledger:
    """The wanted state of a cluster beside the state of its log."""

    def __init__(self, kinds: Sequence[ResourceKind], *, others_write: bool = False) -> None:
        """Begin with nothing; with `others_write` the log may have states that this watcher has not seen yet."""
        self._others_write = others_write
        self._kinds: set[KindName] = {(kind.group, kind.resource) for kind in kinds}
        self._present: set[KindName] = set()
        """Kinds of which something was wanted or in the log: of dozens that are read, few have objects."""
        self._listed: set[KindName] = set()
        self._wanted: dict[ObjectRef, PreparedObject] = {}
        self._gone: dict[ObjectRef, Gone] = {}
        self._known: dict[ObjectRef, LoggedObject] = {}
        self._foreign: set[ObjectRef] = set()
        """Objects whose last delta another watcher published, after our last list of their kind."""
        self._yielded: dict[ObjectRef, int] = {}
        self._pending: dict[ObjectRef, datetime] = {}
        """What has to be looked at, each with when it came up first."""
        self._taken: dict[ObjectRef, datetime] = {}
        """What was handed out and is not settled."""

    @property
    def pending(self) -> int:
        """How many objects have to be looked at before the log is as wanted."""
        return len(self._pending.keys() | self._taken.keys())  # at once, as other threads ask too

    @property
    def remembered_deletions(self) -> int:
        """How many deletions are remembered."""
        return len(self._gone)

    @property
    def pending_since(self) -> datetime | None:
        """When the oldest change was seen that is not known to be in the log; None: all are."""
        return min((*self._pending.values(), *self._taken.values()), default=None)

    def logged(self, ref: ObjectRef) -> LoggedObject | None:
        """Return what the log says of an object, as far as it was read."""
        return self._known.get(ref)

    def wanted(self, ref: ObjectRef) -> PreparedObject | None:
        """Return the wanted state of an object; None if there should be none."""
        return self._wanted.get(ref)

    def want(self, ref: ObjectRef, wanted: PreparedObject) -> None:
        """Note an object's present state; the same content again is no news."""
        before = self._wanted.get(ref)
        if before and (before.uid, before.digest) == (wanted.uid, wanted.digest):
            return
        self._wanted[ref] = wanted
        self._present.add(ref[1:3])
        self._gone.pop(ref, None)
        self._touch(ref)

    def drop(self, ref: ObjectRef, uid: str | None, gone: Gone) -> None:
        """Note that an object is gone; the deletion of a namesake that was replaced since is no news."""
        before = self._wanted.get(ref)
        if before and uid and before.uid != uid:
            return
        self._wanted.pop(ref, None)
        self._gone.pop(ref, None)
        self._gone[ref] = gone  # in order of time
        self._touch(ref)

    def complete(self, kind: ResourceKind, refs: Collection[ObjectRef]) -> None:
        """Note that these are all objects of a kind; others that are wanted or in the log are gone."""
        name = (kind.group, kind.resource)
        self._listed.add(name)
        self.trust(name)
        if name not in self._present:
            return
        for ref in [ref for ref in self._wanted if ref[1:3] == name and ref not in refs]:
            del self._wanted[ref]
            self._touch(ref)
        for ref in [ref for ref, known in self._known.items() if ref[1:3] == name and not known.is_deleted]:
            if ref not in refs:
                self._touch(ref)

    def _touch(self, ref: ObjectRef) -> None:
        self._yielded.pop(ref, None)
        self._await(ref)

    def _await(self, ref: ObjectRef) -> None:
        seen = self._wanted.get(ref) or self._gone.get(ref)
        self._pending.setdefault(ref, seen.observed_at if seen else datetime.now().astimezone())

    def load(self, state: Mapping[ObjectRef, LoggedObject]) -> bool:
        """Take the log's state as it was read; return whether the log has lost what it held before.

        What people decided of the cluster is in the log too, and not in the source: it is not ours to take back. Old
        deletions are removed from the log: that is no loss.
        """
        lost = any(
            state[ref].sequence < known.sequence if ref in state else not known.is_deleted
            for ref, known in self._known.items()
        )
        self._read(state)
        for ref in self._wanted.keys() | self._known.keys():
            if self._is_doubtful(ref) or self.delta(ref) is not None:
                self._await(ref)
        return lost

    def _read(self, state: Mapping[ObjectRef, LoggedObject]) -> None:
        before = self._known
        self._known = {ref: known for ref, known in state.items() if ref[1:3] != _DECISIONS}
        self._present.update(ref[1:3] for ref in self._known)
        if self._others_write:
            self._foreign = {
                ref
                for ref, known in self._known.items()
                if ref in self._foreign or ref not in before or before[ref].sequence != known.sequence
            }

    def begin_turn(self) -> None:
        """Give way to nothing that was found in an earlier turn: the next `load` and `doubt` find out."""
        self._yielded.clear()

    def follow(self, state: Mapping[ObjectRef, LoggedObject], forget_before: datetime) -> None:
        """Take the log's state where somebody else writes it: what it has of what was seen here waits no longer.

        Deletions are remembered until then, and others for a while: a watcher that is behind may undo them.
        """
        self._read(state)
        self._pending = {ref: since for ref, since in self._pending.items() if self.delta(ref) is not None}
        for ref in [ref for ref, gone in self._gone.items() if gone.observed_at < forget_before]:
            if ref not in self._pending:
                del self._gone[ref]

    def doubt(self) -> set[KindName]:
        """Hold back where the log may know better than we do; return the kinds that have to be listed to find out.

        Where another watcher writes too, a watch that is behind would have us overwrite a newer state with an older
        one, bring back what is deleted, or delete what is new. `delta` holds the same back when an event comes that is
        older than the log. Only numbers can be compared, as API servers give them (KEP-5504).
        """
        found: set[KindName] = set()
        for ref in self._pending:
            if self._is_doubtful(ref):
                self._yielded[ref] = self.expected(ref)
                found.add(ref[1:3])
        return found

    def _is_doubtful(self, ref: ObjectRef) -> bool:
        if ref not in self._foreign:
            return False
        wanted, known = self._wanted.get(ref), self._known.get(ref)
        if known is None or (wanted and _says(known, wanted)):
            return False
        if wanted is None:
            gone = self._gone.get(ref)
            is_behind = _is_newer(known.resource_version, gone.version) if gone else self._is_judged(ref)
            return not known.is_deleted and is_behind
        # What was found to be gone by a list has the version that it had last.
        is_same = known.is_deleted and known.resource_version == wanted.version
        return is_same or _is_newer(known.resource_version, wanted.version)

    def trust(self, kind: KindName) -> None:
        """Hold nothing of a kind back any more: what the source says of it is true now."""
        self._foreign = {ref for ref in self._foreign if ref[1:3] != kind}
        for ref in [ref for ref in self._yielded if ref[1:3] == kind]:
            self._touch(ref)

    def take(self) -> list[ObjectRef]:
        """Hand out what has to be looked at, in the order in which it came up."""
        self._taken, self._pending = self._pending, {}
        return list(self._taken)

    def put_back(self, refs: Iterable[ObjectRef]) -> None:
        """Take back what could not be sent."""
        again = {ref: self._taken[ref] for ref in refs if ref in self._taken}
        self._pending = again | {ref: again.get(ref, since) for ref, since in self._pending.items()}
        self._taken = {}

    def expected(self, ref: ObjectRef) -> int:
        """Return the sequence that the object's last delta has; 0 for none."""
        known = self._known.get(ref)
        return known.sequence if known else 0

    def delta(self, ref: ObjectRef, traceparent: str | None = None) -> EncodedDelta | None:
        """Return what has to be published of an object; None if the log has it.

        Args:
            ref: the object.
            traceparent: trace context in which it is published; that of the change by default.
        """
        wanted, known = self._wanted.get(ref), self._known.get(ref)
        if known and self._yielded.get(ref) == known.sequence:
            return None
        if self._is_doubtful(ref):
            return None
        if wanted is None:
            return self._tombstone(ref, known, traceparent)
        if known and _says(known, wanted):
            return None
        return EncodedDelta(
            ref,
            Operation.APPLY,
            wanted.uid,
            wanted.version,
            wanted.observed_at,
            wanted.body,
            wanted.logged_digest,
            wanted.author,
            traceparent or wanted.traceparent,
        )

    def _tombstone(self, ref: ObjectRef, known: LoggedObject | None, traceparent: str | None) -> EncodedDelta | None:
        gone = self._gone.get(ref)
        if known is None or known.is_deleted or not (gone or self._is_judged(ref)):
            return None
        if gone and _is_newer(known.resource_version, gone.version):
            gone = None  # an earlier deletion; that it is gone again was found by a list
        return EncodedDelta(
            ref=ref,
            operation=Operation.DELETE,
            uid=known.uid,
            resource_version=gone.version if gone else known.resource_version,
            observed_at=gone.observed_at if gone else datetime.now().astimezone(),
            traceparent=traceparent or (gone.traceparent if gone else None),
        )

    def _is_judged(self, ref: ObjectRef) -> bool:
        """Whether absence means deletion: the kind was listed, or is not read any more."""
        return ref[1:3] in self._listed or ref[1:3] not in self._kinds

    def confirm(self, delta: EncodedDelta, sequence: int) -> None:
        """Note that a delta is in the log."""
        is_deleted = delta.operation is Operation.DELETE
        self._known[delta.ref] = LoggedObject(delta.uid, delta.resource_version, is_deleted, sequence, delta.digest)
        self._foreign.discard(delta.ref)
        if is_deleted:
            self._gone.pop(delta.ref, None)

    def settle(self, ref: ObjectRef) -> None:
        """Forget what is only needed until an object's present state is in the log."""
        self._gone.pop(ref, None)
        self._taken.pop(ref, None)

    def yield_to_newer(self, delta: EncodedDelta) -> bool:
        """Give way if the log, which somebody else wrote meanwhile, has a later state of the object than ours.

        Only numbers can be compared, as API servers give them (KEP-5504); what the source reports next counts again.
        """
        known = self._known.get(delta.ref)
        if known is None:
            return False
        if not _is_newer(known.resource_version, delta.resource_version):
            return False
        self._yielded[delta.ref] = known.sequence
        return True


def _says(known: LoggedObject, wanted: PreparedObject) -> bool:
    """Whether the log has what is wanted: this version, or one that differs in nothing but its number."""
    if known.is_deleted or known.uid != wanted.uid:
        return False
    return known.resource_version == wanted.version or (known.digest != "" and known.digest == wanted.logged_digest)


def _is_newer(theirs: str, ours: str) -> bool:
    their_number, our_number = _number(theirs), _number(ours)
    return their_number is not None and our_number is not None and their_number > our_number


def _number(version: str) -> int | None:
    digits = version.partition("-")[0]
    return int(digits) if digits.isdecimal() else None
