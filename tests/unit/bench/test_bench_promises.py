"""Figures beside promises."""

from bench.parts.comparison import ComparisonResult, Row
from bench.parts.propagation import PropagationResult
from bench.parts.scale import ScaleResult, Traffic
from bench.reporting.figures import Distribution, Spread
from bench.reporting.promises import promises


def compared(of_nginx: float | None, of_envoy: float | None) -> list[ComparisonResult]:
    row = Row("Headgate", Spread(1, 1, 1), 1, 1, 1, Spread(1, 1, 1), 1, of_nginx, of_envoy, 0)
    return [ComparisonResult(counted="rate", rows={"1 KB": [row]}, targets={"1 KB": {"nginx": 0.5, "Envoy": 1.5}})]


def propagation(p99: float, failed: int = 0) -> PropagationResult:
    took = Distribution.of([p99])
    return PropagationResult("1,000 other Ingresses", took, {}, took, took, failed, 0)


def scale(sites: int, cold_start_s: float, stall: float) -> ScaleResult:
    slow = Distribution.of([stall])
    return ScaleResult("many", sites, cold_start_s, {}, 1, {}, {}, Traffic({}, {}, slow, slow, 0), [])


def test_a_ratio_at_the_promise_keeps_it():
    assert [each.is_kept for each in promises(compared(0.5, 1.49), [], [])] == [True, False]


def test_a_peer_that_was_left_out_promises_nothing():
    assert [each.what for each in promises(compared(0.7, None), [], [])] == ["rate of nginx, 1 KB"]


def test_a_failed_request_breaks_a_promise():
    assert [each.is_kept for each in promises([], [propagation(19.9, failed=1)], [])] == [True, False]


def test_scale_is_promised_at_ten_thousand():
    assert promises([], [], [scale(1000, 60, 60)]) == []
    assert [each.is_kept for each in promises([], [], [scale(10_000, 14.9, 21)])] == [True, False]


def test_every_peer_has_a_ratio_of_its_own():
    row = Row("Headgate", Spread(1, 1, 1), 1, 1, 1, Spread(1, 1, 1), 1, 0.9, 2.0, 0, of_haproxy=0.99)
    targets = {"nginx": 0.9, "HAProxy": 1.0, "Envoy": 2.0}
    found = promises([ComparisonResult(rows={"1 KB": [row]}, targets={"1 KB": targets})], [], [])
    assert [each.is_kept for each in found] == [True, False, True]
