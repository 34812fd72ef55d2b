"""Arithmetic on samples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


def percentile(samples: Sequence[float], percent: float) -> float:
    """Smallest sample that at least `percent` of the samples do not exceed (nearest rank).

    Raises:
        ValueError: no samples.
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


@dataclass(frozen=True)
class Distribution:
    """What a table says of many samples, in their unit."""

    count: int
    p50: float
    p90: float
    p99: float
    p999: float
    max: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Distribution":
        """Summarise samples; raises ValueError if there are none."""
        points = (percentile(samples, percent) for percent in (50, 90, 99, 99.9, 100))
        return cls(len(samples), *points)


@dataclass(frozen=True)
class Spread:
    """Median of rounds, and the least and greatest of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, rounds: Sequence[float]) -> "Spread":
        """Summarise rounds; raises StatisticsError if there are none."""
        return cls(median(rounds), min(rounds), max(rounds))
