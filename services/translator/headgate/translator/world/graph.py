"""Incremental computation: derived values, what each one asked for, and nothing run twice without need.

A node is a rule applied to an argument. While it runs, every look-up is recorded, those that found nothing included,
so a later change runs exactly the nodes that asked for what changed. Rules have levels; nodes run level by level, so a
node sees only settled values below it. Two sorts of rules:

- a *memo* is kept, other nodes derive from it, and a new value equal to the old one stops the wave there;
- an *output* is handed to the caller of `settle` and not kept: the table's image compares and stores it already.

The idea is that of build systems (Mokhov et al., "Build Systems a la Carte", 2018: verifying traces, early cut-off).
Rejected: rebuilding everything after each change, as Contour does; at 10,000 Ingresses that takes seconds.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from headgate.common.resources import ObjectRef
from headgate.translator.world.attachments import AttachmentPoint, Providers
from headgate.translator.world.containment import contain
from headgate.translator.world.last_good import ObjectVersions
from headgate.translator.world.multimap import Multimap
from headgate.translator.world.settings import DEFAULT_SETTINGS, TranslationSettings
from headgate.translator.world.world import Index, IndexKey, SharedKey, StoredKind, World

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
_UNKNOWN = object()
"""Of a memo that has not run."""
A = TypeVar("A", bound="Argument")


class Argument(Protocol):
    """What a rule is applied to: hashable, and of one cluster."""

    @property
    def cluster(self) -> str:
        """Cluster whose objects the rule may look up."""
        ...

    def __hash__(self) -> int: ...


class Lookups(Protocol):
    """The world as one node sees it: objects of a cluster, its own unless said otherwise, each look-up recorded."""

    @property
    def cluster(self) -> str:
        """Cluster of the looked up objects."""
        ...

    @property
    def settings(self) -> TranslationSettings:
        """The operator's settings of translation."""
        ...

    @property
    def is_assumed(self) -> bool:
        """Whether every object that is referred to is taken to be there: what is not found is no mistake then."""
        ...

    def get(self, stored: StoredKind[T], namespace: str, name: str) -> T | None:
        """Return the stored form of what is served of an object; None where there is nothing."""
        ...

    def versions(self, stored: StoredKind[Any], namespace: str, name: str) -> ObjectVersions | None:
        """Return how an object of a kind that is checked stands; None where there is none."""
        ...

    def find(self, stored: StoredKind[T], index: Index[T], value: str = "", *, namespace: str = "") -> tuple[T, ...]:
        """Return the objects with a value of an index, in order of their names.

        Only objects of the namespace are returned, unless the index is of the whole cluster.
        """
        ...

    def find_everywhere(
        self, stored: StoredKind[T], index: Index[T], value: str = ""
    ) -> tuple[tuple[ObjectRef, T], ...]:
        """Return the objects of all clusters with a value of an index that is table-wide, in order of their names."""
        ...

    def derive(self, rule: "Rule[A, T]", argument: A) -> T:
        """Return a memo's value, computed now if it is not known yet."""
        ...

    def attached(self, point: AttachmentPoint[K, V], target: K) -> V:
        """Return what objects of any dialect say of a target."""
        ...

    def sharers(self, stored: StoredKind[Any], namespace: str, name: str) -> tuple[str, ...]:
        """Return the complete clusters that share an object of this name, in order of their names."""
        ...

    def elsewhere(self, cluster: str) -> "Lookups":
        """Return the world as the same node sees it in another cluster."""
        ...


class Level(IntEnum):
    """When rules run: what is known of a cluster, then of objects together, then objects, then what they refer to."""

    CLUSTER = 0
    SHARED = 1
    OBJECT = 2
    REFERENCE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Rule(Generic[A, T]):
    """How a derived value is computed. `eq=False`: a rule is itself only."""

    name: str
    level: Level
    """Runs after all rules of lower levels; may derive from memos of lower levels only."""
    compute: Callable[[Lookups, A], T]
    on_error: Callable[[A, Exception], T]
    """Stands in where `compute` raises unexpectedly."""
    is_memo: bool = False


