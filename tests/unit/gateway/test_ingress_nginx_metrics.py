"""The names of ingress-nginx, which its dashboards ask for."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes.gateway.tls_listener import entry
from headgate.gateway.observability.ingress_nginx_metrics import IngressNginxFamilies
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import latency_bucket
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.tls.server import CertificateStore
from unit.gateway.test_traffic_metrics import counted, scrape

ROUTE = "shop.example|paris/shop/web prefix /cart"
UPSTREAM = "paris/shop/cart:80"


def samples(stats: ProxyStats, *names: str, is_serving: bool = True) -> list[tuple[str, dict[str, str], float]]:
    """Return what is shown: names, labels and values."""
    store = CertificateStore()
    if names:
        store.set_certificates([entry(*names, key="paris/shop/cert")])
    text = scrape(IngressNginxFamilies(stats, store, lambda: is_serving))
    return [(one.name, one.labels, one.value) for each in text_string_to_metric_families(text) for one in each.samples]


def of(found: list[tuple[str, dict[str, str], float]], name: str) -> list[tuple[dict[str, str], float]]:
    return [(labels, value) for each, labels, value in found if each == f"nginx_ingress_controller_{name}"]


def test_requests_are_told_apart_by_ingress_path_service_and_status() -> None:
    stats = ProxyStats()
    traffic = counted(stats, ROUTE, UPSTREAM)
    traffic.count(200, latency_bucket(0.002), 0.002, 10, 1000)
    traffic.count(503, latency_bucket(0.002), 0.002, 0, 5)
    traffic.count(0, latency_bucket(0.002), 0.002, 0, 0)
    found = of(samples(stats), "requests")
    assert {labels["status"]: value for labels, value in found} == {"200": 1, "503": 1, "499": 1}
    labels = found[0][0]
    assert (labels["namespace"], labels["ingress"], labels["service"]) == ("shop", "web", "cart")
    assert (labels["host"], labels["path"], labels["method"], labels["canary"]) == ("shop.example", "/cart", "", "")
    assert labels["controller_class"] == "k8s.io/ingress-nginx"
    assert labels["controller_pod"]


def test_requests_that_no_route_takes_are_of_no_ingress() -> None:
    stats = ProxyStats()
    stats.unrouted.count(404, 0, 0.0, 0, 0)
    ((labels, value),) = of(samples(stats), "requests")
    assert (labels["ingress"], labels["host"], labels["status"], value) == ("", "", "404", 1)


def test_routes_that_ingress_nginx_does_not_tell_apart_are_one_series() -> None:
    stats = ProxyStats()
    for number, name in enumerate(("exact /cart", "prefix /cart", "location regex* /cart")):
        counted(stats, f"shop.example|paris/shop/web {name}", f"paris/shop/cart:{80 + number}").count(
            200, latency_bucket(0.5), 0.5, 1, 2
        )
    counted(stats, "shop.example|london/shop/web prefix /cart", "london/shop/cart:80").count(
        503, latency_bucket(0.5), 0.5, 1, 2
    )
    found = samples(stats)
    assert sorted((labels["status"], value) for labels, value in of(found, "requests")) == [("200", 3), ("503", 1)]
    for name, total in (("request_duration_seconds_sum", 2.0), ("request_size_sum", 4), ("response_size_count", 4)):
        assert [value for _, value in of(found, name)] == [total]


def test_no_series_is_there_twice() -> None:
    stats = ProxyStats(max_series=0)
    stats.unrouted.count(404, 0, 0.0, 0, 0)
    stats.unrouted.count(0, 0, 0.0, 0, 0)
    stats.unrouted.count(499, 0, 0.0, 0, 0)
    stats.series()[1].count(404, 0, 0.0, 0, 0)
    found = of(samples(stats), "requests")
    assert {labels["status"]: value for labels, value in found} == {"404": 2, "499": 2}
    assert len(found) == 2


@pytest.mark.parametrize(
    ("name", "ingress", "path"),
    [
        ("paris/shop/web exact /a b", "web", "/a b"),
        ("paris/shop/web location exact /x", "web", "/x"),
        ("paris/shop/web location = /x", "web", "/x"),
        ("paris/shop/web rest", "web", "/"),
        ("paris/ingress-nginx/controller default backend", "", "/"),
    ],
)
def test_paths_are_read_of_every_kind_of_route(name: str, ingress: str, path: str) -> None:
    stats = ProxyStats()
    counted(stats, f"shop.example|{name}", UPSTREAM).count(200, latency_bucket(0.002), 0.002, 10, 1000)
    ((labels, _),) = of(samples(stats), "requests")
    assert (labels["ingress"], labels["path"]) == (ingress, path)


def test_durations_and_sizes_are_histograms() -> None:
    stats = ProxyStats()
    counted(stats, ROUTE, UPSTREAM).count(200, latency_bucket(0.002), 0.002, 10, 1000)
    found = samples(stats)
    buckets = {labels["le"]: value for labels, value in of(found, "request_duration_seconds_bucket")}
    assert (buckets["0.001"], buckets["0.0025"], buckets["+Inf"]) == (0, 1, 1)
    assert [value for _, value in of(found, "request_duration_seconds_sum")] == [0.002]
    assert [value for _, value in of(found, "request_size_sum")] == [10]
    assert [value for _, value in of(found, "response_size_sum")] == [1000]


def test_certificates_end_by_host() -> None:
    found = of(samples(ProxyStats(), "a.example", "b.example"), "ssl_expire_time_seconds")
    assert {labels["host"] for labels, _ in found} == {"a.example", "b.example"}
    assert {labels["secret_name"] for labels, _ in found} == {"cert"}


@pytest.mark.parametrize("is_serving", [True, False])
def test_the_last_reload_is_good_while_a_table_is_served(is_serving: bool) -> None:
    found = of(samples(ProxyStats(), is_serving=is_serving), "config_last_reload_successful")
    assert [value for _, value in found] == [float(is_serving)]


CONTROLLER = {"controller_pod", "controller_class", "controller_namespace"}
WHERE = {*CONTROLLER, "ingress", "namespace"}
DASHBOARDS = {
    "requests": {*WHERE, "status"},
    "request_duration_seconds_bucket": {*WHERE, "le", "method", "host", "path"},
    "request_duration_seconds_count": {"ingress", "method", "host", "path", "status"},
    "response_duration_seconds_bucket": {"ingress", "le", "method", "host", "path"},
    "response_duration_seconds_sum": {"ingress", "method", "host", "path"},
    "request_size_sum": WHERE,
    "response_size_sum": {*WHERE, "method", "host", "path"},
    "response_size_count": {"ingress", "method", "host", "path"},
    "response_size_bucket": {"ingress", "le"},
    "nginx_process_connections": {*CONTROLLER, "state"},
    "nginx_process_cpu_seconds_total": CONTROLLER,
    "nginx_process_resident_memory_bytes": CONTROLLER,
    "config_last_reload_successful": CONTROLLER,
    "ssl_expire_time_seconds": {"host", "namespace"},
}
"""Metrics of the queries of the dashboards `nginx` and `request-handling-performance` of ingress-nginx, with the labels
that they select or group by; scraping makes `exported_namespace` of `namespace`. Those about reloads are left out, as
there are none: `nginx_ingress_controller_success`, `_config_last_reload_successful_timestamp_seconds`.
"""


def test_queries_of_the_dashboards_find_their_metrics_and_labels() -> None:
    stats = ProxyStats()
    counted(stats, ROUTE, UPSTREAM).count(200, latency_bucket(0.001), 0.001, 10, 1000)
    found = samples(stats, "a.example")
    for name, labels in DASHBOARDS.items():
        there = of(found, name)
        assert there, name
        assert all(labels <= keys.keys() for keys, _ in there), name


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("headgate", ("headgate",)),
        ("both", ("headgate", "apisix")),
        ("headgate,ingress-nginx", ("headgate", "ingress-nginx")),
        ("ingress-nginx", ("ingress-nginx",)),
    ],
)
def test_names_can_be_had_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, written: str, names: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HEADGATE_METRIC_NAMES", written)
    assert GatewaySettings().metric_names == names


@pytest.mark.parametrize(
    ("written", "problem"),
    [("", "has no name"), (",", "has no name"), ("headgate,headgate", "has headgate more than once")],
)
def test_no_names_and_names_that_are_there_twice_are_refused(
    monkeypatch: pytest.MonkeyPatch, written: str, problem: str
) -> None:
    monkeypatch.setenv("HEADGATE_METRIC_NAMES", written)
    with pytest.raises(ValueError, match=problem):
        GatewaySettings()
