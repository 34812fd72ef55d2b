"""Entries that are an object's alone."""

from headgate.common.resources import ObjectRef
from headgate.common.table import Consumer, ConsumerGroup, Provenance
from headgate.translator.assembly import Assembly
from headgate.translator.fragment import Fragment, Identity

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
