"""The world: every object of every cluster, stripped on entry to what translation reads.

Each kind says how its objects are read (`StoredKind.read`, run once per delta), what is wrong with one by itself
(`StoredKind.check`) and by which values they are found together (`StoredKind.indexes`: EndpointSlices by Service). An
object whose stripped form is as before has not changed, whatever its resourceVersion says: a status that we wrote
ourselves never comes back as work.

A version with errors of its own does not take the place of the last good one (`tracker`). What an object's first
version says is served either way; it is *presumed* good where it will be translated, as that shows its errors too, and
judging every object by itself first would take as long again.

Rejected: keeping the decoded manifests. A dict forest costs several times the memory of what is needed of it, and
comparing forests is slow.
"""

import hashlib
import logging
import sys
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from headgate.common.deltas import Delta, GoodVersion, LastGood, Operation
from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject, ObjectRef, ResourceKind
from headgate.translator.manifests.reading import metadata
from headgate.translator.world.containment import contain
from headgate.translator.world.last_good import JudgedVersion, ObjectVersions, VersionId
from headgate.translator.world.versions import VersionTracker

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Index(Generic[T]):
    """A way in which objects of one kind are found together. `eq=False`: an index is itself only."""

    name: str
    values: Callable[[T], Collection[str]]
    """Values by which an object is found; it is left out if there are none."""
    is_cluster_wide: bool = False
    """Whether objects of all namespaces are found together; else those of one namespace are."""
    is_table_wide: bool = False
    """Whether objects of all clusters are (`Lookups.find_everywhere`)."""


EVERY: Index[Any] = Index("every", lambda _: ("",))
"""All objects of a namespace; of kinds without namespaces, all of a cluster."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredKind(Generic[T]):
    """How objects of one kind are kept."""

    kind: ResourceKind
    read: Callable[[JsonObject], T]
    """Manifest to compact form. Total: what is malformed is kept as such or read as absent. Compared with `==`."""
    indexes: tuple[Index[T], ...] = ()
    """Ways in which objects are found together."""
    check: Callable[[JsonObject, T], Iterable[Problem]] | None = None
    """What is wrong with an object by itself; a version with errors leaves the last good one in force. None: every
    version is taken as it comes."""
    restore: Callable[[T], JsonObject] | None = None
    """Undoes `read`: a manifest that reads as this form, for kinds that are checked."""
    combine: Callable[[T, T], T] = lambda _, good: good
    """Of a version with errors and the last good one, what is served; by default the good one, whole."""
    sample: T | None = None
    """Stands for every object of the kind where what is referred to is taken to be in place (`in_place`)."""
    is_shared: Callable[[T], bool] | None = None
    """Whether other clusters may look for an object by its namespace and name; None: of no object."""
    name: "KindKey" = field(init=False)
    """Key of the kind, as deltas name it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", KindKey(self.kind.group, self.kind.resource))

    def ref(self, cluster: str, namespace: str, name: str) -> ObjectRef:
        """Return the reference of one object of this kind."""
        return ObjectRef(cluster, self.kind.group, self.kind.resource, namespace, name)

    def index_key(self, index: Index[T], cluster: str, namespace: str, value: str) -> "IndexKey":
        """Return the key under which objects with one value of an index are found."""
        within = "" if index.is_cluster_wide or index.is_table_wide else namespace
        cluster = "" if index.is_table_wide else cluster
        return IndexKey(cluster, self.kind.group, self.kind.resource, index.name, within, value)

    def shared_key(self, namespace: str, name: str) -> "SharedKey":
        """Return the key under which the namesakes of all clusters are found."""
        return SharedKey(self.kind.group, self.kind.resource, namespace, name)


class KindKey(NamedTuple):
    """Group and plural of a kind."""

    group: str
    resource: str


class IndexKey(NamedTuple):
    """All objects of a kind that share a value of an index."""

    cluster: str
    """Empty for all clusters."""
    group: str
    resource: str
    index_name: str
    namespace: str
    """Empty for all namespaces."""
    value: str


class SharedKey(NamedTuple):
    """All shared objects of a kind with one namespace and name, whatever their cluster."""

    group: str
    resource: str
    namespace: str
    name: str


