"""Entries that are an object's alone."""

import pytest

from headgate.common.resources import ObjectRef
from headgate.common.sealing import ClusterValue
from headgate.common.table import Consumer, ConsumerGroup, Credential, PluginUse, Provenance
from headgate.translator.assembly.assembly import Assembly
from headgate.translator.fragments.fragment import Fragment, Identity

REF = ObjectRef("c", "apisix.apache.org", "apisixconsumers", "shop", "jack")
FROM = Provenance(cluster="c", kind="ApisixConsumer", namespace="shop", name="jack")
JACK = Consumer(key="c/shop/jack", name="shop_jack", provenance=FROM)
GOLD = ConsumerGroup(key="c/shop/gold", name="gold", provenance=FROM)


def fragment(*own: Consumer | ConsumerGroup) -> Fragment:
    return Fragment(Identity(REF, "apisix.apache.org/v2", "ApisixConsumer", "uid"), own=own)


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
    return Fragment(Identity(ref, "apisix.apache.org/v2", "ApisixConsumer", "uid", created_at), own=(made,))


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
