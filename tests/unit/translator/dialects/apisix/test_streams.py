"""Stream rules: ports that open with the table, server names, and the plugins that streams have."""

from typing import Any

import pytest

from fakes.translator.apisix import BACKEND, Translated, resource, route
from fakes.translator.deltas import service
from headgate.common.table import BackendProtocol, HashKey, MqttConnect

UDP = service("dns", ports=[{"name": "dns", "port": 53, "protocol": "UDP"}])


def stream(port: int = 9100, protocol: str = "TCP", host: str = "", **fields: Any) -> Any:
    match: Any = {"ingressPort": port, **({"host": host} if host else {})}
    return {"name": "stream", "protocol": protocol, "match": match, "backend": BACKEND, **fields}


def served(*rules: Any, **more: Any) -> Translated:
    return Translated(route(stream=rules), UDP, *more.get("manifests", ()))


def mqtt_proxy(**config: Any) -> Any:
    return {"name": "mqtt-proxy", "enable": True, "config": config}


def test_a_tcp_port_opens_with_its_rule() -> None:
    table = served(stream())
    (found,) = table.streams()
    assert table.problems() == []
    assert (found.protocol, found.port, found.server_names) == ("tcp", 9100, ())
    assert table.upstream(found.backends[0].upstream).protocol is BackendProtocol.TCP


def test_a_udp_port_opens_with_its_rule() -> None:
    table = served(stream(5353, "UDP", backend={"serviceName": "dns", "servicePort": 53}))
    (found,) = table.streams()
    assert (found.protocol, found.port) == ("udp", 5353)
    assert table.upstream(found.backends[0].upstream).protocol is BackendProtocol.UDP


def test_a_host_is_the_server_name_of_tls_that_ends_here() -> None:
    (found,) = served(stream(host="A.com")).streams()
    assert (found.protocol, found.server_names, found.terminate) == ("tls", ("a.com",), True)


def test_rules_of_one_port_are_told_apart_by_server_names() -> None:
    rules = [{**stream(host=host), "name": host} for host in ("a.com", "b.com")]
    assert len(served(*rules, stream(9200)).streams()) == 3


def test_a_port_that_another_object_has_is_a_conflict_that_the_older_wins() -> None:
    old = route(name="old", stream=[stream()], creationTimestamp="2020-01-01T00:00:00Z")
    new = route(name="new", stream=[stream()], creationTimestamp="2024-01-01T00:00:00Z")
    table = Translated(new, old)
    assert [one.provenance.name for one in table.streams()] == ["old"]
    assert table.errors("new") == ["spec.stream[0].match.ingressPort"]


def test_an_upstream_with_scheme_tls_is_spoken_tls_to() -> None:
    table = served(stream(), manifests=[resource("ApisixUpstream", "web", {"scheme": "tls"})])
    (found,) = table.streams()
    assert table.upstream(found.backends[0].upstream).protocol is BackendProtocol.TLS


@pytest.mark.parametrize(
    ("config", "networks"),
    [
        ({"whitelist": ["10.0.0.0/8", "2001:db8::1"]}, {"10.0.0.0/8", "2001:db8::1/128"}),
        ({"blacklist": ["0.0.0.0/1"]}, {"128.0.0.0/1", "::/0"}),
    ],
)
def test_ip_restriction_says_who_may_connect(config: Any, networks: set[str]) -> None:
    (found,) = served(stream(plugins=[{"name": "ip-restriction", "enable": True, "config": config}])).streams()
    assert set(found.allowed_networks) == networks


def test_limit_conn_bounds_the_connections() -> None:
    config = {"conn": 5, "burst": 1, "default_conn_delay": 0.1, "key": "remote_addr"}
    (found,) = served(stream(plugins=[{"name": "limit-conn", "enable": True, "config": config}])).streams()
    assert found.max_connections == 6


@pytest.mark.parametrize("host", ["", "a.com"])
def test_mqtt_proxy_says_how_connections_begin(host: str) -> None:
    (found,) = served(stream(host=host, plugins=[mqtt_proxy(protocol_level=5)])).streams()
    assert found.mqtt == MqttConnect(protocol_name="MQTT", protocol_level=5)
    (found,) = served(stream(plugins=[mqtt_proxy(protocol_name="MQIsdp", protocol_level=3)])).streams()
    assert found.mqtt == MqttConnect(protocol_name="MQIsdp", protocol_level=3)


def test_a_wrong_level_of_mqtt_is_shown_with_those_that_there_are() -> None:
    (problem,) = served(stream(plugins=[mqtt_proxy(protocol_level="5")])).problems()
    assert '5 for MQTT 5, 3 for MQTT 3.1; it is "5"' in problem.message


def test_an_upstream_of_streams_is_balanced_by_the_ids_of_mqtt_clients() -> None:
    chash = {"loadbalancer": {"type": "chash", "hashOn": "vars", "key": "mqtt_client_id"}}
    upstream = resource("ApisixUpstream", "web", chash)
    table = served(stream(plugins=[mqtt_proxy(protocol_level=4)]), manifests=[upstream])
    assert table.problems() == []
    (found,) = table.streams()
    assert table.upstream(found.backends[0].upstream).balancing.hash == (HashKey(source="mqtt-client-id"),)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (stream(plugins=[{"name": "redis-proxy", "enable": True}]), "plugins[0].name"),
        (stream(plugins=[{"name": "mqtt-proxy", "enable": True}]), "plugins[0].config"),
        (stream(plugins=[mqtt_proxy(protocol_level="4")]), "plugins[0].config"),
        (stream(plugins=[mqtt_proxy(protocol_level=6)]), "plugins[0].config"),
        (stream(plugins=[mqtt_proxy(protocol_level=4, protocol_name="")]), "plugins[0].config"),
        (stream(protocol="UDP", plugins=[mqtt_proxy(protocol_level=4)]), "plugins[0].config"),
        (stream(plugins=[{"name": "ip-restriction", "enable": True}]), "plugins[0].config"),
        (stream(protocol="UDP", host="a.com"), "match.host"),
        (stream(host="a b"), "match.host"),
        (stream(protocol="SCTP"), "protocol"),
        (stream(port=0), "match.ingressPort"),
    ],
)
def test_what_cannot_be_done_leaves_the_port_closed(rule: Any, field: str) -> None:
    table = served(rule)
    assert table.errors() == [f"spec.stream[0].{field}"]
    assert table.streams() == []
