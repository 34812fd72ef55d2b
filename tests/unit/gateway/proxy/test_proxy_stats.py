from math import inf

from fakes.gateway.proxied import OK, answering, proxied
from headgate.common.traffic import BOUNDS_S
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import LATENCY_BOUNDS_S, Traffic, latency_bucket

CLOSE = b"Connection: close\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE
ERROR = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"


async def test_requests_are_counted_by_route_upstream_and_status() -> None:
    async with proxied(answering(OK, ERROR)) as proxy:
        client = await proxy.connect()
        for host in (b"a", b"a", b"unknown"):
            await client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
            await client.answer()
        [traffic] = proxy.stats.routes.values()
        assert (traffic.route, traffic.upstream) == ("test|all", "test")
        assert traffic.by_status() == {200: 1, 500: 1}
        assert proxy.stats.unrouted.by_status() == {404: 1}
        assert proxy.stats.refusals == {(404, "request"): 1}
        assert proxy.stats.requests == sum(traffic.buckets) + 1 == 3


async def test_endpoints_are_counted_by_what_they_answered() -> None:
    async with proxied(answering(OK, ERROR, OK)) as proxy:
        for _ in range(3):
            await proxy.talk(GET)
        traffic = proxy.target.pools[0].traffic
        assert traffic.by_status() == {200: 2, 500: 1}
        assert sum(traffic.buckets) == 3
        assert traffic.sent == 4
        assert proxy.target.pools[0].connects == 1