class Node(NamedTuple):
    """A rule applied to an argument."""

    rule: Rule[Any, Any]
    argument: Any


class Output(NamedTuple):
    """A value that an output node has now."""

    node: Node
    value: Any


class Completeness(NamedTuple):
    """Key of what is asked about a cluster as such: whether all of its objects are here."""

    cluster: str


class Graph:
    """Derived nodes over a world."""

    def __init__(
        self,
        world: World,
        settings: TranslationSettings = DEFAULT_SETTINGS,
        providers: Providers | None = None,
        *,
        is_followed: bool = True,
    ) -> None:
        """Derive from a world, with what holds for all objects of it.

        Args:
            world: the objects.
            settings: what holds for all of them.
            providers: what is attached to them.
            is_followed: whether the world changes once nodes have run. If not, what they asked for is not remembered.
        """
        self._is_followed = is_followed
        self._world = world
        self.settings = settings
        self.providers = providers or Providers()
        self._asked: dict[Node, tuple[Hashable, ...]] = {}
        self._askers: Multimap[Hashable, Node] = Multimap()
        self._memos: dict[Node, Any] = {}
        self._known: dict[Node, Node] = {}
        self._dirty: tuple[dict[Node, None], ...] = tuple({} for _ in Level)
        self._complete: set[str] = set()
        self.runs = 0
        """Nodes run so far."""

    @property
    def pending(self) -> int:
        """Nodes that wait to run."""
        return sum(map(len, self._dirty))

    def touch(self, keys: Iterable[Hashable]) -> None:
        """Say that inputs changed: who asked for them runs again."""
        for key in keys:
            for node in self._askers.of(key):
                self._dirty[node.rule.level][node] = None

    def complete(self, cluster: str) -> None:
        """Say that all objects of a cluster are here, so that others may see what it shares."""
        self._complete.add(cluster)
        self.touch((Completeness(cluster),))

    def dismiss(self, cluster: str) -> None:
        """Say that a cluster is gone, of which nothing is left: when it comes back it is not complete at once."""
        self._complete.discard(cluster)

    def is_complete(self, cluster: str) -> bool:
        """Whether all objects of a cluster are here."""
        return cluster in self._complete

    def demand(self, node: Node) -> None:
        """Keep an output from now on."""
        if node not in self._asked:
            self._dirty[node.rule.level][node] = None

    def release(self, node: Node) -> None:
        """Forget a node that is needed no more."""
        self._dirty[node.rule.level].pop(node, None)
        self._memos.pop(node, None)
        self._known.pop(node, None)
        self._forget_asking(node, self._asked.pop(node, ()))

    def askers(self, key: Hashable) -> Collection[Node]:
        """Return the nodes that asked for an object, an index or a memo."""
        return self._askers.of(key)

    def is_settled(self, node: Node) -> bool:
        """Whether a node has run and nothing that it asked for has changed since."""
        return node in self._asked and node not in self._dirty[node.rule.level]

    def settle(self) -> Iterator[Output]:
        """Run what waits, lowest level first; yield the outputs.

        Between two outputs the caller may touch, demand and release.
        """
        while (node := self._next()) is not None:
            if not node.rule.is_memo:
                yield Output(node, self._run(node))
            elif node in self._memos:
                before = self._memos[node]
                if self._run(node) != before:
                    self.touch((node,))

    def look(self, cluster: str) -> Lookups:
        """Return the world as it is now, as a cluster's objects see it; what is asked of it is recorded nowhere."""
        return _Recorder(self, cluster)

    def _next(self) -> Node | None:
        for waiting in self._dirty:
            if waiting:
                return waiting.popitem()[0]  # the oldest would be searched for behind all those that are gone
        return None

    def _run(self, node: Node) -> Any:
        self.runs += 1
        rule, argument = node
        lookups = _Recorder(self, argument.cluster)
        compute, stand_in = partial(rule.compute, lookups, argument), partial(rule.on_error, argument)
        value = contain(compute, stand_in, rule.name, argument)
        if rule.is_memo:
            self._memos[node] = value
        self._remember_asking(node, lookups.asked if self._is_followed else {})
        return value

    def _remember_asking(self, node: Node, asked: dict[Hashable, None]) -> None:
        before = self._asked.get(node, ())
        self._asked[node] = tuple(asked)
        self._askers.add_to_each(asked, node)
        if before:
            self._forget_asking(node, [key for key in before if key not in asked])

    def _forget_asking(self, node: Node, keys: Iterable[Hashable]) -> None:
        for key in keys:
            if self._askers.discard(key, node) and isinstance(key, Node):
                self.release(key)

    def read_object(self, ref: ObjectRef) -> Any | None:
        """Return an object of the world."""
        return self._world.get(ref)

    def read_versions(self, ref: ObjectRef) -> ObjectVersions | None:
        """Return how an object of the world stands."""
        return self._world.tracker.get(ref)

    def read_index(self, key: IndexKey) -> tuple[Any, ...]:
        """Return an index's objects."""
        return self._world.members(key)

    def read_entries(self, key: IndexKey) -> tuple[tuple[ObjectRef, Any], ...]:
        """Return an index's objects with their references."""
        return self._world.entries(key)

    def read_sharers(self, key: SharedKey) -> tuple[str, ...]:
        """Return the clusters that share an object, complete or not."""
        return self._world.sharers(key)

    def the_same(self, memo: Node) -> Node:
        """Return the one object for a memo: thousands of nodes ask for the same few, and each keeps what it asked."""
        return self._known.setdefault(memo, memo)

    def read_memo(self, node: Node) -> Any:
        """Return a memo's value, computing it if need be."""
        waiting = self._dirty[node.rule.level]
        if not waiting or node not in waiting:
            value = self._memos.get(node, _UNKNOWN)
            if value is not _UNKNOWN:
                return value
        waiting.pop(node, None)
        return self._run(node)


