"""The policies that do not look at the request."""

from random import Random

import pytest

from fakes.gateway.balanced import World, chosen, number, slot_of, tally
from fakes.gateway.requests import PLAIN, request
from fakes.gateway.table import FakePools, endpoint
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.balancing.latency import DECAY_S, PeakLatency
from headgate.gateway.balancing.picking import Lottery, Member
from headgate.gateway.model.connection import ConnectionSpec

POLICIES = ["round-robin", "random", "least-requests", "peak-ewma"]


def members(*weights: int) -> list[Member]:
    directory = EndpointDirectory(FakePools())  # type: ignore[arg-type]
    return [Member(directory.slot(f"10.0.0.{n}", 80, ConnectionSpec()), w) for n, w in enumerate(weights, 1)]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_reaches_all_endpoints_and_nobody_else(policy: str) -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 6)), endpoint(9, weight=0), policy=policy)
    assert set(tally(balancer, 300)) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_repeats_a_tried_endpoint_while_there_is_another(policy: str) -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 4)), policy=policy)
    tried = [slot_of(balancer, 1), slot_of(balancer, 3)]
    assert {number(balancer.pick(tried, PLAIN)) for _ in range(50)} == {2}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_repeats_a_tried_endpoint_rather_than_refuse(policy: str) -> None:
    balancer = World().balancer(endpoint(1), endpoint(2), policy=policy)
    assert number(balancer.pick(balancer.slots, PLAIN)) in (1, 2)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_serves_a_single_endpoint(policy: str) -> None:
    assert tally(World().balancer(endpoint(4), policy=policy), 5) == {4: 5}


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_looks_at_the_request(policy: str) -> None:
    asking = request()
    tally(World().balancer(endpoint(1), endpoint(2), policy=policy), 10, asking)
    assert not asking.looked_at


def test_random_choices_keep_weights() -> None:
    counts = tally(World().balancer(endpoint(1, weight=3), endpoint(2), policy="random"), 4000)
    assert counts[1] == pytest.approx(3000, abs=120)


def test_random_choices_keep_weights_among_those_that_are_left() -> None:
    all_members = members(5, 3, 1)
    lottery = Lottery(all_members, Random(3))
    draws = [lottery.draw([all_members[0].slot]) for _ in range(4000)]
    assert sum(draw is all_members[1] for draw in draws) == pytest.approx(3000, abs=120)
    assert all_members[0] not in draws


def test_a_lottery_finds_the_last_one_that_is_left() -> None:
    all_members = members(1_000_000, 1)
    assert Lottery(all_members, Random(3)).draw([all_members[0].slot]) is all_members[1]


def test_least_requests_never_chooses_the_busier_of_two() -> None:
    balancer = World().balancer(endpoint(1), endpoint(2), policy="least-requests")
    slot_of(balancer, 1).sessions = 1
    assert tally(balancer, 20) == {2: 20}


def test_least_requests_counts_what_is_under_way_on_pools() -> None:
    balancer = World().balancer(endpoint(1), endpoint(2), policy="least-requests")
    slot_of(balancer, 2).open_pool().in_flight = 3
    assert tally(balancer, 20) == {1: 20}


def test_least_requests_allows_for_weights() -> None:
    balancer = World().balancer(endpoint(1, weight=4), endpoint(2), policy="least-requests")
    slot_of(balancer, 1).sessions = 3
    slot_of(balancer, 2).sessions = 1
    assert tally(balancer, 20) == {1: 20}


def test_least_requests_keeps_weights_while_nothing_is_under_way() -> None:
    balancer = World().balancer(endpoint(1, weight=3), endpoint(2), policy="least-requests")
    assert tally(balancer, 4000)[1] == pytest.approx(3000, abs=120)


def test_least_requests_evens_out_requests_that_last() -> None:
    balancer = World().balancer(*(endpoint(n) for n in range(1, 11)), policy="least-requests")
    for _ in range(1000):
        slot = balancer.pick((), PLAIN)
        assert slot is not None
        slot.sessions += 1
    counts = [slot.sessions for slot in balancer.slots]
    assert max(counts) - min(counts) <= 6


def test_peak_ewma_prefers_the_faster_of_two() -> None:
    world = World()
    balancer = world.balancer(endpoint(1), endpoint(2), policy="peak-ewma")
    world.took(slot_of(balancer, 1), 0.2)
    world.took(slot_of(balancer, 2), 0.1)
    assert tally(balancer, 20) == {2: 20}


def test_peak_ewma_turns_to_the_slower_when_the_faster_has_a_queue() -> None:
    world = World()
    balancer = world.balancer(endpoint(1), endpoint(2), policy="peak-ewma")
    world.took(slot_of(balancer, 1), 0.3)
    world.took(slot_of(balancer, 2), 0.1)
    slot_of(balancer, 2).sessions = 3
    assert chosen(balancer) == 1


def test_a_new_endpoint_begins_with_the_mean_latency() -> None:
    world = World()
    first = world.balancer(endpoint(1), endpoint(2), policy="peak-ewma")
    world.took(slot_of(first, 1), 0.1)
    world.took(slot_of(first, 2), 0.3)
    second = world.balancer(endpoint(1), endpoint(2), endpoint(3), policy="peak-ewma", previous=first)
    latency = slot_of(second, 3).latency
    assert latency is not None
    assert latency.expected(world.clock()) == pytest.approx(0.2)


def test_latency_is_not_kept_for_upstreams_that_do_not_ask() -> None:
    slot = slot_of(World().balancer(endpoint(1)), 1)
    assert slot.latency is None
    assert slot.open_pool().latency is None


def test_latency_jumps_up_and_comes_down_slowly() -> None:
    latency = PeakLatency(0.1, 0.0)
    latency.observe(1.0, 0.0)
    assert latency.expected(0.0) == 1.0
    latency.observe(0.1, 1.0)
    assert 0.9 < latency.expected(1.0) < 1.0


def test_latency_of_an_idle_endpoint_is_forgotten() -> None:
    latency = PeakLatency(1.0, 0.0)
    assert latency.expected(DECAY_S) == pytest.approx(0.368, abs=0.001)
    assert latency.expected(-5.0) == 1.0
