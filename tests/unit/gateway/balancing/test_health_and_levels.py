"""Who gets requests while some endpoints are unhealthy, far away, for emergencies, or new."""

import gc
import weakref
from unittest import mock

import pytest

from fakes.gateway.balanced import KEY, World, chosen, number, slot_of, tally
from fakes.gateway.requests import PLAIN, request
from fakes.gateway.table import endpoint
from headgate.common.table import Endpoint, HashKey
from headgate.gateway.balancing import hash_picking
from headgate.gateway.balancing.levels import Place
from headgate.gateway.balancing.upstream import UpstreamBalancer, UpstreamHolder

POLICIES = ["round-robin", "random", "least-requests", "peak-ewma"]


def at(number: int, **fields: object) -> Endpoint:
    return endpoint(number).model_copy(update=fields)


@pytest.mark.parametrize("policy", POLICIES)
def test_unhealthy_and_ejected_endpoints_get_nothing(policy: str) -> None:
    world = World()
    balancer = world.balancer(*(endpoint(n) for n in range(1, 5)), policy=policy)
    slot_of(balancer, 2).mark(is_healthy=False)
    slot_of(balancer, 3).mark(ejected_until=world.clock() + 30)
    assert set(tally(balancer, 60)) == {1, 4}


@pytest.mark.parametrize("policy", POLICIES)
def test_an_ejection_ends_by_itself(policy: str) -> None:
    world = World()
    balancer = world.balancer(*(endpoint(n) for n in range(1, 5)), policy=policy)
    slot_of(balancer, 3).mark(ejected_until=world.clock() + 30)
    world.clock.now += 29.9
    assert set(tally(balancer, 60)) == {1, 2, 4}
    world.clock.now += 0.1
    assert set(tally(balancer, 60)) == {1, 2, 3, 4}


def test_an_ejection_can_be_lifted_early() -> None:
    world = World()
    balancer = world.balancer(*(endpoint(n) for n in range(1, 4)))
    slot_of(balancer, 3).mark(ejected_until=world.clock() + 30)
    slot_of(balancer, 3).mark(ejected_until=0.0)
    assert tally(balancer, 9) == {1: 3, 2: 3, 3: 3}


def test_a_mark_reaches_all_upstreams_that_share_the_endpoint() -> None:
    world = World()
    first, second = world.balancer(endpoint(1), endpoint(2)), world.balancer(endpoint(1), endpoint(3))
    slot_of(first, 1).mark(is_healthy=False)
    assert set(tally(first, 4)) == {2}
    assert set(tally(second, 4)) == {3}


def test_an_endpoint_knows_the_living_of_many_upstreams() -> None:
    world = World()
    kept = []
    for _ in range(40):
        kept.append(world.balancer(endpoint(1), endpoint(2)))
        world.balancer(endpoint(1), endpoint(2))
    slot_of(kept[0], 1).mark(is_healthy=False)
    assert all(set(tally(balancer, 4)) == {2} for balancer in kept)


def test_an_upstream_can_take_an_endpoint_out_for_itself() -> None:
    world = World()
    holder, other = UpstreamHolder(KEY), world.balancer(endpoint(1), endpoint(3))
    holder.balancer = world.balancer(endpoint(1), endpoint(2))
    slot = slot_of(holder.balancer, 1)
    holder.mark(slot, is_available=False)
    assert set(tally(holder.balancer, 4)) == {2}
    assert set(tally(other, 4)) == {1, 3}
    holder.mark(slot, is_available=True)
    assert set(tally(holder.balancer, 4)) == {1, 2}


def test_what_an_upstream_took_out_stays_out_in_the_next_revision() -> None:
    world = World()
    holder = UpstreamHolder(KEY)
    holder.balancer = world.balancer(endpoint(1), endpoint(2))
    staged = world.balancer(endpoint(1), endpoint(2), endpoint(3), previous=holder.balancer)
    holder.mark(slot_of(holder.balancer, 1), is_available=False)
    assert set(tally(staged, 6)) == {2, 3}


def test_a_mark_that_changes_nothing_keeps_the_plan() -> None:
    world = World()
    balancer = world.balancer(endpoint(1), endpoint(2), endpoint(3))
    slot_of(balancer, 2).mark(is_healthy=False)
    chosen(balancer)
    planned = world.clock.readings
    slot_of(balancer, 1).mark(is_healthy=True, ejected_until=0.0)
    chosen(balancer)
    assert world.clock.readings == planned > 0


