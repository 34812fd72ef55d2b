"""How all objects stand, as the log tells of them: their versions in order, and records of last good ones.

A translator that follows the log without a gap knows the last good version of every object. One that begins in the
middle hears of each object's last version only: of one with errors it is not known then whether an earlier one was good
(`unsure`) until its history was read (`recall`), or until a record in the log says so (`remember`). Records are what
translators write down of objects with errors (`unwritten`), as the log keeps a few versions of each object and no more.

A record speaks of one version with errors, so that it cannot mislead a translator about another: it settles what stands
in for that one, and is a candidate for later ones, of which the newest good version wins.
"""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from headgate.common.deltas import Delta, GoodVersion, LastGood, Operation
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.translator.world.last_good import JudgedVersion, ObjectVersions, succeed, support

Judge = Callable[[Delta | GoodVersion], JudgedVersion]


class Record(NamedTuple):
    """What the log has written down of an object."""

    refused: int
    """Sequence of the version with errors; 0: it has none."""
    good: int
    """Sequence of the version that stands in for it; 0: none does."""


NO_RECORD = Record(0, 0)


class VersionTracker:
    """How each object stands."""

    def __init__(self) -> None:
        self._versions: dict[ObjectRef, ObjectVersions] = {}
        self._records: dict[ObjectRef, Record] = {}
        self._written: dict[ObjectRef, JudgedVersion] = {}
        """Good versions of records that may still matter."""
        self._unsure: dict[ObjectRef, None] = {}
        self._unwritten: dict[ObjectRef, None] = {}

    def get(self, ref: ObjectRef) -> ObjectVersions | None:
        """Return how an object stands; None where there is none."""
        return self._versions.get(ref)

    def refs(self, cluster: str) -> list[ObjectRef]:
        """Return the objects of one cluster."""
        return [ref for ref in self._versions if ref.cluster == cluster]

    @property
    def unsure(self) -> Collection[ObjectRef]:
        """Objects with errors of which it is not known whether an earlier version was good."""
        return self._unsure.keys()

    @property
    def unwritten(self) -> Collection[ObjectRef]:
        """Objects of which something else is true than the log has written down."""
        return self._unwritten.keys()

    def has_record(self, ref: ObjectRef) -> bool:
        """Whether the log has something written down of an object."""
        return ref in self._records

    def record(self, ref: ObjectRef) -> Record | None:
        """Return what ought to be written down of an object; None while that is not known."""
        if ref in self._unsure:
            return None
        versions = self._versions.get(ref)
        if versions is None or not versions.errors:
            return NO_RECORD
        return Record(versions.present.version.sequence, versions.good.version.sequence if versions.good else 0)

    def follow(self, ref: ObjectRef, new: JudgedVersion | None) -> ObjectVersions | None:
        """Take the next version of an object, None for its deletion; return how it stands now."""
        before = self._versions.get(ref)
        if new is None:
            return self._set(ref, None)
        if before is None and new.errors:
            self._unsure[ref] = None  # earlier versions may have been good; a record of it comes after it
        return self._set(ref, succeed(before, new))

    def convict(self, ref: ObjectRef, errors: tuple[Problem, ...]) -> None:
        """Add to what is wrong with an object's first version; nothing changes without errors."""
        present = self._versions[ref].present
        if errors:
            self._unsure[ref] = None
            self._set(ref, ObjectVersions(present._replace(errors=tuple(dict.fromkeys((*present.errors, *errors))))))

    def _set(self, ref: ObjectRef, after: ObjectVersions | None) -> ObjectVersions | None:
        if after is None:
            self._versions.pop(ref, None)
        else:
            self._versions[ref] = after
        if after is None or not after.errors:
            self._unsure.pop(ref, None)
            self._written.pop(ref, None)
            if ref not in self._records:  # and nothing ought to be
                self._unwritten.pop(ref, None)
                return after
        self._compare_with_record(ref)
        return after

    def recall(self, ref: ObjectRef, history: Iterable[Delta], judge: Judge) -> ObjectVersions | None:
        """Take what the log still has of an object, oldest first; return how it stands now."""
        self._unsure.pop(ref, None)
        versions = self._versions.get(ref)
        if versions is None or not versions.errors:
            return versions
        last: ObjectVersions | None = None
        for delta in history:
            if delta.sequence >= versions.present.version.sequence:
                break
            if delta.operation is Operation.DELETE or delta.uid != versions.present.version.uid:
                last = None
                self._forget_written(ref, delta.sequence)
            else:
                last = succeed(last, judge(delta))
        if last is not None and last.last_good is not None:
            versions = support(versions, last.last_good)
        return self._set(ref, self._supported(ref, versions))

    def remember(self, ref: ObjectRef, said: LastGood, judge: Judge) -> ObjectVersions | None:
        """Take a record; return how its object stands now."""
        good, versions = said.good, self._versions.get(ref)
        self._records[ref] = Record(said.refused, good.sequence if good else 0)
        self._written.pop(ref, None)
        if not said.refused:
            del self._records[ref]
        elif good is not None and (versions is None or versions.errors):
            self._written[ref] = judge(good)
        if versions is None or not versions.errors:
            self._compare_with_record(ref)
            return versions
        if said.refused == versions.present.version.sequence:
            self._unsure.pop(ref, None)
        return self._set(ref, versions if ref in self._unsure else self._supported(ref, versions))

    def _supported(self, ref: ObjectRef, versions: ObjectVersions) -> ObjectVersions:
        written = self._written.get(ref)
        return support(versions, written) if written else versions

    def _forget_written(self, ref: ObjectRef, sequence: int) -> None:
        """Of an object that was deleted, or another one, at a sequence nothing from before counts."""
        written = self._written.get(ref)
        if written is not None and written.version.sequence < sequence:
            del self._written[ref]

    def _compare_with_record(self, ref: ObjectRef) -> None:
        if self._records.get(ref, NO_RECORD) == self.record(ref):
            self._unwritten.pop(ref, None)
        else:
            self._unwritten[ref] = None
