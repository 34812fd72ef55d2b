"""The live world, with one object as it is proposed, and with what it alone names.

Nothing is copied: look-ups of all other objects go to the world itself. Nothing is kept either: look-ups are not
recorded, and memos are computed again, so that the translation goes on as if nothing had been asked.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from headgate.common.resources import ObjectRef
from headgate.translator.world.attachments import AttachmentPoint
from headgate.translator.world.graph import Argument, Graph, Rule
from headgate.translator.world.last_good import JudgedVersion, ObjectVersions
from headgate.translator.world.world import Index, StoredKind, World

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A", bound=Argument)


class DryWorld:
    """`Lookups` of a world in which some objects are other versions of themselves."""

    is_assumed = False

    def __init__(self, world: World, graph: Graph, cluster: str, versions: Mapping[ObjectRef, JudgedVersion]) -> None:
        """Look at a world.

        Args:
            world: read, and left as it is.
            graph: its settings and providers hold here too; no node of it is touched.
            cluster: of the looked up objects.
            versions: how objects are instead. No last good version stands in for them: they are judged as they are.
                Look-ups by an index find the objects of the world.
        """
        self._world, self._graph, self._versions = world, graph, versions
        self.settings = graph.settings
        self.cluster = cluster
        """Of the looked up objects."""

    def attached(self, point: AttachmentPoint[K, V], target: K) -> V:
        """Return what is attached to a target."""
        return self._graph.providers.find(point, self, target)

    def elsewhere(self, cluster: str) -> "DryWorld":
        """Look at another cluster of the same world."""
        return DryWorld(self._world, self._graph, cluster, self._versions)

    def sharers(self, stored: StoredKind[Any], namespace: str, name: str) -> tuple[str, ...]:
        """Return the clusters that share an object of this name, complete or not."""
        return self._world.sharers(stored.shared_key(namespace, name))

    def get(self, stored: StoredKind[T], namespace: str, name: str) -> T | None:
        """Return the stored form of an object."""
        ref = stored.ref(self.cluster, namespace, name)
        version = self._versions.get(ref)
        return cast("T | None", self._world.get(ref) if version is None else version.form)

    def versions(self, stored: StoredKind[Any], namespace: str, name: str) -> ObjectVersions | None:
        """Return how an object stands."""
        ref = stored.ref(self.cluster, namespace, name)
        version = self._versions.get(ref)
        return self._world.tracker.get(ref) if version is None else ObjectVersions(version)

    def find(self, stored: StoredKind[T], index: Index[T], value: str = "", *, namespace: str = "") -> tuple[T, ...]:
        """Return the objects with a value of an index."""
        return self._world.members(stored.index_key(index, self.cluster, namespace, value))

    def find_everywhere(
        self, stored: StoredKind[T], index: Index[T], value: str = ""
    ) -> tuple[tuple[ObjectRef, T], ...]:
        """Return the objects of all clusters with a value of an index."""
        return self._world.entries(stored.index_key(index, "", "", value))

    def derive(self, rule: Rule[A, T], argument: A) -> T:
        """Compute a memo's value."""
        return rule.compute(self, argument)
