"""How load is shared among levels, as Envoy's documentation of priority levels works it out."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.balancing.levels import Place, nearness, share_load

LEVELS = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)).map(lambda p: (p[0], min(p))), min_size=1)


@pytest.mark.parametrize(
    ("healthy", "expected"),
    [
        ((100, 100), (1.0, 0.0)),
        ((72, 100), (1.0, 0.0)),
        ((71, 100), (0.994, 0.006)),
        ((50, 100), (0.7, 0.3)),
        ((25, 100), (0.35, 0.65)),
        ((0, 100), (0.0, 1.0)),
        ((50, 50), (0.7, 0.3)),
        ((25, 25), (0.5, 0.5)),
        ((100, 0), (1.0, 0.0)),
    ],
)
def test_load_overflows_as_in_envoy(healthy: tuple[int, int], expected: tuple[float, float]) -> None:
    loads = share_load([(100, healthy[0]), (100, healthy[1])], 0.0)
    assert [load.share for load in loads] == pytest.approx(expected)
    assert not any(load.ignores_health for load in loads)


def test_nobody_panics_while_the_levels_together_carry_the_load() -> None:
    assert not share_load([(10, 1), (10, 10)], 0.5)[0].ignores_health


def test_a_level_below_the_threshold_panics_when_there_is_too_little_of_all() -> None:
    loads = share_load([(10, 4), (10, 1)], 0.3)
    assert [load.ignores_health for load in loads] == [False, True]
    assert [load.share for load in loads] == pytest.approx([0.8, 0.2])


def test_levels_that_all_panic_share_by_their_endpoints() -> None:
    loads = share_load([(30, 1), (10, 0)], 0.5)
    assert [load.share for load in loads] == [0.75, 0.25]
    assert all(load.ignores_health for load in loads)


def test_without_a_threshold_nobody_healthy_means_nobody() -> None:
    assert share_load([(3, 0), (1, 0)], 0.0) == [(0.0, False), (0.0, False)]


def test_half_healthy_is_not_below_a_threshold_of_half() -> None:
    assert share_load([(2, 1)], 0.5) == [(1.0, False)]
    assert share_load([(5, 2)], 0.5) == [(1.0, True)]


@given(LEVELS, st.floats(0, 1))
def test_shares_add_up_to_all_or_nothing(levels: list[tuple[int, int]], threshold: float) -> None:
    total = sum(load.share for load in share_load(levels, threshold))
    assert total == pytest.approx(1) or (total == 0 and not any(healthy for _, healthy in levels))


@pytest.mark.parametrize(
    ("own", "other", "locality", "distance"),
    [
        (Place("z1", "c1"), Place("z1", "c1"), "zone", 0),
        (Place("z1", "c1"), Place("z2", "c1"), "zone", 1),
        (Place("z1", "c1"), Place("z1", "c2"), "zone", 2),
        (Place("z1", ""), Place("z1", "c2"), "zone", 0),
        (Place("", "c1"), Place("", "c1"), "zone", 1),
        (Place("z1", "c1"), Place("z2", "c1"), "cluster", 0),
        (Place("z1", "c1"), Place("z1", "c2"), "cluster", 1),
        (Place("", ""), Place("z2", "c2"), "cluster", 0),
    ],
)
def test_nearness(own: Place, other: Place, locality: Literal["zone", "cluster"], distance: int) -> None:
    assert nearness(own, other, locality) == distance