Check = Callable[[ObjectRef, Any], Iterable[Problem]]
"""Returns what is wrong with an object of a kind, given its stored form."""


class Inspected(NamedTuple):
    """A version of an object that is not in the world."""

    judged: JudgedVersion
    problems: frozenset[Problem]
    """All that is wrong with it by itself, warnings too."""


class World:
    """Objects by reference and by index."""

    def __init__(
        self,
        kinds: Iterable[StoredKind[Any]],
        checks: Mapping[KindKey, Check] | None = None,
        presumes: Callable[[ObjectRef, Any], bool] = lambda ref, form: False,
    ) -> None:
        """Make an empty world.

        Args:
            kinds: what is kept.
            checks: further checks, for some kinds.
            presumes: whether the caller will `acquit` or `judge` an object of this stored form, so that its first
                version is good until then as far as these checks go.
        """
        self._kinds: dict[tuple[str, str], StoredKind[Any]] = {stored.name: stored for stored in kinds}
        self._checks = dict(checks or {})
        self._unchecked = {
            stored.name for stored in self._kinds.values() if stored.check is None and stored.name not in self._checks
        }
        self._objects: dict[ObjectRef, Any] = {}
        self._indexes: dict[IndexKey, dict[ObjectRef, Any]] = {}
        self._shared: dict[SharedKey, set[str]] = {}
        self._counts: Counter[str] = Counter()
        self._presumes = presumes
        self._presumed: set[ObjectRef] = set()
        """Objects whose first version is still to be judged by the further checks."""
        self.tracker = VersionTracker()
        """Of the kinds that are checked."""

    def apply(self, delta: Delta) -> tuple[Hashable, ...]:
        """Take in one delta; return the keys (`ObjectRef`, `IndexKey`, `SharedKey`) whose content changed by it."""
        ref = delta.ref
        stored = self._kinds.get((ref.group, ref.resource))
        if stored is None:
            return ()
        ref = ObjectRef(*map(sys.intern, ref))
        is_present = delta.operation is Operation.APPLY and delta.object is not None
        if stored.name in self._unchecked:
            return self._serve(stored, ref, _read(stored, ref, delta.object or {}) if is_present else None)
        before = self.tracker.get(ref)
        if not is_present:
            self._presumed.discard(ref)
            return self._stand(stored, ref, before, self.tracker.follow(ref, None))
        self._end_presumption(stored, ref)
        new = self._judge(stored, ref, delta, may_presume=before is None and not self.tracker.has_record(ref))
        return self._stand(stored, ref, before, self.tracker.follow(ref, new))

    def is_presumed(self, ref: ObjectRef) -> bool:
        """Whether an object's first version is still to be acquitted or judged."""
        return ref in self._presumed

    def acquit(self, ref: ObjectRef) -> None:
        """Say of a presumed object that nothing is wrong with it by itself."""
        self._presumed.discard(ref)

    def judge(self, ref: ObjectRef) -> tuple[Hashable, ...]:
        """Judge a presumed object by itself; return the keys whose content changed by it."""
        stored, before = self._kinds[ref.group, ref.resource], self.tracker.get(ref)
        self._end_presumption(stored, ref)
        return self._stand(stored, ref, before, self.tracker.get(ref))

    def _end_presumption(self, stored: StoredKind[Any], ref: ObjectRef) -> None:
        if ref not in self._presumed:
            return
        self._presumed.discard(ref)
        versions, check = self.tracker.get(ref), self._checks[stored.name]
        if versions is not None:
            form = versions.present.form
            errors = contain(_find_errors, _fail, "checking", ref, None, check, ref, {}, form)
            self.tracker.convict(ref, errors)

    def recall(self, ref: ObjectRef, history: Iterable[Delta]) -> tuple[Hashable, ...]:
        """Take an object's earlier versions, oldest first; return the keys whose content changed by it."""
        stored, before = self._kinds[ref.group, ref.resource], self.tracker.get(ref)
        after = self.tracker.recall(ref, history, lambda delta: self._judge(stored, ref, delta))
        return self._stand(stored, ref, before, after)

    def remember(self, said: LastGood) -> tuple[Hashable, ...]:
        """Take what the log has written down of an object's last good version; return the keys that changed by it."""
        stored = self._kinds.get((said.ref.group, said.ref.resource))
        if stored is None:
            return ()
        ref = ObjectRef(*map(sys.intern, said.ref))
        before = self.tracker.get(ref)
        self._end_presumption(stored, ref)
        after = self.tracker.remember(ref, said, lambda good: self._judge(stored, ref, good))
        return self._stand(stored, ref, before, after)

    def record(self, ref: ObjectRef) -> LastGood | None:
        """Return what ought to be written down of an object; None while that is not known."""
        record, versions = self.tracker.record(ref), self.tracker.get(ref)
        if record is None:
            return None
        good = versions.good if versions else None
        stored = self._kinds[ref.group, ref.resource]
        if good is None or stored.restore is None:
            return LastGood(ref=ref, refused=record.refused)
        manifest, version = stored.restore(good.form), good.version
        counted = {"generation": version.generation} if version.generation else {}
        restored = GoodVersion(
            uid=version.uid,
            resource_version=version.resource_version,
            object={**manifest, "metadata": {**metadata(manifest), **counted}},
            sequence=version.sequence,
        )
        return LastGood(ref=ref, refused=record.refused, good=restored)

    def digest(self, ref: ObjectRef) -> str:
        """Return a digest of what is served of an object of a kind that is checked; empty for none."""
        stored, form = self._kinds[ref.group, ref.resource], self._objects.get(ref)
        if form is None or stored.restore is None:
            return ""
        content = msgspec.json.encode(stored.restore(form), order="deterministic")
        return hashlib.blake2b(content, digest_size=8).hexdigest()

    def _judge(
        self, stored: StoredKind[Any], ref: ObjectRef, told: Delta | GoodVersion, *, may_presume: bool = False
    ) -> JudgedVersion:
        manifest = told.object or {}
        generation = metadata(manifest).get("generation")
        counted = generation if isinstance(generation, int) else 0
        version = VersionId(told.uid, told.resource_version, counted, told.sequence)
        form = _read(stored, ref, manifest)
        if form is None:
            return JudgedVersion(None, version, (_FAILURE,))
        further = self._checks.get(stored.name)
        if further is not None and may_presume and self._presumes(ref, form):
            self._presumed.add(ref)
            further = None
        if further is None and stored.check is None:
            return JudgedVersion(form, version)
        errors = contain(_find_errors, _fail, "checking", ref, stored.check, further, ref, manifest, form)
        return JudgedVersion(form, version, errors)

    def inspect(self, ref: ObjectRef, manifest: JsonObject) -> "Inspected | None":
        """Return what would be taken in of an object, without doing so; None where its kind is none of ours.

        A mistake of ours raises here: there is no other object to protect from it.
        """
        stored = self._kinds.get((ref.group, ref.resource))
        if stored is None:
            return None
        form = stored.read(manifest)
        problems = _problems(stored.check, self._checks.get(stored.name), ref, manifest, form)
        generation = metadata(manifest).get("generation")
        version = VersionId("", "", generation if isinstance(generation, int) else 0, 0)
        return Inspected(JudgedVersion(form, version, _only_errors(problems)), frozenset(problems))

    def _stand(
        self, stored: StoredKind[Any], ref: ObjectRef, before: ObjectVersions | None, after: ObjectVersions | None
    ) -> tuple[Hashable, ...]:
        form = _served(stored, after)
        changed = self._serve(stored, ref, form)
        if not changed and form is not None:
            self._objects[ref] = form  # equal, and the one that the versions hold: nothing is kept twice
        return changed or ((ref,) if _look(before) != _look(after) else ())

    def _serve(self, stored: StoredKind[Any], ref: ObjectRef, form: Any | None) -> tuple[Hashable, ...]:
        old = self._objects.get(ref)
        if old == form:
            return ()
        if form is None:
            del self._objects[ref]
        else:
            self._objects[ref] = form
        self._counts[ref.resource] += (form is not None) - (old is not None)
        return (ref, *self._reindex(stored, ref, old, form), *self._share(stored, ref, old, form))

    def _share(self, stored: StoredKind[Any], ref: ObjectRef, old: Any, value: Any) -> Iterable[SharedKey]:
        if stored.is_shared is None:
            return ()
        before = old is not None and stored.is_shared(old)
        after = value is not None and stored.is_shared(value)
        if before == after:
            return ()
        key = stored.shared_key(ref.namespace, ref.name)
        clusters = self._shared.setdefault(key, set())
        if after:
            clusters.add(ref.cluster)
        else:
            clusters.discard(ref.cluster)
            if not clusters:
                del self._shared[key]
        return (key,)

    def _reindex(self, stored: StoredKind[Any], ref: ObjectRef, old: Any, value: Any) -> Iterable[IndexKey]:
        if not stored.indexes:
            return ()
        before = _index_keys(stored, ref, old)
        after = _index_keys(stored, ref, value)
        if not before and not after:
            return ()
        for key in before - after:
            members = self._indexes[key]
            del members[ref]
            if not members:
                del self._indexes[key]
        for key in after:
            self._indexes.setdefault(key, {})[ref] = value
        return before | after

    def get(self, ref: ObjectRef) -> Any | None:
        """Return the stored form of what is served of an object; None where there is nothing."""
        return self._objects.get(ref)

    def sharers(self, key: SharedKey) -> tuple[str, ...]:
        """Return the clusters that share an object, in order of their names."""
        return tuple(sorted(self._shared.get(key, ())))

    def members(self, key: IndexKey) -> tuple[Any, ...]:
        """Return the stored forms of an index key's objects, in order of their names."""
        found = self._indexes.get(key)
        if not found:
            return ()
        return tuple(found.values()) if len(found) == 1 else tuple(form for _, form in self.entries(key))

    def entries(self, key: IndexKey) -> tuple[tuple[ObjectRef, Any], ...]:
        """Return an index key's objects with their stored forms, in order of their names."""
        return tuple(sorted(self._indexes.get(key, {}).items(), key=lambda entry: entry[0]))

    def kind_of(self, ref: ObjectRef) -> ResourceKind | None:
        """Return the kind of an object; None if its kind is of no interest here."""
        stored = self._kinds.get((ref.group, ref.resource))
        return stored.kind if stored else None

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of objects by plural."""
        return self._counts


def _index_keys(stored: StoredKind[Any], ref: ObjectRef, value: Any) -> set[IndexKey]:
    found: set[IndexKey] = set()
    if value is not None:
        for index in stored.indexes:
            if values := index.values(value):
                found.update([stored.index_key(index, ref.cluster, ref.namespace, each) for each in values])
    return found


OwnCheck = Callable[[JsonObject, Any], Iterable[Problem]]


def _problems(
    own: OwnCheck | None, further: Check | None, ref: ObjectRef, manifest: JsonObject, form: Any
) -> list[Problem]:
    return [*(own(manifest, form) if own else ()), *(further(ref, form) if further else ())]


def _find_errors(
    own: OwnCheck | None, further: Check | None, ref: ObjectRef, manifest: JsonObject, form: Any
) -> tuple[Problem, ...]:
    return _only_errors(_problems(own, further, ref, manifest, form))


def _only_errors(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(dict.fromkeys(each for each in problems if each.severity is Severity.ERROR)) if problems else ()


def _read(stored: StoredKind[Any], ref: ObjectRef, manifest: JsonObject) -> Any:
    return contain(stored.read, _nothing, "reading", ref, manifest)


def _nothing(_error: Exception) -> None:
    return None


def _served(stored: StoredKind[Any], versions: ObjectVersions | None) -> Any | None:
    if versions is None:
        return None
    present, good = versions
    if good is None:
        return present.form
    return good.form if present.form is None else stored.combine(present.form, good.form)


def _look(versions: ObjectVersions | None) -> tuple[Any, ...]:
    """Return what of an object's versions can be told to others, beside the form that is served."""
    if versions is None:
        return ()
    present, good = versions
    version = present.version
    return version.uid, version.generation, present.errors, present.errors and present.form, good and good.version


_FAILURE = Problem(reason="InternalError", message="Headgate failed to read this object; its log has the details")


def _fail(error: Exception) -> tuple[Problem, ...]:
    message = f"Headgate failed on this object ({type(error).__name__}); its log has the details"
    return (Problem(reason="InternalError", message=message),)
