"""What is behind the rules of an ApisixRoute: Services as ApisixUpstreams shape them, external nodes, registries."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource, route, rule
from fakes.translator.deltas import applied, endpoint_slice, service
from headgate.common.problems import Severity
from headgate.common.table import BackendProtocol, BalancingPolicy, VirtualHost
from headgate.translator.dialects.apisix.models.upstream import MAX_NODES
from headgate.translator.offline import translate_all

NODES = [{"name": "one.example.com", "type": "Domain", "port": 8080}, {"name": "Two.example.com", "type": "Domain"}]


def upstream(name: str = "web", version: str = "v2", **spec: Any) -> Any:
    return resource("ApisixUpstream", name, spec, version)


def backend(service_name: str = "web", port: Any = 80, **fields: Any) -> Any:
    return {"serviceName": service_name, "servicePort": port, **fields}


def to(*backends: Any, **fields: Any) -> Any:
    return route(rule(backends=list(backends), **fields))


def addresses(table: Translated, key: str = "a/default/web:80/apisix") -> list[tuple[str, int]]:
    return [(each.address, each.port) for each in table.upstream(key).endpoints]


# Services


def test_a_rule_with_nothing_that_could_answer_is_told() -> None:
    silent, redirecting = rule("silent", "/a", backends=[]), rule("redirecting", "/b", backends=[])
    redirecting["plugins"] = [{"name": "redirect", "enable": True, "config": {"uri": "/"}}]
    (problem,) = Translated(route(silent, redirecting)).problems()
    assert (problem.severity, problem.reason) == (Severity.WARNING, "NoBackends")
    assert problem.field == "spec.http[0].backends"


def test_a_backend_is_the_pods_of_its_service_by_default() -> None:
    table = Translated(to(backend()), endpoint_slice("web", "10.0.0.1", "10.0.0.2"))
    assert addresses(table) == [("10.0.0.1", 8080), ("10.0.0.2", 8080)]


def test_a_port_may_be_named() -> None:
    table = Translated(to(backend(port="http")), endpoint_slice("web", "10.0.0.1"))
    assert addresses(table, "a/default/web:http/apisix") == [("10.0.0.1", 8080)]


def test_granularity_service_is_the_cluster_ip() -> None:
    manifests = service("ip", clusterIP="10.96.0.7"), endpoint_slice("ip", "10.0.0.1")
    table = Translated(to(backend("ip", resolveGranularity="service")), *manifests)
    assert addresses(table, "a/default/ip:80/apisix/service") == [("10.96.0.7", 80)]


def test_granularity_service_of_a_headless_service_is_refused() -> None:
    table = Translated(to(backend("ip", resolveGranularity="service")), service("ip", clusterIP="None"))
    assert table.errors() == ["spec.http[0].backends[0].serviceName"]
    assert "resolveGranularity" in table.ask("GET", "a.com/").verdict


def test_both_granularities_of_a_service_live_beside_each_other() -> None:
    rules = [rule("pods", "/pods"), rule("ip", "/ip", backends=[backend(resolveGranularity="service")])]
    table = Translated(route(*rules), service("web", clusterIP="10.96.0.7"), endpoint_slice("web", "10.0.0.1"))
    assert addresses(table) == [("10.0.0.1", 8080)]
    assert addresses(table, "a/default/web:80/apisix/service") == [("10.96.0.7", 80)]


def test_a_missing_service_is_said_and_is_a_503_that_names_it() -> None:
    table = Translated(to(backend("nothing")))
    assert [problem.reason for problem in table.problems()] == ["ServiceNotFound"]
    assert "Service default/nothing not found" in table.ask("GET", "a.com/").verdict


def test_a_valid_backend_is_served_beside_an_invalid_one() -> None:
    table = Translated(to(backend(), backend("nothing")), endpoint_slice("web", "10.0.0.1"))
    assert addresses(table) == [("10.0.0.1", 8080)]
    assert table.is_accepted()


@pytest.mark.parametrize("missing", [backend("nothing"), backend(port=81)])
def test_a_backend_that_is_not_there_leaves_its_share_to_one_that_is(missing: Any) -> None:
    found = Translated(to(backend(weight=2), missing)).route().backends
    assert [each.weight for each in found] == [2, 0]


def test_a_backend_that_another_cluster_shares_keeps_its_share() -> None:
    shared = service("shared")
    shared["metadata"]["annotations"] = {"headgate.dev/global": "true"}
    split = to(backend(weight=2), backend("shared", weight=3))
    offline = translate_all([applied(service()), applied(split), applied(shared, "b")])
    (host,) = (entry for entry in offline.entries if isinstance(entry, VirtualHost))
    assert [each.weight for each in host.routes[0].backends] == [2, 3]


@pytest.mark.parametrize("others", [[backend("none")], [backend(weight=0)]])
def test_a_backend_that_is_not_there_keeps_its_share_where_nothing_else_would_serve(others: Any) -> None:
    found = Translated(to(backend("nothing", weight=3), *others)).route().backends
    assert found[0].weight == 3


def test_weights_are_as_written_and_100_by_default() -> None:
    split = to(backend(weight=2), backend("b", weight=0), backend("c"))
    found = Translated(split, service("b"), service("c")).route().backends
    assert [each.weight for each in found] == [2, 0, 100]


def test_a_rule_without_backends_may_be_answered_by_its_plugins() -> None:
    redirect = {"name": "redirect", "enable": True, "config": {"uri": "/other"}}
    table = Translated(to(plugins=[redirect]))
    assert table.problems() == []
    assert table.route().backends == ()


@pytest.mark.parametrize(
    ("app_protocol", "protocol"),
    [
        ("https", BackendProtocol.HTTPS),
        ("kubernetes.io/wss", BackendProtocol.HTTPS),
        ("kubernetes.io/ws", BackendProtocol.HTTP),
        ("kubernetes.io/h2c", BackendProtocol.H2C),
        ("whatever", BackendProtocol.HTTP),
    ],
)
def test_the_scheme_follows_the_services_app_protocol(app_protocol: str, protocol: BackendProtocol) -> None:
    ports = [{"name": "http", "port": 80, "appProtocol": app_protocol}]
    table = Translated(to(backend()), service("web", ports=ports), upstream(retries=1))
    assert table.upstream().protocol is protocol


def test_the_scheme_that_is_written_goes_before_the_services_app_protocol() -> None:
    ports = [{"name": "http", "port": 80, "appProtocol": "https"}]
    table = Translated(to(backend()), service("web", ports=ports), upstream(scheme="http"))
    assert table.upstream().protocol is BackendProtocol.HTTP


# Subsets


def pod(name: str, **labels: str) -> Any:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels}}


def slice_of_pods(**pods: str) -> Any:
    made = endpoint_slice("web", *pods.values())
    for name, endpoint in zip(pods, made["endpoints"], strict=True):
        endpoint["targetRef"] = {"kind": "Pod", "name": name}
    return made


SUBSETS = upstream(subsets=[{"name": "v1", "labels": {"version": "v1"}}, {"name": "v2", "labels": {"version": "v2"}}])
PODS = (slice_of_pods(one="10.0.0.1", two="10.0.0.2"), pod("one", version="v1", app="x"), pod("two", version="v2"))


def test_a_subset_is_the_pods_with_its_labels() -> None:
    table = Translated(to(backend(subset="v1", weight=1), backend(subset="v2", weight=3)), SUBSETS, *PODS)
    assert addresses(table, "a/default/web:80/apisix/subset=v1") == [("10.0.0.1", 8080)]
    assert addresses(table, "a/default/web:80/apisix/subset=v2") == [("10.0.0.2", 8080)]
    assert [each.weight for each in table.route().backends] == [1, 3]


def test_a_subset_that_there_is_not_is_said() -> None:
    table = Translated(to(backend(subset="v3")), SUBSETS, *PODS)
    assert [problem.reason for problem in table.problems()] == ["SubsetNotFound"]


# ApisixUpstream


def shaped(**spec: Any) -> Translated:
    table = Translated(to(backend()), upstream(**spec), endpoint_slice("web", "10.0.0.1"))
    assert table.problems("web") == []
    return table


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("roundrobin", BalancingPolicy.ROUND_ROBIN),
        ("ewma", BalancingPolicy.PEAK_EWMA),
        ("least_conn", BalancingPolicy.LEAST_REQUESTS),
    ],
)
def test_a_load_balancer_without_a_key(written: str, policy: BalancingPolicy) -> None:
    assert shaped(loadbalancer={"type": written}).upstream().balancing.policy is policy


@pytest.mark.parametrize(
    ("hash_on", "key", "hashed"),
    [
        ("vars", "remote_addr", [("client", "")]),
        ("vars", "uri", [("path", "")]),
        ("vars", "request_uri", [("uri", "")]),
        ("vars", "host", [("host", "")]),
        ("vars", "arg_user", [("query", "user")]),
        ("header", "X-User", [("header", "X-User")]),
        ("header", "http_x_user", [("header", "x-user")]),
        ("cookie", "sid", [("cookie", "sid")]),
        ("vars", "query_string", [("query-string", "")]),
        ("vars", "consumer_name", [("consumer", "")]),
        ("consumer", "", [("consumer", "")]),
        ("vars_combinations", "${consumer_name}-$uri", [("consumer", ""), ("path", "")]),
        ("vars_combinations", "$remote_addr$http_x_user", [("client", ""), ("header", "x-user")]),
    ],
)
def test_chash_hashes_what_it_is_told(hash_on: str, key: str, hashed: Any) -> None:
    found = shaped(loadbalancer={"type": "chash", "hashOn": hash_on, "key": key}).upstream().balancing
    assert found.policy is BalancingPolicy.RING_HASH
    assert [(each.source, each.name) for each in found.hash] == hashed


@pytest.mark.parametrize(
    "written",
    [
        {"type": "chash"},
        *({"type": "chash", "key": key} for key in ("server_addr", "remote_port", "hostname", "nothing")),
        {"type": "chash", "hashOn": "vars_combinations", "key": "$remote_addr$hostname"},
        {"type": "chash", "hashOn": "vars_combinations", "key": "text"},
    ],
)
def test_what_cannot_be_hashed_is_refused(written: Any) -> None:
    table = Translated(to(backend()), upstream(loadbalancer=written))
    assert table.errors("web") == ["spec.loadbalancer.key"]


@pytest.mark.parametrize(
    ("scheme", "protocol"),
    [
        ("http", BackendProtocol.HTTP),
        ("https", BackendProtocol.HTTPS),
        ("grpc", BackendProtocol.H2C),
        ("grpcs", BackendProtocol.H2),
    ],
)
def test_the_scheme_is_what_is_spoken(scheme: str, protocol: BackendProtocol) -> None:
    assert shaped(scheme=scheme).upstream().protocol is protocol


@pytest.mark.parametrize(
    ("fields", "host"),
    [
        ({}, None),
        ({"passHost": "pass"}, None),
        ({"passHost": "node"}, ""),
        ({"passHost": "rewrite", "upstreamHost": "b.com"}, "b.com"),
        ({"passHost": "node", "upstreamHost": "b.com"}, ""),
    ],
)
def test_pass_host_says_what_nodes_see(fields: Any, host: str | None) -> None:
    assert shaped(**fields).upstream().host == host


def test_pass_host_rewrite_needs_a_host_and_other_words_are_refused() -> None:
    assert Translated(upstream(passHost="rewrite")).errors("web") == ["spec.upstreamHost"]
    assert Translated(upstream(passHost="keep")).errors("web") == ["spec.passHost"]


@pytest.mark.parametrize(("retries", "attempts"), [(0, 0), (3, 3), (50, 10)])
def test_retries_are_those_of_the_routes(retries: int, attempts: int) -> None:
    assert shaped(retries=retries).route().retries.attempts == attempts


@pytest.mark.parametrize("read", ["5s", 5, "5000ms"])
def test_of_a_timeout_what_is_not_written_is_60_seconds(read: Any) -> None:
    found = shaped(timeout={"read": read}).route().timeouts
    assert (found.connect_s, found.send_s, found.read_s) == (60, 60, 5)


def test_the_rules_own_timeout_goes_first() -> None:
    table = Translated(to(backend(), timeout={"connect": "1s"}), upstream(timeout={"connect": "9s"}))
    assert table.route().timeouts.connect_s == 1


def test_a_health_check_has_the_defaults_of_apisix() -> None:
    checks = {"active": {"type": "http", "httpPath": "/live"}, "passive": {"type": "http"}}
    found = shaped(healthCheck=checks).upstream()
    active, passive = found.active_check, found.ejection
    assert active is not None
    assert passive is not None
    assert (active.path, active.timeout_s, active.interval_s, active.unhealthy_interval_s) == ("/live", 1, 1, 1)
    assert (active.healthy_after, active.unhealthy_after) == (2, 5)
    assert active.failing_statuses == (404, 429, 500, 501, 502, 503, 504, 505)
    assert (passive.consecutive_errors, passive.consecutive_local_errors) == (5, 2)
    assert passive.statuses == (429, 500, 503)


def test_a_health_check_as_it_is_written() -> None:
    active = {
        "type": "https",
        "timeout": 5,
        "host": "h.com",
        "port": 8443,
        "strictTLS": False,
        "requestHeaders": ["X-Probe: yes"],
        "healthy": {"httpCodes": [200], "successes": 1, "interval": "3s"},
        "unhealthy": {"httpCodes": [500], "httpFailures": 4, "interval": "2s"},
    }
    found = shaped(healthCheck={"active": active}).upstream().active_check
    assert found is not None
    assert (found.type, found.timeout_s, found.host, found.port, found.verify) == ("https", 5, "h.com", 8443, False)
    assert (found.interval_s, found.unhealthy_interval_s) == (3, 2)
    assert (found.healthy_after, found.unhealthy_after, found.failing_statuses) == (1, 4, (500,))
    assert found.headers == (("X-Probe", "yes"),)


def test_port_level_settings_take_over_what_they_do_not_say() -> None:
    ports = [{"name": "http", "port": 80}, {"name": "tls", "port": 443}]
    settings = upstream(scheme="http", passHost="node", portLevelSettings=[{"port": 443, "scheme": "https"}])
    table = Translated(to(backend(), backend(port="tls")), service("web", ports=ports), settings)
    found = table.upstream("a/default/web:tls/apisix")
    assert (found.protocol, found.host) == (BackendProtocol.HTTPS, "")
    assert table.upstream().protocol is BackendProtocol.HTTP


def test_the_settings_of_another_controller_are_not_ours() -> None:
    theirs = upstream(scheme="https", ingressClassName="theirs")
    assert Translated(to(backend()), theirs).upstream().protocol is BackendProtocol.HTTP


def test_an_upstream_that_comes_later_takes_effect_and_one_that_goes_no_longer_has_any() -> None:
    assert Translated(to(backend())).upstream().protocol is BackendProtocol.HTTP
    assert Translated(to(backend()), upstream(scheme="https")).upstream().protocol is BackendProtocol.HTTPS


# External nodes and registries

EXTERNAL = "a/default/ApisixUpstream/ext"


def to_upstreams(*names: str, **fields: Any) -> Any:
    return route(rule(backends=fields.pop("backends", []), upstreams=[{"name": name} for name in names], **fields))


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_external_domains_have_the_port_of_the_scheme_by_default(scheme: str, port: int) -> None:
    table = Translated(to_upstreams("ext"), upstream("ext", scheme=scheme, externalNodes=NODES))
    assert addresses(table, EXTERNAL) == [("one.example.com", 8080), ("two.example.com", port)]
    assert [each.weight for each in table.upstream(EXTERNAL).endpoints] == [100, 100]


def test_an_external_node_may_be_an_external_name_service() -> None:
    named = service("named", type="ExternalName", externalName="x.example.com")
    table = Translated(
        to_upstreams("ext"), named, upstream("ext", externalNodes=[{"name": "named", "type": "Service"}])
    )
    assert addresses(table, EXTERNAL) == [("x.example.com", 80)]


def test_an_external_node_that_is_another_service_is_said() -> None:
    table = Translated(to_upstreams("ext"), upstream("ext", externalNodes=[{"name": "web", "type": "Service"}]))
    assert table.errors() == ["spec.http[0].upstreams[0].name"]


def test_an_upstream_names_no_more_nodes_than_gateways_should_ask_for() -> None:
    nodes = [{"name": f"n{number}.example.com", "type": "Domain"} for number in range(MAX_NODES + 1)]
    table = Translated(to_upstreams("ext"), upstream("ext", externalNodes=nodes[:-1]))
    assert len(table.upstream(EXTERNAL).endpoints) == MAX_NODES
    refused = Translated(to_upstreams("ext"), upstream("ext", externalNodes=nodes))
    assert [str(problem) for problem in refused.problems("ext")] == [
        "spec.externalNodes: must have at most 512 elements"
    ]


def test_backends_and_upstreams_may_be_used_together() -> None:
    table = Translated(to_upstreams("ext", backends=[backend()]), upstream("ext", externalNodes=NODES))
    assert [each.upstream for each in table.route().backends] == ["a/default/web:80/apisix", EXTERNAL]


def test_an_upstream_that_there_is_not_is_said() -> None:
    table = Translated(to_upstreams("ext"))
    assert [problem.reason for problem in table.problems()] == ["UpstreamNotFound"]


@pytest.mark.parametrize("name", ["default/web:http", "default/web:80", "a/default/web:80"])
def test_kubernetes_discovery_finds_the_service(name: str) -> None:
    found = upstream("ext", discovery={"type": "kubernetes", "serviceName": name})
    table = Translated(to_upstreams("ext"), found, endpoint_slice("web", "10.0.0.1"))
    assert addresses(table, EXTERNAL) == [("10.0.0.1", 8080)]


def test_dns_discovery_is_a_host_name() -> None:
    found = upstream("ext", discovery={"type": "dns", "serviceName": "x.example.com:8080"})
    assert addresses(Translated(to_upstreams("ext"), found), EXTERNAL) == [("x.example.com", 8080)]


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("grpc", 80), ("https", 443), ("grpcs", 443)])
def test_dns_discovery_without_a_port_takes_that_of_the_scheme(scheme: str, port: int) -> None:
    found = upstream("ext", scheme=scheme, discovery={"type": "dns", "serviceName": "x.example.com"})
    assert addresses(Translated(to_upstreams("ext"), found), EXTERNAL) == [("x.example.com", port)]


@pytest.mark.parametrize("name", ["x.example.com:0", "x.example.com:70000", "x.example.com:http", "a b"])
def test_dns_discovery_of_what_is_no_host_name_is_said(name: str) -> None:
    table = Translated(to_upstreams("ext"), upstream("ext", discovery={"type": "dns", "serviceName": name}))
    assert table.errors("ext") == ["spec.discovery"]


@pytest.mark.parametrize(
    "discovery", [{"type": "nacos", "serviceName": "x"}, {"type": "kubernetes", "serviceName": "x"}]
)
def test_a_registry_that_cannot_be_asked_is_said_to_both_objects(discovery: Any) -> None:
    table = Translated(to_upstreams("ext"), upstream("ext", discovery=discovery))
    assert table.errors("ext") == ["spec.discovery"]
    assert table.errors("route") == ["spec.http[0].upstreams[0].name"]


def test_a_weight_that_no_table_can_have_is_said_at_its_field() -> None:
    table = Translated(to(backend(weight=1_000_001)))
    assert table.errors() == ["spec.http[0].backends[0].weight"]
