"""Arithmetic on samples."""

import pytest
from bench.reporting.figures import Distribution, Spread, percentile


def test_percentile_is_the_nearest_rank():
    samples = [float(number) for number in range(1, 101)]
    assert percentile(samples, 50) == 50
    assert percentile(samples, 99) == 99
    assert percentile(samples, 100) == 100


def test_percentile_of_few_samples_is_one_of_them():
    assert percentile([3.0, 1.0], 99) == 3.0
    assert percentile([3.0, 1.0], 50) == 1.0


def test_no_samples_have_no_percentile():
    with pytest.raises(ValueError, match="no samples"):
        Distribution.of([])


def test_a_spread_keeps_the_slowest_and_fastest_round():
    assert Spread.of([5.0, 1.0, 3.0]) == Spread(median=3.0, low=1.0, high=5.0)
