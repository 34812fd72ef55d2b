"""The world: every object of every cluster, stripped on entry to what translation reads.

Each kind says how its objects are read (`StoredKind.read`, run once per delta) and by which value they are found
together (`StoredKind.index`: EndpointSlices by Service). An object whose stripped form is as before has not changed,
whatever its resourceVersion says: a status that we wrote ourselves never comes back as work.

Rejected: keeping the decoded manifests. A dict forest costs several times the memory of what is needed of it, and
comparing forests is slow.
"""

import logging
import sys
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from headgate.common.deltas import Delta, Operation
from headgate.common.resources import JsonObject, ObjectRef, ResourceKind
from headgate.translator.containment import contain

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class StoredKind(Generic[T]):
    """How objects of one kind are kept."""

    kind: ResourceKind
    read: Callable[[JsonObject], T]
    """Manifest to compact form. Total: what is malformed is kept as such or read as absent. Compared with `==`."""
    index: Callable[[T], str | None] | None = None
    """Value by which objects of one namespace are found together; None leaves an object out."""

    @property
    def name(self) -> "KindKey":
        """Key of the kind, as deltas name it."""
        return KindKey(self.kind.group, self.kind.resource)

    def ref(self, cluster: str, namespace: str, name: str) -> ObjectRef:
        """Return the reference of one object of this kind."""
        return ObjectRef(cluster, self.kind.group, self.kind.resource, namespace, name)

    def index_key(self, cluster: str, namespace: str, value: str) -> "IndexKey":
        """Return the key under which objects with one index value are found."""
        return IndexKey(cluster, self.kind.group, self.kind.resource, namespace, value)


class KindKey(NamedTuple):
    """Group and plural of a kind."""

    group: str
    resource: str


class IndexKey(NamedTuple):
    """All objects of a kind in a namespace that share an index value."""

    cluster: str
    group: str
    resource: str
    namespace: str
    value: str


class World:
    """Objects by reference and by index."""

    def __init__(self, kinds: Iterable[StoredKind[Any]]) -> None:
        self._kinds: Mapping[KindKey, StoredKind[Any]] = {stored.name: stored for stored in kinds}
        self._objects: dict[ObjectRef, Any] = {}
        self._indexes: dict[IndexKey, dict[ObjectRef, Any]] = {}
        self._counts: Counter[str] = Counter()

    def apply(self, delta: Delta) -> tuple[Hashable, ...]:
        """Take in one delta; return the keys (`ObjectRef`, `IndexKey`) whose content changed by it."""
        stored = self._kinds.get(KindKey(delta.ref.group, delta.ref.resource))
        if stored is None:
            return ()
        ref = ObjectRef(*map(sys.intern, delta.ref))
        value = None
        if delta.operation is Operation.APPLY and delta.object is not None:
            manifest = delta.object
            value = contain(lambda: stored.read(manifest), lambda _: None, f"reading {ref}")
        old = self._objects.get(ref)
        if old == value:
            return ()
        self._replace(ref, old, value)
        return (ref, *self._reindex(stored, ref, old, value))

    def _replace(self, ref: ObjectRef, old: Any, value: Any) -> None:
        if value is None:
            del self._objects[ref]
        else:
            self._objects[ref] = value
        self._counts[ref.resource] += (value is not None) - (old is not None)

    def _reindex(self, stored: StoredKind[Any], ref: ObjectRef, old: Any, value: Any) -> Iterable[IndexKey]:
        if stored.index is None:
            return ()
        before = self._index_key(stored, ref, old)
        after = self._index_key(stored, ref, value)
        if before is not None and before != after:
            members = self._indexes[before]
            del members[ref]
            if not members:
                del self._indexes[before]
        if after is not None:
            self._indexes.setdefault(after, {})[ref] = value
        return {key for key in (before, after) if key is not None}

    @staticmethod
    def _index_key(stored: StoredKind[Any], ref: ObjectRef, value: Any) -> IndexKey | None:
        if value is None or stored.index is None:
            return None
        found = stored.index(value)
        return None if found is None else stored.index_key(ref.cluster, ref.namespace, found)

    def get(self, ref: ObjectRef) -> Any | None:
        """Return an object's stored form; None where there is none."""
        return self._objects.get(ref)

    def members(self, key: IndexKey) -> tuple[Any, ...]:
        """Return the stored forms of an index key's objects, in order of their names."""
        members = self._indexes.get(key)
        return tuple(members[ref] for ref in sorted(members)) if members else ()

    def refs(self, cluster: str, kinds: Container[KindKey]) -> list[ObjectRef]:
        """Return the objects of some kinds in one cluster."""
        return [ref for ref in self._objects if ref.cluster == cluster and KindKey(ref.group, ref.resource) in kinds]

    def kind_of(self, ref: ObjectRef) -> ResourceKind | None:
        """Return the kind of an object; None if its kind is of no interest here."""
        stored = self._kinds.get(KindKey(ref.group, ref.resource))
        return stored.kind if stored else None

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of objects by plural."""
        return self._counts
