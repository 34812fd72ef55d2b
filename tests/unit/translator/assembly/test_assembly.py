"""Entries that are an object's alone, and hosts on listeners."""

from typing import Any

import pytest

from headgate.common.resources import ObjectRef
from headgate.common.sealing import ClusterValue
from headgate.common.table import (
    Backend,
    BackendGroup,
    Consumer,
    ConsumerGroup,
    Credential,
    Listener,
    PathMatch,
    PathType,
    PluginUse,
    Provenance,
    Route,
    VirtualHost,
    Weighted,
)
from headgate.common.table.hosts import HostKey
from headgate.translator.assembly.assembly import Assembly
from headgate.translator.fragments.fragment import Fragment, Identity, RouteClaim

REF = ObjectRef("c", "apisix.apache.org", "apisixconsumers", "shop", "jack")
FROM = Provenance(cluster="c", kind="ApisixConsumer", namespace="shop", name="jack")
JACK = Consumer(key="c/shop/jack", name="shop_jack", provenance=FROM)
GOLD = ConsumerGroup(key="c/shop/gold", name="gold", provenance=FROM)


def fragment(*own: Consumer | ConsumerGroup) -> Fragment:
    return Fragment(Identity(REF, "apisix.apache.org/v2", "ApisixConsumer", "uid"), entries=own)


def changed(assembly: Assembly) -> list[tuple[str, str]]:
    found = [(kind, key) for kind, key in assembly.changed]
    assembly.changed.clear()
    return found


def test_an_objects_own_entries_come_change_and_go_with_it() -> None:
    assembly = Assembly()
    assembly.put_fragment(REF, fragment(JACK, GOLD))
    assert changed(assembly) == [("consumers", JACK.key), ("consumer_groups", GOLD.key)]
    assembly.put_fragment(REF, fragment(JACK.model_copy(update={"group": "gold"}), GOLD))
    assert changed(assembly) == [("consumers", JACK.key)]
    assembly.put_fragment(REF, fragment(GOLD))
    assert changed(assembly) == [("consumers", JACK.key)]
    assembly.put_fragment(REF, None)
    assert changed(assembly) == [("consumer_groups", GOLD.key)]
    assert assembly.image.chunks() == []


def named(name: str, user: str, *, created_at: str, secret: bool = False, called: str = "") -> Fragment:
    """What an ApisixConsumer with a user's name contributes."""
    ref = ObjectRef("c", "apisix.apache.org", "apisixconsumers", "shop", name)
    config = {"password": "p"} if secret else {"username": user, "password": "p"}
    sealed = {"username": ClusterValue(boxes={"r": user})} if secret else {}
    use = PluginUse(name="basic-auth", config=config, secrets=sealed)
    made = Consumer(
        key=f"c/shop/{name}",
        name=called or f"shop_{name}",
        credentials=(Credential(use=use),),
        created_at=created_at,
        provenance=FROM.model_copy(update={"name": name}),
    )
    return Fragment(Identity(ref, "apisix.apache.org/v2", "ApisixConsumer", "uid", created_at), entries=(made,))


def told(assembly: Assembly, fragment: Fragment) -> list[str]:
    for _ in assembly.assemble():
        pass
    return [problem.message for problem in assembly.lost_by(fragment)]


def test_of_two_consumers_with_one_name_of_a_user_the_younger_is_told() -> None:
    assembly, old = Assembly(), named("old", "jack", created_at="2025-01-01T00:00:00Z")
    new = named("new", "jack", created_at="2026-01-01T00:00:00Z")
    for fragment in (new, old):
        assembly.put_fragment(fragment.identity.ref, fragment)
    expected = "username of basic-auth recognises ApisixConsumer shop/old in cluster c, which is older"
    assert (told(assembly, old), told(assembly, new)) == ([], [expected])
    rehearsed = assembly.rehearse(new.identity.ref, new)
    assert [problem.message for problem in assembly.lost_by(new, rehearsed)] == [expected]
    assembly.put_fragment(old.identity.ref, None)
    assert told(assembly, new) == []


@pytest.mark.parametrize("different", [{"secret": True}, {"called": "shop_old"}])
def test_what_is_sealed_is_not_compared_and_one_consumer_may_be_twice(different) -> None:
    assembly, old = Assembly(), named("old", "jack", created_at="2025-01-01T00:00:00Z")
    new = named("new", "jack", created_at="2026-01-01T00:00:00Z", **different)
    for fragment in (new, old):
        assembly.put_fragment(fragment.identity.ref, fragment)
    assert told(assembly, new) == []


# Hosts on listeners of their own


def routed(name: str, created_at: str, *hosts: str, entries: Any = ()) -> Fragment:
    ref = ObjectRef("c", "example.com", "forwards", "shop", name)
    provenance = Provenance(cluster="c", kind="Forward", namespace="shop", name=name)
    route = Route(name=f"c/shop/{name}", path=PathMatch(type=PathType.PREFIX, value="/"), provenance=provenance)
    claims = tuple(RouteClaim(host, route, "spec.host") for host in hosts)
    return Fragment(Identity(ref, "example.com/v1", "Forward", name, created_at), routes=claims, entries=entries)


WEB = Listener(key="c/shop/web", port=8081, protocol="http", provenance=FROM)


def settled(*fragments: Fragment) -> Assembly:
    assembly = Assembly()
    for each in fragments:
        assembly.put_fragment(each.identity.ref, each)
    for _ in assembly.assemble():
        pass
    return assembly


def test_a_host_on_listeners_of_its_own_is_another_than_the_host_on_the_gateways_own() -> None:
    there = str(HostKey("a.com", (WEB.key,)))
    first, second = routed("first", "2024", "a.com"), routed("second", "2025", there, entries=(WEB,))
    assembly = settled(first, second)
    assert {(entry.kind, entry.key) for entry in assembly.changed} == {
        ("listeners", WEB.key),
        ("hosts", "a.com"),
        ("hosts", there),
    }
    found = VirtualHost.model_validate_json(assembly.image.get("hosts", there) or b"")
    assert (found.host, found.listeners, [route.name for route in found.routes]) == (
        "a.com",
        (WEB.key,),
        ["c/shop/second"],
    )
    assert [*assembly.lost_by(first), *assembly.lost_by(second)] == []


def test_on_a_listener_the_oldest_has_the_path_and_the_other_hears_where() -> None:
    there = str(HostKey("a.com", (WEB.key,)))
    first, second = routed("first", "2024", there), routed("second", "2025", there)
    (problem,) = settled(first, second).lost_by(second)
    assert "host a.com on listener c/shop/web" in problem.message


def test_a_route_on_several_listeners_is_in_the_table_once() -> None:
    there = str(HostKey("a.com", ("c/shop/other", WEB.key)))
    assembly = settled(routed("first", "2024", there))
    assert [entry.key for entry in assembly.changed] == ["a.com@c/shop/other,c/shop/web"]


def test_a_group_of_backends_comes_and_goes_with_its_object() -> None:
    split = Weighted(backends=(Backend(upstream="c/shop/one:80"), Backend(upstream="c/shop/two:80", weight=3)))
    group = BackendGroup(key="c/shop/split", weighted=split, provenance=FROM)
    assembly = settled(routed("first", "2024", "a.com", entries=(group,)))
    assert ("backend_groups", group.key) in [(entry.kind, entry.key) for entry in assembly.changed]
    assembly.put_fragment(REF._replace(name="first", group="example.com", resource="forwards"), None)
    assert assembly.image.get("backend_groups", group.key) is None
