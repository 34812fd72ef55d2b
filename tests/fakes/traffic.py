"""Summaries of traffic, as workers tell them."""

from typing import Any

from headgate.common.traffic import Counts, EndpointCounts, RouteCounts, TrafficSummary


def counts(requests: int = 1, *, failed: int = 0, place: int = 10, sent: int = 0) -> Counts:
    """Requests that all took as long: up to a millisecond by default."""
    answers = (0, 0, requests - failed, 0, 0, failed)
    return Counts(answers, 0, sent, 0.001 * requests, {place: requests} if requests else {})


def of_route(route: str, upstream: str = "up", made: Counts | None = None) -> RouteCounts:
    """What was counted of a route."""
    return RouteCounts(route, upstream, made or counts())


def of_endpoint(endpoint: str, made: Counts | None = None) -> EndpointCounts:
    """What was counted of an endpoint."""
    return EndpointCounts(endpoint, made or counts())


def summary(
    *rows: RouteCounts | EndpointCounts, worker: int = 0, table: str = "default", **more: Any
) -> TrafficSummary:
    """What a worker says."""
    return TrafficSummary(
        table=table,
        replica="gw",
        worker=worker,
        at=1.0,
        seconds=1.0,
        routes=tuple(row for row in rows if isinstance(row, RouteCounts)),
        endpoints=tuple(row for row in rows if isinstance(row, EndpointCounts)),
        **more,
    )
