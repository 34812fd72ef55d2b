"""Consistent hashing: even, stable, and the same on every gateway."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.gateway.balanced import World, chosen, number, slot_of, tally
from fakes.gateway.requests import PLAIN, AskedRequest, request
from fakes.gateway.table import endpoint
from headgate.common.table import HashKey
from headgate.gateway.balancing.hashing import (
    MAX_POINTS,
    ConsistentTable,
    NamedWeight,
    RequestHash,
    hash_bytes,
    level_of,
    make_rendezvous,
    make_ring,
    point_counts,
)
from headgate.gateway.balancing.maglev import make_maglev
from headgate.gateway.model.steps import finish


def ring(items: Sequence[NamedWeight], previous: ConsistentTable | None = None) -> ConsistentTable:
    return finish(make_ring(items, previous))


def rendezvous(items: Sequence[NamedWeight]) -> ConsistentTable:
    return finish(make_rendezvous(items))


def maglev(items: Sequence[NamedWeight]) -> ConsistentTable:
    return finish(make_maglev(items, 65_537))


Make = Callable[[Sequence[NamedWeight]], ConsistentTable]
TABLES = [ring, rendezvous]
ALL_TABLES = [*TABLES, maglev]
KEYS = [hash_bytes(b"%d" % number) for number in range(4000)]
BY_USER = (HashKey(source="header", name="X-User"),)
RING_OWNERS = [1, 1, 2, 1, 2, 0, 1, 1, 1, 1, 0, 0]
RENDEZVOUS_OWNERS = [2, 2, 2, 0, 1, 2, 1, 2, 2, 0, 1, 1]
MAGLEV_OWNERS = [1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0]
HASHING = ["ring-hash", "rendezvous", "maglev"]


def items(*weights: int) -> list[NamedWeight]:
    return [NamedWeight(b"10.0.0.%d:80" % index, weight) for index, weight in enumerate(weights)]


def owners(table: ConsistentTable, skipped: Sequence[int] = ()) -> list[int | None]:
    return [table.find(key, lambda index: index in skipped) for key in KEYS]


def user(name: str) -> AskedRequest:
    return request(headers={"x-user": name})


@pytest.mark.parametrize("make", ALL_TABLES)
def test_keys_spread_evenly(make: Make) -> None:
    counts = Counter(owners(make(items(*[1] * 10))))
    assert all(count == pytest.approx(400, rel=0.3) for count in counts.values())


@pytest.mark.parametrize("make", ALL_TABLES)
def test_keys_spread_by_weight(make: Make) -> None:
    counts = Counter(owners(make(items(300, 100))))
    assert counts[0] == pytest.approx(3000, rel=0.1)


@pytest.mark.parametrize("make", TABLES)
def test_a_new_item_takes_its_share_and_moves_nothing_else(make: Make) -> None:
    before, after = owners(make(items(*[1] * 9))), owners(make(items(*[1] * 10)))
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {9}
    assert len(moved) == pytest.approx(400, rel=0.3)


@pytest.mark.parametrize("make", TABLES)
def test_skipping_an_item_moves_what_removing_it_moves(make: Make) -> None:
    assert owners(make(items(1, 1, 1, 1)), skipped=[3]) == owners(make(items(1, 1, 1)))


@pytest.mark.parametrize("make", ALL_TABLES)
def test_nobody_is_found_if_all_are_skipped_or_there_is_none(make: Make) -> None:
    assert make(items(1, 1)).find(5, lambda index: True) is None
    assert make([]).find(5, lambda index: False) is None


def test_both_ends_of_the_ring_have_an_owner() -> None:
    both = ring(items(1, 1))
    assert both.find(0, lambda index: False) is not None
    assert both.find(0xFFFFFFFF, lambda index: False) is not None


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3)), unique_by=lambda item: item[0]), st.data())
def test_a_ring_made_from_another_is_the_one_that_is_made_anew(
    before: list[tuple[int, int]], data: st.DataObject
) -> None:
    after = data.draw(st.permutations(before).map(lambda kept: [*kept[: len(kept) // 2], (99, 2)]))
    old, new = ([NamedWeight(b"%d" % name, weight) for name, weight in some] for some in (before, after))
    assert owners(ring(new, ring(old))) == owners(ring(new))


def test_items_of_one_name_do_not_multiply_from_ring_to_ring() -> None:
    twins = [NamedWeight(b"%d" % (index // 2), 1) for index in range(40)]
    last = ring(twins)
    for _ in range(3):
        last = ring(twins, last)
    assert owners(last) == owners(ring(twins))


def test_a_ring_of_thousands_is_made_in_many_steps() -> None:
    thousands = items(*[1] * 5000)
    assert len(list(make_ring(thousands))) > 20
    assert len(list(make_ring(thousands[:-1], ring(thousands)))) > 10


def test_hashing_is_the_same_in_every_process_and_version() -> None:
    assert [ring(items(1, 1, 1)).find(key, lambda index: False) for key in KEYS[:12]] == RING_OWNERS
    assert [rendezvous(items(1, 1, 1)).find(key, lambda index: False) for key in KEYS[:12]] == RENDEZVOUS_OWNERS
    assert [maglev(items(1, 1, 1)).find(key) for key in KEYS[:12]] == MAGLEV_OWNERS


def test_points_are_160_for_a_unit_of_weight() -> None:
    assert point_counts(items(1, 2)) == [160, 320]
    assert point_counts(items(100, 200)) == [160, 320]


def test_a_ring_has_a_greatest_size() -> None:
    assert sum(point_counts(items(65535, 1, 30000))) == pytest.approx(MAX_POINTS, abs=2)
    assert min(point_counts(items(*[65535] * 3, 1))) == 1


@pytest.mark.parametrize("policy", HASHING)
def test_a_client_stays_with_its_endpoint(policy: str) -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 6)), policy=policy, hash=BY_USER)
    for name in ("ann", "bob", "cid"):
        assert len(tally(balancer, 5, user(name))) == 1
    assert len({chosen(balancer, user(str(n))) for n in range(60)}) == 5


@pytest.mark.parametrize("policy", HASHING)
def test_requests_without_a_key_take_turns(policy: str) -> None:
    balancer = World().balancer(endpoint(1), endpoint(2), endpoint(3), policy=policy, hash=BY_USER)
    assert tally(balancer, 30, request()) == {1: 10, 2: 10, 3: 10}


@pytest.mark.parametrize("policy", HASHING)
def test_only_the_clients_of_an_unhealthy_endpoint_move_and_they_come_back(policy: str) -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 5)), policy=policy, hash=BY_USER)
    users = [user(str(n)) for n in range(80)]
    before = [chosen(balancer, who) for who in users]
    slot_of(balancer, 2).mark(is_healthy=False)
    during = [chosen(balancer, who) for who in users]
    assert {old for old, new in zip(before, during, strict=True) if old != new} == {2}
    assert 2 not in during
    slot_of(balancer, 2).mark(is_healthy=True)
    assert [chosen(balancer, who) for who in users] == before


@pytest.mark.parametrize("policy", HASHING)
def test_a_retry_goes_to_the_next_endpoint(policy: str) -> None:
    balancer = World().balancer(endpoint(1), endpoint(2), policy=policy, hash=BY_USER)
    first = balancer.pick((), user("ann"))
    assert first is not None
    assert number(balancer.pick([first], user("ann"))) == 3 - number(first)
    assert balancer.pick(balancer.slots, user("ann")) is first


@pytest.mark.parametrize("policy", HASHING)
def test_a_subset_shares_the_requests_of_a_client(policy: str) -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 10)), policy=policy, hash=BY_USER, subset_size=3)
    subsets = {frozenset(tally(balancer, 60, user(str(n)))) for n in range(30)}
    assert subsets == {frozenset({1, 2, 3}), frozenset({4, 5, 6}), frozenset({7, 8, 9})}


def test_the_last_subset_is_filled_up_with_the_first_endpoints() -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 5)), policy="ring-hash", hash=BY_USER, subset_size=3)
    subsets = {frozenset(tally(balancer, 60, user(str(n)))) for n in range(30)}
    assert subsets == {frozenset({1, 2, 3}), frozenset({4, 1, 2})}


def test_a_subset_without_healthy_endpoints_hands_its_clients_on() -> None:
    balancer = World().balancer(
        *(endpoint(n) for n in range(1, 5)), policy="ring-hash", hash=BY_USER, subset_size=2, panic_threshold=0
    )
    for n in (1, 2):
        slot_of(balancer, n).mark(is_healthy=False)
    assert {chosen(balancer, user(str(n))) for n in range(40)} == {3, 4}


@pytest.mark.parametrize(
    ("source", "name", "changed"),
    [
        ("header", "X-User", request("/a?q=1", headers={"X-User": "bob", "Cookie": "c=1"})),
        ("cookie", "c", request("/a?q=1", headers={"X-User": "ann", "Cookie": "c=2"})),
        ("query", "q", request("/a?q=2", headers={"X-User": "ann", "Cookie": "c=1"})),
        ("client", "", request("/a?q=1", headers={"X-User": "ann", "Cookie": "c=1"}, client="192.0.2.9")),
        ("host", "", request("/a?q=1", headers={"X-User": "ann", "Cookie": "c=1"}, host="bar.com")),
        ("path", "", request("/b?q=1", headers={"X-User": "ann", "Cookie": "c=1"})),
        ("uri", "", request("/a?q=2", headers={"X-User": "ann", "Cookie": "c=1"})),
        ("query-string", "", request("/a?q=2", headers={"X-User": "ann", "Cookie": "c=1"})),
        ("consumer", "", request("/a?q=1", headers={"X-User": "ann", "Cookie": "c=1"}, client="192.0.2.9")),
    ],
)
def test_a_hash_depends_on_its_keys_alone(source: str, name: str, changed: AskedRequest) -> None:
    base = request("/a?q=1", headers={"X-User": "ann", "Cookie": "c=1"})
    others = {"header": "X-Other", "cookie": "d", "query": "r"}
    by_key = RequestHash([HashKey(source=source, name=name)])
    assert by_key.of(base) is not None
    assert by_key.of(base) != by_key.of(changed)
    if source in others:
        assert RequestHash([HashKey(source=source, name=others[source])]).of(base) is None


def test_the_path_is_hashed_without_the_query() -> None:
    by_path = RequestHash([HashKey(source="path")])
    assert by_path.of(request("/a?q=1")) == by_path.of(request("/a?q=2"))


def test_a_consumer_is_hashed_wherever_it_comes_from() -> None:
    by_consumer = RequestHash([HashKey(source="consumer")])
    ann, same, bob = request(client="192.0.2.1"), request(client="192.0.2.2"), request(client="192.0.2.1")
    for asked, name in ((ann, b"ann"), (same, b"ann"), (bob, b"bob")):
        asked.facts().consumer = name
    assert by_consumer.of(ann) == by_consumer.of(same)
    assert by_consumer.of(ann) != by_consumer.of(bob)


def test_keys_are_joined_and_one_of_them_is_enough() -> None:
    by_both = RequestHash([HashKey(source="header", name="a"), HashKey(source="header", name="b")])
    assert by_both.of(request(headers={"A": "x"})) != by_both.of(request(headers={"B": "x"}))
    assert by_both.of(request(headers={"A": "xy"})) != by_both.of(request(headers={"A": "x", "B": "y"}))
    assert by_both.of(PLAIN) is None


def test_keys_are_shared_among_levels_by_their_load() -> None:
    counts = Counter(level_of(key, [0.7, 0.0, 0.3]) for key in KEYS)
    assert counts[0] == pytest.approx(2800, abs=120)
    assert counts[2] == pytest.approx(1200, abs=120)
    assert level_of(0xFFFF, [0.0, 1e-18]) == 1
