from prometheus_client import CollectorRegistry, generate_latest

from fakes.proxied import OK, answering, proxied
from headgate.gateway.proxy.stats import ProxyStats

CLOSE = b"Connection: close\r\n\r\n"


async def test_requests_are_counted_by_route_and_class() -> None:
    async with proxied(answering(OK, b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")) as proxy:
        client = await proxy.connect()
        for host in (b"a", b"a", b"unknown"):
            await client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
            await client.answer()
        text = scrape(proxy.stats)
        assert 'headgate_requests_total{class="2xx",route="test|all"} 1.0' in text
        assert 'headgate_requests_total{class="5xx",route="test|all"} 1.0' in text
        assert 'headgate_requests_total{class="4xx",route=""} 1.0' in text
        assert 'headgate_refused_total{before="request",status="404"} 1.0' in text
        assert "headgate_connections 1.0" in text
        assert "headgate_request_seconds_count 3.0" in text


async def test_failures_of_upstreams_are_counted_by_kind() -> None:
    async with proxied(answering(b"nonsense\r\n\r\n")) as proxy:
        await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        await proxy.origin.stop()
        await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        text = scrape(proxy.stats)
        assert 'headgate_upstream_errors_total{kind="invalid"} 1.0' in text
        assert 'headgate_upstream_errors_total{kind="connect"} 1.0' in text


def test_a_status_beyond_all_classes_is_counted() -> None:
    stats = ProxyStats()
    stats.observe("r", 0, 0.0, 0)
    assert stats.requests == 1


def test_latency_buckets_are_cumulative() -> None:
    stats = ProxyStats()
    for seconds in (0.0004, 0.0006, 100.0):
        stats.observe("r", 200, seconds, 1)
    text = scrape(stats)
    assert 'headgate_request_seconds_bucket{le="0.0005"} 1.0' in text
    assert 'headgate_request_seconds_bucket{le="0.001"} 2.0' in text
    assert 'headgate_request_seconds_bucket{le="60.0"} 2.0' in text
    assert 'headgate_request_seconds_bucket{le="+Inf"} 3.0' in text


def test_routes_counted_apart_are_bounded() -> None:
    stats = ProxyStats(max_routes=2)
    for n in range(5):
        stats.observe(str(n), 200, 0.0, 0)
    assert len(stats.routes) == 3
    assert stats.requests == 5


def scrape(stats: ProxyStats) -> str:
    registry = CollectorRegistry()
    registry.register(stats)
    return generate_latest(registry).decode()
