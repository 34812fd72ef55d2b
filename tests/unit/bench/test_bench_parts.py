"""What the parts of a run promise and say."""

from bench.parts.bodies import BodiesResult, BodyRow
from bench.parts.connections import ConnectionsResult, HeldRow
from bench.parts.replicas import ReplicasResult
from bench.parts.swaps import SwapsPlan, SwapsResult
from bench.recording.open_streams import StreamCounts
from bench.reporting.figures import Distribution, Spread


def body(proxy: str, of_nginx: float, growth_mb: float, slow_growth_mb: float) -> BodyRow:
    return BodyRow(proxy, "down", Spread(1, 1, 1), of_nginx, 1, growth_mb, 5, slow_growth_mb, 0)


def swaps(applied: int, p99: float, broken: list[str]) -> SwapsResult:
    quiet, changing = Distribution.of([1.0]), Distribution.of([p99])
    streams = StreamCounts({"websocket": 2}, {"websocket": 20}, broken)
    return SwapsResult(SwapsPlan(1, 100, 2), quiet, changing, 0, 100, applied, 0.5, streams, 80, 81)


def test_bodies_promise_speed_and_memory():
    result = BodiesResult("1 GiB", "command", [body("nginx", 1, 0, 0), body("Headgate", 0.49, 9.9, 10.1)])
    assert [each.is_kept for each in result.promises()] == [False, True, False]
    assert "| Headgate, download |" in result.markdown()


def test_connections_are_held_if_all_answer_again():
    held = HeldRow("Headgate", "http", 10, 10, 0, 10, 80, 81)
    lost = HeldRow("Headgate", "websocket", 10, 10, 1, 9, 80, 81)
    result = ConnectionsResult(1.0, [held, lost])
    assert [each.is_kept for each in result.promises()] == [True, False]


def test_swaps_are_held_against_their_rate_the_streams_and_the_p99():
    assert [each.is_kept for each in swaps(95, 1.9, []).promises()] == [True, True, True, True]
    assert [each.is_kept for each in swaps(94, 2.1, ["reset"]).promises()] == [False, True, False, False]


def test_a_failed_request_at_the_end_of_a_replica_breaks_a_promise():
    result = ReplicasResult(2, Distribution.of([1.0]), 100, 1, [2.0, 2.5], [0, 0])
    assert [each.is_kept for each in result.promises()] == [False]
    assert "2.5" in result.markdown()