def test_equal_endpoints_are_planned_only_once_one_is_out() -> None:
    world = World()
    first = world.balancer(*(endpoint(n) for n in range(1, 5)))
    assert [chosen(first), world.clock.readings] == [1, 0]
    slot_of(first, 3).mark(is_healthy=False)
    assert [chosen(first) for _ in range(3)] == [2, 4, 1]
    second = world.balancer(*(endpoint(n) for n in range(1, 5)), previous=first)
    assert [chosen(second) for _ in range(3)] == [2, 4, 1]
    slot_of(second, 3).mark(is_healthy=True)
    assert chosen(second) == 2
    planned = world.clock.readings
    third = world.balancer(*(endpoint(n) for n in range(1, 5)), previous=second)
    assert [chosen(third) for _ in range(4)] == [3, 4, 1, 2]
    assert world.clock.readings == planned


def test_turns_go_on_when_health_changes() -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 5)))
    assert [chosen(balancer), chosen(balancer)] == [1, 2]
    slot_of(balancer, 1).mark(is_healthy=False)
    assert [chosen(balancer) for _ in range(3)] == [3, 4, 2]


def test_the_clock_is_not_asked_while_all_are_healthy() -> None:
    world = World()
    balancer = world.balancer(endpoint(1), endpoint(2))
    assert balancer.choose((), PLAIN) is not None
    assert world.clock.readings == 0


def test_health_is_ignored_when_too_few_are_healthy() -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 4)))
    for n in (1, 2):
        slot_of(balancer, n).mark(is_healthy=False)
    assert tally(balancer, 9) == {1: 3, 2: 3, 3: 3}


def test_without_panic_nobody_healthy_is_a_refusal_that_says_so() -> None:
    balancer = World().balancer(endpoint(1), endpoint(2), panic_threshold=0)
    for slot in balancer.slots:
        slot.mark(is_healthy=False)
    assert balancer.choose((), PLAIN) is None
    assert balancer.unavailable == f"none of the 2 endpoints of {KEY} that are ready is healthy"
    slot_of(balancer, 2).mark(is_healthy=True)
    assert balancer.unavailable == ""


@pytest.mark.parametrize("policy", POLICIES)
def test_the_second_level_waits_until_the_first_is_too_weak(policy: str) -> None:
    level = [at(n) for n in range(1, 5)] + [at(n, priority=1) for n in range(5, 9)]
    balancer = World().balancer(*level, policy=policy)
    assert max(tally(balancer, 200)) <= 4
    for n in (1, 2):
        slot_of(balancer, n).mark(is_healthy=False)
    counts = tally(balancer, 1000)
    assert sum(count for n, count in counts.items() if n > 4) == 300
    assert set(counts) == {3, 4, 5, 6, 7, 8}


def test_load_comes_back_to_a_level_that_recovers() -> None:
    balancer = World().balancer(at(1), at(2, priority=1))
    slot_of(balancer, 1).mark(is_healthy=False)
    assert tally(balancer, 5) == {2: 5}
    slot_of(balancer, 1).mark(is_healthy=True)
    assert tally(balancer, 5) == {1: 5}


def test_a_retry_leaves_a_level_that_was_tried() -> None:
    balancer = World().balancer(at(1), at(2), at(3, priority=1))
    slot_of(balancer, 1).mark(is_healthy=False)
    assert {number(balancer.pick([slot_of(balancer, 2)], PLAIN)) for _ in range(20)} == {3}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_retry_goes_to_a_level_that_gets_nothing_else_when_all_others_were_tried(policy: str) -> None:
    world = World()
    balancer = world.balancer(endpoint(1), at(2, priority=1), at(3, priority=1), at(4, priority=2), policy=policy)
    slots = {number(slot): slot for slot in balancer.slots}
    slots[2].mark(is_healthy=False)
    assert [number(balancer.pick([slots[1]], PLAIN)) for _ in range(5)] == [3] * 5
    assert number(balancer.pick([slots[1], slots[3]], PLAIN)) == 4
    assert number(balancer.pick([slots[1], slots[3], slots[4]], PLAIN)) == 1


