from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric

from fakes.gateway.table import compiled, endpoint, host, route, upstream
from headgate.gateway.balancing.compile import compile_upstream
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.model.connection import PLAIN
from headgate.gateway.observability.traffic_metrics import EndpointFamilies, RouteFamilies, gone_routes
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import RouteTraffic, latency_bucket


class Of:
    """A registry of one collector."""

    def __init__(self, collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        yield from self._collector.collect()


def scrape(collector) -> str:
    registry = CollectorRegistry()
    registry.register(Of(collector))
    return generate_latest(registry).decode()


def counted(stats: ProxyStats, name: str = "h|r", to: str = "up") -> RouteTraffic:
    traffic = stats.routes[name, to] = RouteTraffic(name, to)
    return traffic


def test_requests_are_shown_by_route_upstream_and_code() -> None:
    stats = ProxyStats()
    traffic = counted(stats)
    traffic.count(200, latency_bucket(0.0004), 0.0004, 10, 1000)
    traffic.count(503, latency_bucket(0.0004), 0.0004, 0, 5)
    text = scrape(RouteFamilies(stats))
    assert 'headgate_requests_total{code="200",route="h|r",upstream="up"} 1.0' in text
    assert 'headgate_requests_total{code="503",route="h|r",upstream="up"} 1.0' in text
    assert 'headgate_request_bytes_total{route="h|r",upstream="up"} 10.0' in text
    assert 'headgate_answer_bytes_total{route="h|r",upstream="up"} 1005.0' in text


def test_latency_buckets_are_cumulative() -> None:
    stats = ProxyStats()
    traffic = counted(stats)
    for seconds in (0.0005, 0.002, 61.0):
        traffic.count(200, latency_bucket(seconds), 1.5, 0, 0)
    text = scrape(RouteFamilies(stats))
    assert 'headgate_request_duration_seconds_bucket{le="0.0005",route="h|r",upstream="up"} 1.0' in text
    assert 'headgate_request_duration_seconds_bucket{le="60.0",route="h|r",upstream="up"} 2.0' in text
    assert 'headgate_request_duration_seconds_bucket{le="+Inf",route="h|r",upstream="up"} 3.0' in text
    assert 'headgate_request_duration_seconds_sum{route="h|r",upstream="up"} 4.5' in text


def test_what_nothing_was_asked_of_is_absent() -> None:
    stats = ProxyStats()
    counted(stats)
    text = scrape(RouteFamilies(stats))
    assert 'route="h|r"' not in text
    assert 'route="other"' not in text


def test_failures_and_retries_are_shown_with_their_route() -> None:
    stats = ProxyStats()
    traffic = counted(stats)
    traffic.count(200, 0, 0.0, 0, 0)
    traffic.count_error("connect")
    traffic.retries += 1
    stats.refused(413, True)
    stats.client_error("http2 abuse")
    text = scrape(RouteFamilies(stats))
    assert 'headgate_upstream_errors_total{kind="connect",route="h|r",upstream="up"} 1.0' in text
    assert 'headgate_retries_total{route="h|r",upstream="up"} 1.0' in text
    assert 'headgate_refused_total{before="route",status="413"} 1.0' in text
    assert 'headgate_client_errors_total{kind="http2 abuse"} 1.0' in text


def test_an_endpoint_is_counted_once_with_the_upstreams_that_name_it() -> None:
    pools = PoolRegistry()
    directory = EndpointDirectory(pools)
    one = compile_upstream(upstream("one", endpoint(1)), directory, 0)
    two = compile_upstream(upstream("two", endpoint(1)), directory, 0)
    pool = one.slots[0].open_pool()
    pool.traffic.count(200, 0, 0.0, 0, 7)
    pool.in_flight = 3
    text = scrape(EndpointFamilies(pools, directory))
    labels = f'endpoint="{pool.label}"'
    assert text.count(f'headgate_endpoint_requests_total{{code="200",{labels}}} 1.0') == 1
    assert f"headgate_endpoint_connections{{{labels}}} 3.0" in text
    assert f"headgate_endpoint_answer_bytes_total{{{labels}}} 7.0" in text
    for name in (one.key, two.key):
        assert f'headgate_endpoint_upstream{{{labels},upstream="{name}"}} 1.0' in text


def test_endpoints_that_no_upstream_names_are_not_shown() -> None:
    pools = PoolRegistry()
    pools.get("10.0.0.9", 80, PLAIN).traffic.count(200, 0, 0.0, 0, 0)
    assert "10.0.0.9" not in scrape(EndpointFamilies(pools, EndpointDirectory(pools)))


def test_endpoints_shown_are_bounded() -> None:
    pools = PoolRegistry()
    directory = EndpointDirectory(pools)
    balancer = compile_upstream(upstream("one", *[endpoint(n) for n in range(1, 6)]), directory, 0)
    for slot in balancer.slots:
        slot.open_pool()
    text = scrape(EndpointFamilies(pools, directory, max_endpoints=2))
    assert text.count("headgate_endpoint_connects_total{") == 2
    assert "headgate_endpoints_folded 3.0" in text


def test_routes_that_left_the_table_are_found() -> None:
    table = compiled([host("foo.com", route("/", "prefix", "up"))]).table
    assert table is not None
    [(_, there)] = table.hosts[b"foo.com"].routes
    names = [there.name, "foo.com|gone", "bar.com|gone", "plugin call", "other"]
    gone = gone_routes([(name, "up") for name in names], table.hosts)
    assert list(gone) == [("foo.com|gone", "up"), ("bar.com|gone", "up")]
