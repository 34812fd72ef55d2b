"""Maglev's table: even to one entry, nearly minimal in what a change moves, and made in bounded steps."""

from collections import Counter
from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.gateway.balanced import World, chosen
from fakes.gateway.requests import AskedRequest, request
from fakes.gateway.table import endpoint
from headgate.common.table import Balancing, BalancingPolicy, HashKey
from headgate.gateway.balancing.hash_picking import HashedMembers, hash_members
from headgate.gateway.balancing.hashing import NamedWeight
from headgate.gateway.balancing.maglev import Maglev, make_maglev
from headgate.gateway.balancing.picking import Member
from headgate.gateway.model.steps import finish

SIZE = 65_537
BY_USER = (HashKey(source="header", name="X-User"),)


def items(*weights: int) -> list[NamedWeight]:
    return [NamedWeight(b"10.0.0.%d:80" % index, weight) for index, weight in enumerate(weights)]


def maglev(*weights: int, size: int = SIZE) -> Maglev:
    return finish(make_maglev(items(*weights), size))


def entries(table: Maglev, skipped: Collection[int] = ()) -> list[int | None]:
    is_skipped = skipped.__contains__ if skipped else None
    return [table.find(entry, is_skipped) for entry in range(table.size)]


def user(name: str) -> AskedRequest:
    return request(headers={"x-user": name})


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_equal_items_have_equally_many_entries_but_for_one(count: int) -> None:
    counts = Counter(entries(maglev(*[1] * count)))
    assert len(counts) == count
    assert max(counts.values()) - min(counts.values()) <= 1


def test_entries_are_shared_by_weight() -> None:
    counts = Counter(entries(maglev(1, 3, 6, 1000)))
    for index, weight in enumerate((1, 3, 6, 1000)):
        assert counts[index] == pytest.approx(SIZE * weight / 1010, abs=2)


def test_an_item_of_the_least_weight_beside_the_greatest_has_an_entry() -> None:
    assert Counter(entries(maglev(65_535, 65_535, 1)))[2] == 1


def test_what_a_new_item_moves_beyond_its_share_is_little() -> None:
    before, after = entries(maglev(*[1] * 9)), entries(maglev(*[1] * 10))
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert moved.count(9) == pytest.approx(SIZE / 10, abs=1)
    assert len(moved) - moved.count(9) < 0.05 * SIZE


def test_what_the_loss_of_an_item_moves_beyond_its_share_is_little() -> None:
    before, after = entries(maglev(*[1] * 100)), entries(maglev(*[1] * 99))
    moved = [old for old, new in zip(before, after, strict=True) if old != new]
    assert moved.count(99) == pytest.approx(SIZE / 100, abs=1)
    assert len(moved) - moved.count(99) < 0.02 * SIZE


def test_skipping_an_item_moves_its_entries_alone_and_spreads_them() -> None:
    table = maglev(1, 1, 1, 1)
    moved = [
        new for old, new in zip(entries(table), entries(table, skipped=[3]), strict=True) if old == 3 or old != new
    ]
    assert len(moved) == pytest.approx(SIZE / 4, abs=1)
    counts = Counter(moved)
    assert set(counts) == {0, 1, 2}
    assert all(count == pytest.approx(len(moved) / 3, rel=0.05) for count in counts.values())


def test_an_item_is_found_if_all_others_are_skipped_even_without_an_entry() -> None:
    crowd = maglev(*[1] * 500, size=101)
    assert {crowd.find(key, lambda index: index != 499) for key in range(200)} == {499}


@settings(max_examples=30)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(0, 2**64 - 1), st.data())
def test_whoever_is_left_is_found_and_nobody_that_is_skipped(weights: list[int], key: int, data: st.DataObject) -> None:
    table = maglev(*weights, size=101)
    skipped = data.draw(st.sets(st.integers(0, len(weights) - 1)))
    found = table.find(key, skipped.__contains__)
    assert (found is None) == (len(skipped) == len(weights))
    assert found not in skipped


def test_a_table_is_made_in_many_steps() -> None:
    assert len(list(make_maglev(items(1), SIZE))) > 40
    assert len(list(make_maglev(items(*[1] * 3000), SIZE))) > 80


def hashed(numbers: Collection[int], previous: HashedMembers | None = None, size: int = SIZE) -> HashedMembers:
    world = World()
    members = [Member(slot, 1) for slot in world.balancer(*map(endpoint, numbers)).slots]
    balancing = Balancing(policy=BalancingPolicy.MAGLEV, hash=BY_USER, hash_table_size=size)
    return finish(hash_members(members, balancing, previous))


def test_a_table_is_kept_until_endpoints_or_its_size_change() -> None:
    first = hashed([1, 2, 3])
    assert hashed([1, 2, 3], first).table is first.table
    assert hashed([1, 2], first).table is not first.table
    assert hashed([1, 2, 3], first, size=101).table is not first.table


def test_a_table_of_another_policy_is_not_kept() -> None:
    world = World()
    endpoints = [endpoint(number) for number in range(1, 6)]
    ring = world.balancer(*endpoints, policy="ring-hash", hash=BY_USER)
    after_ring = world.balancer(*endpoints, policy="maglev", hash=BY_USER, previous=ring)
    alone = World().balancer(*endpoints, policy="maglev", hash=BY_USER)
    names = [user(str(name)) for name in range(40)]
    assert [chosen(after_ring, name) for name in names] == [chosen(alone, name) for name in names]


def test_a_size_is_a_prime_and_of_maglev() -> None:
    with pytest.raises(ValueError, match="65536 is no prime"):
        Balancing(policy=BalancingPolicy.MAGLEV, hash=BY_USER, hash_table_size=65_536)
    with pytest.raises(ValueError, match="takes no hash_table_size"):
        Balancing(policy=BalancingPolicy.RING_HASH, hash=BY_USER, hash_table_size=101)