def test_a_retry_after_all_levels_were_tried_still_finds_somebody() -> None:
    balancer = World().balancer(at(1), at(2), at(3, priority=1))
    slot_of(balancer, 1).mark(is_healthy=False)
    assert number(balancer.pick(balancer.slots, PLAIN)) in (2, 3)


def test_the_turns_of_levels_go_on_when_health_changes() -> None:
    balancer = World().balancer(at(1), at(2), at(3, priority=1), at(4, priority=1))
    slot_of(balancer, 1).mark(is_healthy=False)
    seen = []
    for turn in range(1000):
        seen.append(chosen(balancer))
        slot_of(balancer, 4).mark(is_healthy=turn % 2 == 0)
    assert seen.count(2) == pytest.approx(700, abs=1)


def test_hashing_shares_keys_among_levels_and_keeps_them_there() -> None:
    endpoints = [at(1), at(2), at(3, priority=1), at(4, priority=1)]
    balancer = World().balancer(*endpoints, policy="ring-hash", hash=(HashKey(source="header", name="u"),))
    slot_of(balancer, 1).mark(is_healthy=False)
    users = [request(headers={"u": str(n)}) for n in range(400)]
    once = [chosen(balancer, who) for who in users]
    assert [chosen(balancer, who) for who in users] == once
    assert once.count(2) == pytest.approx(280, abs=35)
    assert set(once) == {2, 3, 4}


def test_the_own_zone_is_preferred_then_the_own_cluster() -> None:
    world = World(place=Place("z1", "c1"))
    near = at(1, zone="z1", cluster="c1")
    same_cluster, far = at(2, zone="z2", cluster="c1"), at(3, zone="z1", cluster="c2")
    balancer = world.balancer(near, same_cluster, far, locality="zone")
    assert tally(balancer, 4) == {1: 4}
    slot_of(balancer, 1).mark(is_healthy=False)
    assert tally(balancer, 4) == {2: 4}
    slot_of(balancer, 2).mark(is_healthy=False)
    assert tally(balancer, 4) == {3: 4}


def test_what_the_own_zone_cannot_carry_overflows() -> None:
    world = World(place=Place("z1", "c1"))
    own = [at(n, zone="z1", cluster="c1") for n in (1, 2)]
    balancer = world.balancer(*own, at(3, zone="z2", cluster="c1"), locality="zone")
    slot_of(balancer, 1).mark(is_healthy=False)
    assert tally(balancer, 1000) == {2: 700, 3: 300}


def test_failover_levels_come_before_nearness() -> None:
    world = World(place=Place("z1", "c1"))
    balancer = world.balancer(at(1, cluster="c1", priority=1), at(2, cluster="c2"), locality="cluster")
    assert tally(balancer, 4) == {2: 4}


def test_without_locality_zones_do_not_matter() -> None:
    world = World(place=Place("z1", "c1"))
    assert tally(world.balancer(at(1, zone="z1"), at(2, zone="z2")), 4) == {1: 2, 2: 2}


def share_of(balancer: object, wanted: int) -> float:
    return tally(balancer, 1100).get(wanted, 0) / 1100  # type: ignore[arg-type]


def test_a_new_endpoint_starts_slowly_and_grows_to_its_weight() -> None:
    world = World()
    first = world.balancer(endpoint(1), slow_start_s=60)
    balancer = world.balancer(endpoint(1), endpoint(2), slow_start_s=60, previous=first)
    assert share_of(balancer, 2) == pytest.approx(0.1 / 1.1, abs=0.002)
    world.clock.now += 30
    assert share_of(balancer, 2) == pytest.approx(0.5 / 1.5, abs=0.002)
    world.clock.now += 30
    assert share_of(balancer, 2) == pytest.approx(0.5, abs=0.002)
    readings = world.clock.readings
    assert share_of(balancer, 2) == pytest.approx(0.5, abs=0.002)
    assert world.clock.readings == readings  # nothing has to be planned any more


def test_the_endpoints_of_a_new_upstream_are_warm() -> None:
    assert tally(World().balancer(endpoint(1), endpoint(2), slow_start_s=60), 10) == {1: 5, 2: 5}


