"""Objects are found by any number of indexes, within a namespace, over a whole cluster or over all clusters."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from fakes.translator.deltas import EPOCH
from headgate.common.deltas import Delta, Operation
from headgate.common.resources import SERVICE, ObjectRef
from headgate.translator.admission.dry_world import DryWorld
from headgate.translator.world.graph import Graph, Level, Lookups, Node, Rule
from headgate.translator.world.in_place import InPlace
from headgate.translator.world.settings import DEFAULT_SETTINGS
from headgate.translator.world.world import EVERY, Index, StoredKind, World

Labels = dict[str, str]


def by_label(name: str) -> Callable[[Labels], Collection[str]]:
    return lambda labels: (labels[name],) if name in labels else ()


BY_TEAM: Index[Labels] = Index("team", by_label("team"))
BY_HOST: Index[Labels] = Index("host", by_label("host"), is_cluster_wide=True)
BY_OWNER: Index[Labels] = Index("owner", by_label("owner"), is_table_wide=True)
STORED = StoredKind(SERVICE, lambda manifest: dict(manifest["labels"]), indexes=(BY_TEAM, BY_HOST, BY_OWNER, EVERY))


class Question(NamedTuple):
    """What is looked for."""

    by: Index[Labels]
    value: str = ""
    namespace: str = ""
    cluster: str = "a"


def ask(lookups: Lookups, question: Question) -> list[str]:
    if question.by.is_table_wide:
        found = lookups.find_everywhere(STORED, question.by, question.value)
        return [f"{ref.cluster}/{labels['name']}" for ref, labels in found]
    here = lookups.find(STORED, question.by, question.value, namespace=question.namespace)
    return [labels["name"] for labels in here]


ASK: Rule[Question, list[str]] = Rule("ask", Level.CLUSTER, ask, lambda *_: [])


def delta(namespace: str, name: str, cluster: str = "a", **labels: str) -> Delta:
    return Delta(
        ref=ObjectRef(cluster, SERVICE.group, SERVICE.resource, namespace, name),
        operation=Operation.APPLY,
        uid=name,
        resource_version="1",
        observed_at=EPOCH,
        object={"labels": {"name": name, **labels}},
    )


class Asked:
    """A world and the answers of one question, each time that it is settled."""

    def __init__(self, question: Question) -> None:
        self._world = World([STORED])
        self._graph = Graph(self._world)
        self._graph.demand(Node(ASK, question))

    def tell(self, namespace: str, name: str, cluster: str = "a", **labels: str) -> list[Any]:
        """Apply an object; return the answers that changed by it."""
        self._graph.touch(self._world.apply(delta(namespace, name, cluster, **labels)))
        return [output.value for output in self._graph.settle()]


def test_one_kind_is_found_by_each_of_its_indexes() -> None:
    teams, hosts = Asked(Question(BY_TEAM, "blue", "one")), Asked(Question(BY_HOST, "a.example"))
    assert teams.tell("one", "web", team="blue", host="a.example") == [["web"]]
    assert hosts.tell("one", "web", team="blue", host="a.example") == [["web"]]


def test_an_index_of_all_clusters_finds_the_objects_of_each_with_their_clusters() -> None:
    asked = Asked(Question(BY_OWNER, "ann"))
    assert asked.tell("two", "web", cluster="b", owner="ann") == [["b/web"]]
    assert asked.tell("one", "db", owner="ann") == [["a/db", "b/web"]]
    assert asked.tell("one", "other", owner="bob") == []
    assert asked.tell("two", "web", cluster="b", owner="bob") == [["a/db"]]


def test_a_proposed_world_and_one_with_everything_in_place_are_asked_about_all_clusters_too() -> None:
    world = World([STORED])
    world.apply(delta("one", "db", owner="ann"))
    dry = DryWorld(world, Graph(world), "b", {})
    assert [ref.name for ref, _ in dry.find_everywhere(STORED, BY_OWNER, "ann")] == ["db"]
    assert InPlace(DEFAULT_SETTINGS).find_everywhere(STORED, BY_OWNER, "ann") == ()


def test_an_index_of_namespaces_finds_nothing_of_another_namespace() -> None:
    asked = Asked(Question(BY_TEAM, "blue", "one"))
    asked.tell("one", "web", team="blue")
    assert asked.tell("two", "shop", team="blue") == []


def test_an_index_of_the_cluster_finds_objects_of_all_namespaces() -> None:
    asked = Asked(Question(BY_HOST, "a.example"))
    assert asked.tell("one", "web", host="a.example") == [["web"]]
    assert asked.tell("two", "shop", host="a.example") == [["web", "shop"]]
    assert asked.tell("one", "web", host="b.example") == [["shop"]]


def test_the_same_value_of_another_index_is_another_look_up() -> None:
    asked = Asked(Question(BY_HOST, "blue"))
    asked.tell("one", "web", host="blue")
    assert asked.tell("one", "shop", team="blue") == []


def test_every_object_of_a_namespace_is_found_without_a_value() -> None:
    asked = Asked(Question(EVERY, namespace="one"))
    asked.tell("one", "web")
    assert asked.tell("one", "shop") == [["shop", "web"]]
    assert asked.tell("two", "other") == []
