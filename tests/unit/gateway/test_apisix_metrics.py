"""The names of Apache APISIX, which its dashboards ask for."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes.gateway.table import compiled, endpoint, host, route, upstream
from headgate.common.table import VirtualHost
from headgate.gateway.balancing.compile import compile_upstream
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.observability.apisix_metrics import ApisixFamilies
from headgate.gateway.observability.traffic_metrics import EndpointFamilies
from headgate.gateway.proxy.consumer_traffic import ConsumerTraffic
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import latency_bucket
from unit.gateway.test_traffic_metrics import counted, scrape


def shown(stats: ProxyStats, *hosts: VirtualHost) -> str:
    pools = PoolRegistry()
    directory = EndpointDirectory(pools)
    one = compile_upstream(upstream("one", endpoint(1)), directory, 0)
    one.slots[0].open_pool().traffic.count(200, latency_bucket(0.002), 0.002, 0, 0)
    table = compiled(hosts).table
    assert table is not None
    return scrape(ApisixFamilies(stats, EndpointFamilies(pools, directory), lambda: table.hosts))


def test_statuses_have_the_labels_of_apisix() -> None:
    stats = ProxyStats()
    counted(stats, "h|r").count(503, 0, 0.001, 0, 0)
    counted(stats, "h|gone").count(0, 0, 0.001, 0, 0)
    stats.unrouted.count(404, 0, 0.0, 0, 0)
    text = shown(stats, host("h", route("/shop", name="r")))
    rest = 'consumer="",matched_host="h",matched_uri="{}",node="",route="h|{}",service="up"}} 1.0'
    assert 'apisix_http_status{code="503",' + rest.format("/shop", "r") in text
    assert 'apisix_http_status{code="499",' + rest.format("", "gone") in text
    assert 'apisix_http_status{code="404",consumer="",matched_host="",matched_uri="",node="",route="",' in text


def test_latencies_are_in_milliseconds() -> None:
    stats = ProxyStats()
    counted(stats).count(200, latency_bucket(0.002), 0.002, 0, 0)
    text = shown(stats)
    labels = 'consumer="",{}node="",route="h|r",service="up",type="request"}}'
    assert "apisix_http_latency_bucket{" + labels.format('le="1",') + " 0.0" in text
    assert "apisix_http_latency_bucket{" + labels.format('le="2.5",') + " 1.0" in text
    assert "apisix_http_latency_sum{" + labels.format("") + " 2.0" in text


def test_the_time_of_endpoints_is_that_of_nodes() -> None:
    text = shown(ProxyStats())
    assert 'apisix_http_latency_count{consumer="",node="10.0.0.1",route="",service="",type="upstream"} 1.0' in text


def test_bytes_and_connections_are_told_apart_by_type_and_state() -> None:
    stats = ProxyStats()
    counted(stats).count(200, latency_bucket(0.001), 0.001, 10, 1000)
    stats.connections = 5
    stats.refused_connection("all")
    text = shown(stats)
    labels = '{{consumer="",node="",route="h|r",service="up",type="{}"}}'
    assert "apisix_bandwidth" + labels.format("ingress") + " 10.0" in text
    assert "apisix_bandwidth" + labels.format("egress") + " 1000.0" in text
    for state, count in (("accepted", 5), ("handled", 4), ("active", 0)):
        assert f'apisix_nginx_http_current_connections{{state="{state}"}} {count}.0' in text
    assert "apisix_http_requests_total 1.0" in text


def test_consumers_are_shown_by_their_names() -> None:
    consumers = ConsumerTraffic(9)
    stats = ProxyStats(consumers=consumers)
    traffic = counted(stats)
    consumers.count(traffic, "jack", 200, latency_bucket(0.002), 0.002, 10, 1000)
    traffic.count(200, latency_bucket(0.002), 0.002, 10, 1000)
    traffic.count(401, 0, 0.0, 0, 5)
    text = shown(stats)
    labels = '{}consumer="{}",{}node="",route="h|r",service="up"'
    host = 'matched_host="h",matched_uri="",'
    assert "apisix_http_status{" + labels.format('code="200",', "jack", host) + "} 1.0" in text
    assert "apisix_http_status{" + labels.format('code="401",', "", host) + "} 1.0" in text
    assert text.count("apisix_http_status{") == 2
    for consumer, sent in (("jack", "1000"), ("", "5")):
        where = labels.format("", consumer, "")
        assert "apisix_bandwidth{" + where + f',type="egress"}} {sent}.0' in text
        assert "apisix_http_latency_count{" + where + ',type="request"} 1.0' in text
    assert "apisix_http_requests_total 2.0" in text


@pytest.mark.parametrize("name", ["apisix_http_status", "apisix_bandwidth", "apisix_http_requests_total"])
def test_names_survive_the_joining_of_workers(name: str) -> None:
    stats = ProxyStats()
    counted(stats).count(200, latency_bucket(0.001), 0.001, 10, 1000)
    names = {sample.name for family in text_string_to_metric_families(shown(stats)) for sample in family.samples}
    assert name in names


WHERE = {"service", "consumer", "node", "route"}
DASHBOARD = {
    "apisix_http_status": {"code", "consumer", "node", "route", "service"},
    "apisix_http_latency_bucket": {"type", "le", *WHERE},
    "apisix_bandwidth": {"type", "route", "service"},
    "apisix_http_requests_total": set(),
    "apisix_nginx_http_current_connections": {"state"},
}
"""Metrics of the queries of dashboard 11719 of Apache APISIX, with the labels that they select or group by.

`instance` is left out, which scraping adds. The others are documented as empty: `apisix_etcd_*`,
`apisix_nginx_metric_errors_total`, `apisix_shared_dict_*`, and latencies of `type="apisix"`.
"""


def test_queries_of_the_dashboard_find_their_metrics_and_labels() -> None:
    stats = ProxyStats()
    counted(stats).count(200, latency_bucket(0.001), 0.001, 10, 1000)
    samples = [one for each in text_string_to_metric_families(shown(stats)) for one in each.samples]
    for name, labels in DASHBOARD.items():
        found = [one.labels.keys() for one in samples if one.name == name]
        assert found, name
        assert all(labels <= keys for keys in found), name
    typed = [name for name, labels in DASHBOARD.items() if "type" in labels]
    types = {name: {one.labels["type"] for one in samples if one.name == name} for name in typed}
    assert types == {"apisix_http_latency_bucket": {"request", "upstream"}, "apisix_bandwidth": {"ingress", "egress"}}
    states = {one.labels["state"] for one in samples if one.name == "apisix_nginx_http_current_connections"}
    assert states == {"accepted", "handled", "active"}