def test_endpoints_are_warm_when_slow_start_is_switched_on() -> None:
    world = World()
    first = world.balancer(endpoint(1), endpoint(2))
    assert tally(world.balancer(endpoint(1), endpoint(2), slow_start_s=60, previous=first), 10) == {1: 5, 2: 5}


def test_an_endpoint_that_recovers_starts_slowly() -> None:
    world = World()
    balancer = world.balancer(*(endpoint(n) for n in range(1, 4)), slow_start_s=60)
    slot_of(balancer, 3).mark(is_healthy=False)
    assert 3 not in tally(balancer, 10)
    slot_of(balancer, 3).mark(is_healthy=True)
    assert share_of(balancer, 3) == pytest.approx(0.1 / 2.1, abs=0.002)


def test_a_slow_start_goes_on_over_a_swap() -> None:
    world = World()
    first = world.balancer(endpoint(1), slow_start_s=60)
    second = world.balancer(endpoint(1), endpoint(2), slow_start_s=60, previous=first)
    world.clock.now += 30
    third = world.balancer(endpoint(1), endpoint(2), slow_start_s=60, previous=second)
    assert share_of(third, 2) == pytest.approx(0.5 / 1.5, abs=0.002)


def test_latency_and_load_survive_a_swap() -> None:
    world = World()
    first = world.balancer(endpoint(1), endpoint(2), policy="peak-ewma")
    world.took(slot_of(first, 1), 0.5)
    world.took(slot_of(first, 2), 0.1)
    assert tally(world.balancer(endpoint(1), endpoint(2), policy="peak-ewma", previous=first), 10) == {2: 10}


def test_a_hash_table_is_made_once_while_the_endpoints_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    made = mock.Mock(wraps=hash_picking.make_ring)
    monkeypatch.setattr(hash_picking, "make_ring", made)
    world, by_path = World(), (HashKey(source="path"),)
    first = world.balancer(endpoint(1), endpoint(2), policy="ring-hash", hash=by_path)
    second = world.balancer(endpoint(1), endpoint(2), policy="ring-hash", hash=by_path, previous=first)
    assert made.call_count == 1
    world.balancer(endpoint(1), endpoint(3), policy="ring-hash", hash=by_path, previous=second)
    assert made.call_count == 2


def test_a_hash_table_is_not_kept_for_another_policy() -> None:
    world, by_path = World(), (HashKey(source="path"),)
    endpoints = [endpoint(number) for number in range(1, 9)]
    ring = world.balancer(*endpoints, policy="ring-hash", hash=by_path)
    after_ring = world.balancer(*endpoints, policy="rendezvous", hash=by_path, previous=ring)
    alone = World().balancer(*endpoints, policy="rendezvous", hash=by_path)
    paths = [request(f"/{number}") for number in range(50)]
    owners = [[chosen(balancer, path) for path in paths] for balancer in (ring, after_ring, alone)]
    assert owners[0] != owners[1] == owners[2]


def test_replaced_revisions_and_their_endpoints_are_freed() -> None:
    world = World()
    first = world.balancer(endpoint(1), endpoint(2), policy="peak-ewma", slow_start_s=60)
    slot_of(first, 2).mark(is_healthy=False)
    chosen(first)
    old, gone = weakref.ref(first), weakref.ref(slot_of(first, 2))
    gc.disable()
    try:
        second = world.balancer(endpoint(1), endpoint(3), policy="peak-ewma", slow_start_s=60, previous=first)
        second.mark(slot_of(second, 3), is_available=False)
        chosen(second)
        del first
        assert old() is None
        assert gone() is None
    finally:
        gc.enable()


class Followed(weakref.ref[UpstreamBalancer]):
    """A reference that can itself be referred to weakly."""


@pytest.mark.parametrize("kept", [1, 40])
def test_a_slot_forgets_balancers_that_are_gone(kept: int) -> None:
    world = World()
    balancer = world.balancer(endpoint(1))
    slot, others = slot_of(balancer, 1), [world.balancer(endpoint(2)) for _ in range(kept)]

    def add(user: UpstreamBalancer) -> weakref.ref[Followed]:
        followed = Followed(user)
        slot.add_user((followed,))
        return weakref.ref(followed)

    references = [add(user) for user in others] + [add(world.balancer(endpoint(2))) for _ in range(9 * kept)]
    assert sum(reference() is not None for reference in references) <= 2 * kept + 2