class _Recorder:
    """Look-ups of one run of one node."""

    __slots__ = ("_graph", "asked", "cluster")
    is_assumed = False

    def __init__(self, graph: Graph, cluster: str, asked: dict[Hashable, None] | None = None) -> None:
        self._graph = graph
        self.cluster = cluster
        self.asked: dict[Hashable, None] = {} if asked is None else asked

    @property
    def settings(self) -> TranslationSettings:
        return self._graph.settings

    def attached(self, point: AttachmentPoint[K, V], target: K) -> V:
        return self._graph.providers.find(point, self, target)

    def elsewhere(self, cluster: str) -> "_Recorder":
        return self if cluster == self.cluster else _Recorder(self._graph, cluster, self.asked)

    def sharers(self, stored: StoredKind[Any], namespace: str, name: str) -> tuple[str, ...]:
        key = stored.shared_key(namespace, name)
        self.asked[key] = None
        found = self._graph.read_sharers(key)
        self.asked |= {Completeness(each): None for each in found if not self._graph.is_complete(each)}
        return tuple(each for each in found if self._graph.is_complete(each))

    def get(self, stored: StoredKind[T], namespace: str, name: str) -> T | None:
        ref = stored.ref(self.cluster, namespace, name)
        self.asked[ref] = None
        return cast("T | None", self._graph.read_object(ref))

    def versions(self, stored: StoredKind[Any], namespace: str, name: str) -> ObjectVersions | None:
        ref = stored.ref(self.cluster, namespace, name)
        self.asked[ref] = None
        return self._graph.read_versions(ref)

    def find(self, stored: StoredKind[T], index: Index[T], value: str = "", *, namespace: str = "") -> tuple[T, ...]:
        key = stored.index_key(index, self.cluster, namespace, value)
        self.asked[key] = None
        return cast("tuple[T, ...]", self._graph.read_index(key))

    def find_everywhere(
        self, stored: StoredKind[T], index: Index[T], value: str = ""
    ) -> tuple[tuple[ObjectRef, T], ...]:
        key = stored.index_key(index, "", "", value)
        self.asked[key] = None
        return self._graph.read_entries(key)

    def derive(self, rule: Rule[A, T], argument: A) -> T:
        node = self._graph.the_same(Node(rule, argument))
        self.asked[node] = None
        return cast("T", self._graph.read_memo(node))
