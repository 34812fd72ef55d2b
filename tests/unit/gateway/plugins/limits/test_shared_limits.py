"""Limits over the workers of one gateway, that show each other what they count."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.gateway.workers import Workers, workers
from headgate.gateway.plugins.built_in.ai.token_windows import TokenWindows
from headgate.gateway.plugins.built_in.limits.windows import FixedWindows, SlidingWindows
from headgate.gateway.plugins.interface import PluginServices, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.running import Clock, asked, chain, exchanged, request

LIMIT = 10


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def two() -> Iterator[Workers]:
    with workers(2) as sharing:
        yield sharing


def limited(
    sharing: Workers, name: str, config: dict[str, object], clock: Clock, scope: str = "r"
) -> list[PluginChain]:
    return [
        chain((name, config), services=PluginServices(clock=clock, peers=peers), scope=scope) for peers in sharing.peers
    ]


async def statuses(chains: list[PluginChain], turns: str, client: str = "192.0.2.1") -> list[int]:
    """Let workers have requests: `0110` for the first, the second twice, the first."""
    return [(await exchanged(chains[int(turn)], request(client=client))).status for turn in turns]


@pytest.mark.parametrize("kind", ["fixed", "sliding"])
async def test_a_count_holds_for_all_workers_together(two: Workers, clock: Clock, kind: str) -> None:
    clock.now = 1200.0
    chains = limited(two, "limit-count", {"count": 4, "time_window": 60, "window_type": kind}, clock)
    assert await statuses(chains, "0110") == [200] * 4
    assert await statuses(chains, "01") == [503, 503]
    assert await statuses(chains, "1", client="192.0.2.2") == [200]
    clock.now += 120
    assert await statuses(chains, "111100") == [200] * 4 + [503] * 2


async def test_a_window_ends_in_all_workers_when_that_of_the_first_ends(two: Workers, clock: Clock) -> None:
    chains = limited(two, "limit-count", {"count": 2, "time_window": 60}, clock)
    await exchanged(chains[0], request())
    clock.now += 40
    second = await exchanged(chains[1], request())
    assert [second.headers.get(f"X-RateLimit-{name}") for name in ("Remaining", "Reset")] == ["0", "20"]
    clock.now += 20
    assert await statuses(chains, "101") == [200, 200, 503]


async def test_limits_of_other_routes_count_apart(two: Workers, clock: Clock) -> None:
    config = {"count": 1, "time_window": 60}
    here, there = limited(two, "limit-count", config, clock), limited(two, "limit-count", config, clock, scope="s")
    assert await statuses(here, "01") == [200, 503]
    assert await statuses(there, "10") == [200, 503]


async def test_a_rate_holds_for_all_workers_together(two: Workers, clock: Clock) -> None:
    chains = limited(two, "limit-req", {"rate": 1, "burst": 3, "nodelay": True, "key": "remote_addr"}, clock)
    assert await statuses(chains, "01010") == [200, 200, 200, 200, 503]
    clock.now += 2
    assert await statuses(chains, "110") == [200, 200, 503]


async def test_of_several_rates_a_request_that_one_refuses_is_shown_by_none(two: Workers, clock: Clock) -> None:
    config = {"rate": 1, "burst": 0, "nodelay": True, "key": "remote_addr", "also": [{"rate": 1, "burst": 3}]}
    chains = limited(two, "limit-req", config, clock)
    assert await statuses(chains, "01111") == [200, 503, 503, 503, 503]
    clock.now += 1
    assert await statuses(chains, "10") == [200, 503]


async def test_requests_under_way_are_bounded_over_all_workers(two: Workers, clock: Clock) -> None:
    config = {"conn": 2, "burst": 0, "default_conn_delay": 0.1, "key": "remote_addr"}
    chains = limited(two, "limit-conn", config, clock)
    first, second = request(), request()
    assert await asked(chains[0], first) is None
    assert await asked(chains[1], second) is None
    for one in chains:
        refused = await asked(one, request())
        assert isinstance(refused, Response)
        assert refused.status == 503
    chains[0].on_finish(first, 200, 0)
    assert await asked(chains[1], request()) is None


async def test_what_a_killed_worker_had_under_way_is_given_back(two: Workers, clock: Clock) -> None:
    config = {"conn": 1, "burst": 0, "default_conn_delay": 0.1, "key": "remote_addr"}
    chains = limited(two, "limit-conn", config, clock)
    assert await asked(chains[0], request()) is None
    assert await asked(chains[1], request()) is not None
    two.counts.forget(0)
    assert await asked(chains[1], request()) is None


def test_tokens_are_counted_over_all_workers(two: Workers) -> None:
    one, other = (TokenWindows(peers, "tokens") for peers in two.peers)
    one.add("a", 30, 60.0, 1000.0)
    assert other.look("a", 60.0, 1010.0) == (30, 50.0)
    other.add("a", 5, 60.0, 1010.0)
    assert one.look("a", 60.0, 1010.0) == (35, 50.0)
    assert other.look("a", 60.0, 1060.0) == (0, 60.0)
    assert one.look("b", 60.0, 1010.0) == (0, 60.0)


steps = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 20, allow_nan=False)), max_size=120)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_a_fixed_window_lets_as_many_through_as_with_one_worker(turns: list[tuple[int, float]]) -> None:
    alone, now = FixedWindows(), 1000.0
    with workers(3) as sharing:
        together = [FixedWindows(peers, "x") for peers in sharing.peers]
        for worker, passed in turns:
            now += passed
            assert together[worker].take("a", LIMIT, 60.0, now) == alone.take("a", LIMIT, 60.0, now)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_a_sliding_window_lets_as_many_through_as_with_one_worker(turns: list[tuple[int, float]]) -> None:
    alone, now = SlidingWindows(), 1000.0
    with workers(3) as sharing:
        together = [SlidingWindows(peers, "x") for peers in sharing.peers]
        for worker, passed in turns:
            now += passed
            mine, theirs = together[worker].take("a", LIMIT, 60.0, now), alone.take("a", LIMIT, 60.0, now)
            assert (mine[0], mine[2]) == (theirs[0], theirs[2])
            assert abs(mine[1] - theirs[1]) <= 1  # sums of shares are rounded elsewhere