async def test_bytes_of_bodies_are_counted_both_ways() -> None:
    async with proxied(answering(OK)) as proxy:
        await proxy.talk(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" + CLOSE + b"hello")
        [traffic] = proxy.stats.routes.values()
        assert (traffic.received, traffic.sent) == (5, 2)


async def test_failures_of_upstreams_are_counted_by_kind() -> None:
    async with proxied(answering(b"nonsense\r\n\r\n")) as proxy:
        await proxy.talk(GET)
        await proxy.origin.stop()
        await proxy.talk(GET)
        [traffic] = proxy.stats.routes.values()
        assert traffic.errors == {"invalid": 1, "connect": 1} == proxy.stats.upstream_errors
        assert proxy.target.pools[0].traffic.errors == traffic.errors
        assert proxy.target.pools[0].traffic.by_status() == {}
        assert traffic.by_status() == {502: 2}


async def test_a_retry_counts_for_the_route_and_the_endpoint_that_failed() -> None:
    async with proxied(answering(OK), answering(OK)) as proxy:
        await proxy.origins[0].stop()
        assert (await proxy.talk(GET)).endswith(b"ok")
        [traffic] = proxy.stats.routes.values()
        failed, other = (pool.traffic for pool in proxy.target.pools)
        assert (traffic.retries, failed.retries, other.retries) == (1, 1, 0)
        assert (traffic.by_status(), failed.by_status(), other.by_status()) == ({200: 1}, {}, {200: 1})


async def test_requests_without_an_answer_are_counted() -> None:
    stats = ProxyStats()
    stats.unrouted.count(0, 0, 0.0, 0, 0)
    assert stats.unrouted.by_status() == {0: 1}


def test_a_duration_goes_into_the_bucket_of_the_next_bound() -> None:
    seconds = (0.0, 0.0001, 0.00011, 0.001, 0.0011, 100.0, 101.0)
    assert [latency_bucket(each) for each in seconds] == [0, 0, 1, 10, 11, len(BOUNDS_S) - 1, len(BOUNDS_S)]
    assert len(Traffic().buckets) == len(BOUNDS_S) + 1


def test_metrics_show_durations_in_fewer_buckets() -> None:
    traffic = Traffic()
    for seconds in (0.0001, 0.0004, 0.0005, 0.0006, 0.001, 30.0, 31.0, 60.0, 61.0, 1000.0):
        traffic.count(200, latency_bucket(seconds), seconds, 0, 0)
    shown = dict(zip((*LATENCY_BOUNDS_S, inf), traffic.by_bound(), strict=True))
    assert {bound: count for bound, count in shown.items() if count} == {0.0005: 3, 0.001: 2, 30.0: 1, 60.0: 2, inf: 2}


def test_what_is_new_is_told_once() -> None:
    traffic, news = Traffic(), list[Traffic]()
    traffic.count(200, 0, 0.0, 0, 0)
    traffic.tell_by(news)
    assert news == []
    for _ in range(3):
        traffic.count(200, 0, 0.0, 0, 0)
    assert news == [traffic]


class Named:
    """A route, as far as it is counted."""

    def __init__(self, name: str, upstream_label: str = "up") -> None:
        self.name = name
        self.upstream_label = upstream_label
        self.traffic = None


def asked(stats: ProxyStats, route: str, times: int, seconds: float = 0.001) -> None:
    for _ in range(times):
        stats.of_route(Named(route), "").count(200, 0, seconds, 0, 0)


def shown(stats: ProxyStats) -> dict[str, int]:
    """Requests of each route that is shown, and of the others together."""
    return {traffic.route: traffic.ok for traffic in stats.series() if traffic.ok}


def reviewed(stats: ProxyStats) -> dict[str, int]:
    for _ in stats.review():
        pass
    return shown(stats)


def test_routes_shown_apart_are_bounded_and_the_others_are_counted() -> None:
    stats = ProxyStats(max_series=2)
    for number in range(5):
        asked(stats, f"h|{number}", 1)
    assert shown(stats) == {"h|0": 1, "h|1": 1, "other": 3}
    assert stats.folded == 3


def test_the_busiest_routes_are_shown_whenever_they_began() -> None:
    stats = ProxyStats(max_series=2)
    for number in range(4):
        asked(stats, f"h|{number}", 10)
    asked(stats, "h|3", 90)
    reviewed(stats)
    asked(stats, "h|3", 5)
    assert shown(stats) == {"h|1": 10, "h|3": 5, "other": 110}


def test_a_slow_route_is_shown_however_few_its_requests() -> None:
    stats = ProxyStats(max_series=2)
    asked(stats, "h|busy", 1000)
    asked(stats, "h|idle", 1)
    asked(stats, "h|slow", 1, seconds=30.0)
    reviewed(stats)
    asked(stats, "h|slow", 1, seconds=30.0)
    assert shown(stats).keys() == {"h|busy", "h|slow", "other"}


def test_what_is_counted_of_others_never_falls() -> None:
    stats = ProxyStats(max_series=1)
    counts = []
    for number in range(6):
        asked(stats, f"h|{number}", 10 * number + 1)
        counts.append(reviewed(stats).get("other", 0))
    assert counts == sorted(counts)
    assert stats.folded == len(stats.routes) - 1


def test_errors_and_retries_of_a_folded_route_are_those_of_the_others() -> None:
    stats = ProxyStats(max_series=0)
    traffic = stats.of_route(Named("h|r"), "")
    traffic.count_error("connect")
    traffic.count_retry()
    (other,) = [one for one in stats.series() if one.route == "other"]
    assert (other.errors, other.retries) == ({"connect": 1}, 1)


def test_a_watched_host_is_shown_and_stays_so() -> None:
    stats = ProxyStats(max_series=1)
    asked(stats, "a|r", 1)
    asked(stats, "b|r", 1)
    stats.watch(["b"])
    asked(stats, "a|r", 100)
    asked(stats, "c|r", 100)
    assert "b|r" in {traffic.route for traffic in stats.series()}
    reviewed(stats)
    assert "b|r" in {traffic.route for traffic in stats.series()}


def test_the_upstreams_of_a_split_are_counted_apart() -> None:
    stats = ProxyStats()
    route = Named("h|r", "a,b")
    assert [stats.of_route(route, chosen).upstream for chosen in ("", "a", "b", "a")] == ["", "a", "b", "a"]
    assert stats.of_route(route, "a") is stats.of_route(route, "a")
    assert len(stats.routes) == 3


def test_counts_go_on_when_a_swap_brings_the_route_anew() -> None:
    stats = ProxyStats()
    assert stats.of_route(Named("h|r"), "") is stats.of_route(Named("h|r"), "")


def test_forgotten_routes_leave_no_counters() -> None:
    stats = ProxyStats()
    stats.of_route(Named("h|r"), "")
    stats.of_route(Named("h|kept"), "")
    stats.forget([("h|r", "up")])
    assert list(stats.routes) == [("h|kept", "up")]


def test_requests_without_a_route_are_counted_for_a_host_that_names_its_listeners() -> None:
    stats = ProxyStats()
    stats.watch(["foo.com@gw/web"])
    assert stats.unrouted_of(b"foo.com").route == "foo.com@gw/web|"
    assert stats.unrouted_of(b"bar.com") is stats.unrouted
