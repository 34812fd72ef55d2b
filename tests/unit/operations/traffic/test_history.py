"""Traffic of the past: by the second for 15 minutes, by the minute for 24 hours."""

import pytest

from headgate.common.traffic import Counts, EndpointCounts, RouteCounts, TrafficSummary
from headgate.operations.traffic.history import (
    MAX_SPARKS,
    MINUTES_KEPT,
    SECONDS_KEPT,
    SPARK_STEP_S,
    TrafficHistory,
)
from headgate.operations.traffic.window import Grouping

START = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def counts(well: int, failed: int = 0, place: int = 20) -> Counts:
    return Counts((0, 0, well, 0, 0, failed), durations={place: well + failed}, sent=10 * well)


def summary(*routes: tuple[str, Counts], worker: int = 0) -> TrafficSummary:
    rows = tuple(RouteCounts(route, "up", each) for route, each in routes)
    ends = (EndpointCounts("10.0.0.1:80", counts(1)),) if routes else ()
    return TrafficSummary("default", "gw", worker, START, 1.0, rows, ends)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def history(clock: Clock) -> TrafficHistory:
    return TrafficHistory(clock)


def test_workers_of_one_second_are_added_up(history: TrafficHistory, clock: Clock) -> None:
    history.note(summary(("a|r", counts(3, 1))))
    history.note(summary(("a|r", counts(2)), ("b|r", counts(5)), worker=1))
    clock.now += 1
    points = history.series(5, 1)
    assert [point.requests for point in points] == [0, 0, 0, 0, 11]
    assert (points[-1].failed, points[-1].sent) == (1, 100)
    assert history.series(5, 1, Grouping.ROUTE, "a|r")[-1].requests == 6
    assert history.series(5, 1, Grouping.HOST, "b")[-1].requests == 5
    assert history.series(5, 1, Grouping.ENDPOINT, "10.0.0.1:80")[-1].requests == 2
    assert history.series(5, 1, Grouping.ROUTE, "c|r")[-1].requests == 0


def test_percentiles_of_a_step_are_of_all_its_seconds(history: TrafficHistory, clock: Clock) -> None:
    for place in (10, 30):
        history.note(summary(("a|r", counts(50, place=place))))
        clock.now += 1
    alone, other = history.series(2, 1)
    (both,) = history.series(2, 2)
    assert alone.p99_ms < both.p99_ms <= other.p99_ms
    assert both.requests == 100


def test_seconds_are_kept_15_minutes_and_minutes_a_day(history: TrafficHistory, clock: Clock) -> None:
    for _ in range(MINUTES_KEPT + 60):
        history.note(summary(("a|r", counts(1))))
        clock.now += 60
    assert sum(point.requests for point in history.series(SECONDS_KEPT, 60)) == 15
    assert sum(point.requests for point in history.series(24 * 3600, 3600)) == MINUTES_KEPT
    assert sum(point.requests for point in history.series(48 * 3600, 3600)) <= MINUTES_KEPT


def test_routes_beyond_500_are_counted_together(history: TrafficHistory, clock: Clock) -> None:
    for start in (0, 400):
        rows = tuple((f"h{number}|r", counts(number + 1)) for number in range(start, start + 400))
        history.note(summary(*rows, worker=start))
    clock.now += 1
    total = sum(range(1, 801))
    assert history.series(1, 1)[0].requests == total
    assert history.series(1, 1, Grouping.HOST, "h799")[0].requests == 800
    assert history.series(1, 1, Grouping.HOST, "h0")[0].requests == 0


def test_a_route_with_traffic_has_a_line_of_15_minutes(history: TrafficHistory, clock: Clock) -> None:
    for _ in range(4):
        history.note(summary(("a|r", counts(2))))
        clock.now += 10
    line = history.spark("a|r")
    assert len(line) == SECONDS_KEPT // SPARK_STEP_S
    assert [point.requests for point in line][-3:] == [4, 2, 2]
    assert history.spark("b|r") == []
    clock.now += SECONDS_KEPT + 60
    assert history.spark("a|r") == []


def test_lines_are_bounded(history: TrafficHistory, clock: Clock) -> None:
    for number in range(MAX_SPARKS + 10):
        history.note(summary((f"h{number}|r", counts(1))))
        if number % 400 == 0:
            clock.now += SPARK_STEP_S
    clock.now += SPARK_STEP_S
    history.note(summary(("last|r", counts(1))))
    clock.now += 1
    assert history.spark("h0|r") == []
    assert history.spark(f"h{MAX_SPARKS}|r")


def test_too_many_steps_are_refused(history: TrafficHistory) -> None:
    with pytest.raises(ValueError, match="give a longer step"):
        history.series(24 * 3600 * 2, 60)
