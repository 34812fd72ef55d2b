"""Judging a rollout: whether the replicas that serve the next table do worse than the others, since they took it; pure.

Few errors among few requests say nothing, and looks come every second: a difference counts only if it is large enough
to matter and too large for chance. Errors: the difference of the two shares must be beyond the threshold, and zero
outside its confidence interval (Newcombe 1998, method 10: from the Wilson intervals of both, good for small counts and
for none). Latency: the bound that one in twenty requests may be slower than is that of the others, times a factor and
plus some milliseconds; worse is when the share of slower ones is above one in twenty for certain.

Rejected: a fixed bound on the error share, which calls a service bad that was bad before; and a test of means, which a
few slow requests move.
"""

from bisect import bisect_left
from collections.abc import Iterable
from math import inf, sqrt
from typing import NamedTuple

from headgate.common.heartbeats import TrafficCounts

CERTAINTY = 3.5
"""Standard deviations. By chance, one look in 4,000 is beyond; the looks of a window are far from independent."""
SLOW_SHARE = 0.05


class Thresholds(NamedTuple):
    """How much worse counts as worse."""

    min_requests: int = 50
    """On either side; with fewer nothing is said."""
    error_points: float = 1.0
    """Percentage points by which the share of errors is greater."""
    latency_factor: float = 1.5
    latency_ms: float = 50.0
    """The 95th percentile is worse if it is beyond that of the others by both: times the factor, and by so much."""


class RolloutVerdict(NamedTuple):
    """The judgement of a comparison."""

    is_judged: bool
    """Whether there were enough requests to say anything."""
    worse: str = ""
    """What is worse: `errors 4.2% of 1,310 requests, against 0.1% of 3,902`; empty: nothing."""


def total(counts: Iterable[TrafficCounts]) -> TrafficCounts:
    """Add up; those whose buckets have other bounds than the first are left out."""
    found = [one for one in counts if one.buckets]
    alike = [one for one in found if one.bounds_s == found[0].bounds_s]
    if not alike:
        return TrafficCounts()
    buckets = tuple(map(sum, zip(*(one.buckets for one in alike), strict=True)))
    return TrafficCounts(errors=sum(one.errors for one in alike), bounds_s=alike[0].bounds_s, buckets=buckets)


def judge(chosen: TrafficCounts, others: TrafficCounts, thresholds: Thresholds) -> RolloutVerdict:
    """Compare the replicas that serve the next table with the others."""
    if min(chosen.requests, others.requests) < max(1, thresholds.min_requests):
        return RolloutVerdict(is_judged=False)
    if _has_more_errors(chosen, others, thresholds.error_points / 100):
        return RolloutVerdict(True, f"errors {describe_errors(chosen)} requests, against {describe_errors(others)}")
    if _is_slower(chosen, others, thresholds):
        slow, usual = percentile_ms(chosen), percentile_ms(others)
        figures = f"{_ms(slow)} of {chosen.requests:,} requests, against {_ms(usual)} of {others.requests:,}"
        return RolloutVerdict(True, f"95th percentile of the time to answer {figures}")
    return RolloutVerdict(is_judged=True)


def describe_errors(counts: TrafficCounts) -> str:
    """Say which share of how many requests failed: `4.2% of 1,310`."""
    return f"{100 * _share(counts.errors, counts.requests):.1f}% of {counts.requests:,}"


def percentile_ms(counts: TrafficCounts) -> float:
    """Return the time in which 95% of the requests were answered, in milliseconds, to the bound of a bucket.

    0 where there are none, and infinite in the last bucket, which has no bound.
    """
    if not counts.requests:
        return 0.0
    allowed, seen = (1 - SLOW_SHARE) * counts.requests, 0
    for bound, count in zip((*counts.bounds_s, inf), counts.buckets, strict=True):
        seen += count
        if seen >= allowed:
            return bound * 1000
    return 0.0


def _has_more_errors(chosen: TrafficCounts, others: TrafficCounts, threshold: float) -> bool:
    share, usual = _share(chosen.errors, chosen.requests), _share(others.errors, others.requests)
    least, _ = _interval(chosen.errors, chosen.requests)
    _, most = _interval(others.errors, others.requests)
    return share - usual >= threshold and share - usual > sqrt((share - least) ** 2 + (most - usual) ** 2)


def _is_slower(chosen: TrafficCounts, others: TrafficCounts, thresholds: Thresholds) -> bool:
    usual = percentile_ms(others)
    bound_s = max(usual * thresholds.latency_factor, usual + thresholds.latency_ms) / 1000
    place = bisect_left(chosen.bounds_s, bound_s)
    slower = sum(chosen.buckets[place + 1 :])
    return _interval(slower, chosen.requests)[0] > SLOW_SHARE


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _interval(part: int, whole: int) -> tuple[float, float]:
    """Wilson's confidence interval of a share."""
    share, square = _share(part, whole), CERTAINTY**2
    middle = (share + square / (2 * whole)) / (1 + square / whole)
    half = CERTAINTY * sqrt(share * (1 - share) / whole + square / (4 * whole**2)) / (1 + square / whole)
    return max(0.0, middle - half), min(1.0, middle + half)


def _ms(milliseconds: float) -> str:
    return "more than a minute" if milliseconds == inf else f"{milliseconds:g} ms"
