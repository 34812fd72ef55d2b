"""Requests counted by consumer beside their routes."""

from types import SimpleNamespace

from headgate.gateway.proxy.consumer_traffic import ConsumerTraffic
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import RouteTraffic


def asked(stats: ProxyStats, consumer: str, times: int = 1, *, route: str = "h|r", seconds: float = 0.001) -> None:
    """Count requests as the end of their plugins, and then their own, does."""
    assert stats.consumers is not None
    traffic = stats.of_route(SimpleNamespace(name=route, upstream_label="up", traffic=None), "")
    for _ in range(times):
        if consumer:
            stats.consumers.count(traffic, consumer, 200, 1, seconds, 10, 100)
        traffic.count(200, 1, seconds, 10, 100)


def counting(max_series: int = 9, *, routes: int = 9) -> ProxyStats:
    return ProxyStats(routes, ConsumerTraffic(max_series))


def shown(stats: ProxyStats) -> dict[tuple[str, str], int]:
    assert stats.consumers is not None
    found = {}
    for route in stats.series():
        for consumer, traffic in stats.consumers.rows(route):
            assert traffic.ok == sum(traffic.buckets) == traffic.received // 10 == traffic.sent // 100
            if traffic.ok:
                found[route.route, consumer] = traffic.ok
    return found


def reviewed(stats: ProxyStats) -> None:
    for _ in stats.review():
        pass


def test_requests_of_consumers_and_without_are_told_apart() -> None:
    stats = counting()
    for consumer, times in (("jack", 2), ("rose", 1), ("", 4)):
        asked(stats, consumer, times)
    assert shown(stats) == {("h|r", ""): 4, ("h|r", "jack"): 2, ("h|r", "rose"): 1}
    assert sum(traffic.ok for traffic in stats.series()) == 7


def test_consumers_shown_apart_are_bounded_and_the_others_are_counted() -> None:
    stats = counting(2)
    for consumer in ("jack", "rose", "ann", "bob", "other", ""):
        asked(stats, consumer)
    assert shown(stats) == {("h|r", ""): 1, ("h|r", "jack"): 1, ("h|r", "rose"): 1, ("h|r", "other"): 3}


def test_consumers_without_requests_make_room_at_a_review() -> None:
    stats = counting(2)
    for consumer in ("jack", "rose", "ann"):
        asked(stats, consumer)
    reviewed(stats)
    asked(stats, "rose")
    reviewed(stats)
    asked(stats, "ann", 5)
    assert shown(stats) == {("h|r", "rose"): 2, ("h|r", "other"): 1, ("h|r", "ann"): 5}


def test_consumers_stay_while_there_is_room() -> None:
    stats = counting(3)
    asked(stats, "jack")
    reviewed(stats)
    reviewed(stats)
    assert shown(stats) == {("h|r", "jack"): 1}


def test_routes_that_are_gone_take_their_consumers_along_and_make_room() -> None:
    stats = counting(1)
    asked(stats, "jack", route="h|old")
    stats.forget([("h|old", "up")])
    asked(stats, "jack", route="h|new")
    assert shown(stats) == {("h|new", "jack"): 1}


def test_routes_that_are_shown_together_have_no_consumers_and_begin_at_zero_apart() -> None:
    stats = counting(routes=1)
    asked(stats, "jack", route="h|one")
    asked(stats, "jack", 9, route="h|two")
    assert shown(stats) == {("h|one", "jack"): 1, ("other", ""): 9}
    reviewed(stats)
    asked(stats, "jack", 2, route="h|one")
    asked(stats, "rose", 3, route="h|two")
    assert shown(stats) == {("h|two", "rose"): 3, ("other", ""): 11}


def test_seconds_without_a_consumer_never_fall() -> None:
    consumers = ConsumerTraffic(9)
    route = RouteTraffic("h|r", "up")
    route.count(200, 1, 0.1, 0, 0)
    last = 0.0
    for number in range(1000):
        consumers.count(route, "jack", 200, 1, number / 7, 0, 0)
        route.count(200, 1, number / 7, 0, 0)
        seconds = consumers.rows(route)[0][1].seconds
        assert seconds >= last
        last = seconds
