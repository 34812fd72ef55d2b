"""What a reference to a Service says of its upstream, and references that cannot be followed."""

from typing import Any

import pytest

from fakes.translator.deltas import tls_secret
from fakes.translator.traefik import ANY, WEB, resource, route, rule
from fakes.translator.traefik_routes import Routes
from headgate.common.table import Timeouts

A = "Host(`a.test`)"
AT = "spec.routes[0].services[0]"


def to(*manifests: Any, **fields: Any) -> Routes:
    """Return what a route to `web` makes."""
    return Routes(*manifests, route(rule(A, {"name": "web", "port": 80, **fields})))


def transport(**spec: Any) -> Any:
    return resource("ServersTransport", "own", spec)


def through(spec: Any, *manifests: Any) -> Routes:
    """Return what a route makes whose servers are spoken to over TLS as a ServersTransport says."""
    return to(*manifests, transport(**spec), scheme="https", serversTransport="own")


@pytest.mark.parametrize(
    ("fields", "reason", "field"),
    [
        ({"name": "api@internal"}, "UnsupportedBackend", "name"),
        ({"name": "web@file"}, "UnsupportedBackend", "name"),
        ({"port": None}, "Required", "port"),
        ({"scheme": "ftp"}, "InvalidValue", "scheme"),
        ({"namespace": "other"}, "RefNotPermitted", "namespace"),
        ({"serversTransport": "lost"}, "ServersTransportNotFound", "serversTransport"),
        ({"sticky": {"cookie": {"path": "/;"}}}, "InvalidValue", "sticky.cookie"),
        ({"healthCheck": {"path": "/", "mode": "tcp"}}, "InvalidValue", "healthCheck.mode"),
        ({"healthCheck": {"path": "/", "method": "A B"}}, "InvalidValue", "healthCheck.method"),
        ({"healthCheck": {"path": "http://b.test/health"}}, "InvalidValue", "healthCheck.path"),
        ({"healthCheck": {"path": ":"}}, "InvalidValue", "healthCheck.path"),
        ({"healthCheck": {"path": "//b.test/"}}, "InvalidValue", "healthCheck.path"),
        ({"healthCheck": {"path": "/a b"}}, "InvalidValue", "healthCheck.path"),
        ({"healthCheck": {}}, "Required", "healthCheck.path"),
        ({"healthCheck": {"path": "/", "interval": "-1s"}}, "InvalidValue", "healthCheck.interval"),
        ({"healthCheck": {"path": "/", "timeout": "-1s"}}, "InvalidValue", "healthCheck.interval"),
        ({"passiveHealthCheck": {"failureWindow": "-1s"}}, "InvalidValue", "passiveHealthCheck.failureWindow"),
        ({"passiveHealthCheck": {"maxFailedAttempts": -1}}, "InvalidValue", "passiveHealthCheck.maxFailedAttempts"),
        ({"middlewares": [{"name": "lost"}]}, "MiddlewareNotFound", "middlewares[0].name"),
    ],
)
def test_a_reference_that_cannot_be_followed_refuses_the_route(fields: Any, reason: str, field: str) -> None:
    assert to(**fields).refused() == [(reason, f"{AT}.{field}")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"path": "/up"}, {"type": "http", "path": "/up", "interval_s": 30.0, "timeout_s": 5.0}),
        ({"mode": "grpc"}, {"type": "grpc", "path": "/"}),
        ({"path": "up?a=b&c=d", "method": "HEAD"}, {"path": "/up?a=b&c=d", "method": "HEAD"}),
        ({"path": "/up", "scheme": "https"}, {"type": "https"}),
        ({"path": "/up", "status": 204, "port": 81}, {"statuses": (204,), "port": 81}),
        ({"path": "/up", "interval": "3s", "timeout": 1}, {"interval_s": 3.0, "timeout_s": 1.0}),
        (
            {"path": "/up", "hostname": "b.test", "headers": {"X-A": "1"}},
            {"host": "b.test", "headers": (("X-A", "1"),)},
        ),
    ],
)
def test_health_checks_are_for_every_service(written: Any, expected: Any) -> None:
    check = to(healthCheck=written).upstream.active_check
    assert check is not None
    assert {name: getattr(check, name) for name in expected} == expected


def test_a_check_of_servers_with_tls_speaks_tls() -> None:
    check = to(scheme="https", healthCheck={"path": "/up"}).upstream.active_check
    assert check is not None
    assert check.type == "https"


@pytest.mark.parametrize(
    ("written", "failures", "window_s"),
    [({}, 1, 10.0), ({"failureWindow": "3s", "maxFailedAttempts": 5}, 5, 3.0)],
)
def test_servers_that_fail_requests_are_left_out_for_a_time(written: Any, failures: int, window_s: float) -> None:
    ejection = to(passiveHealthCheck=written).upstream.ejection
    assert ejection is not None
    assert (ejection.consecutive_errors, ejection.window_s, ejection.base_s) == (failures, window_s, window_s)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"dialTimeout": "2s"}, Timeouts(connect_s=2.0)),
        ({"responseHeaderTimeout": "3s"}, Timeouts(read_s=3.0)),
        ({"dialTimeout": 0, "responseHeaderTimeout": 0, "idleConnTimeout": 0}, Timeouts()),
    ],
)
def test_a_transport_bounds_how_long_servers_are_waited_for(spec: Any, expected: Timeouts) -> None:
    (backend,) = through({"forwardingTimeouts": spec}).route.backends
    assert backend.timeouts == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"maxIdleConnsPerHost": 7}, {"max_idle": 7}),
        ({"maxIdleConnsPerHost": -1}, {"max_idle": 0}),
        ({"forwardingTimeouts": {"idleConnTimeout": "4s"}}, {"idle_timeout_s": 4.0}),
    ],
)
def test_a_transport_says_how_connections_are_kept(spec: Any, expected: Any) -> None:
    upstream = through(spec).upstream
    assert {name: getattr(upstream, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"verify": True, "server_name": ""}),
        ({"serverName": "b.test", "insecureSkipVerify": True}, {"verify": False, "server_name": "b.test"}),
        ({"minVersion": "VersionTLS13"}, {"min_version": "1.3"}),
        ({"peerCertSANs": [{"type": "DNS", "value": "B.test"}]}, {"subject_names": ("b.test",)}),
        ({"rootCAs": [{"secret": "ca"}], "rootCAsSecrets": ["ca"]}, {"ca_pem": "authority\nauthority\n"}),
        ({"certificatesSecrets": ["own"]}, {"certificate_pem": "chain of own"}),
        ({"cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]}, {"ciphers": "ECDHE-RSA-AES128-GCM-SHA256"}),
        ({"cipherSuites": ["TLS_AES_128_GCM_SHA256"]}, {"ciphers": ""}),
    ],
)
def test_a_transport_says_what_is_asked_of_servers(spec: Any, expected: Any) -> None:
    made = through(spec, tls_secret("ca", authorities_pem="authority"), tls_secret("own"))
    assert made.said() == []
    assert made.upstream.tls is not None
    assert {name: getattr(made.upstream.tls, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("spec", "reason", "field"),
    [
        ({"spiffe": {"ids": ["spiffe://a"]}}, "UnsupportedField", "spec.spiffe"),
        ({"peerCertURI": "spiffe://a"}, "UnsupportedField", "spec.peerCertURI"),
        ({"peerCertSANs": [{"type": "URI", "value": "a"}]}, "UnsupportedValue", "spec.peerCertSANs[0]"),
        ({"rootCAs": [{}]}, "InvalidValue", "spec.rootCAs[0]"),
        ({"rootCAs": [{"secret": "ca", "configMap": "ca"}]}, "InvalidValue", "spec.rootCAs[0]"),
        ({"rootCAs": [{"secret": "lost"}]}, "SecretNotFound", "spec.rootCAs[0]"),
        ({"rootCAsSecrets": ["bare"]}, "InvalidSecret", "spec.rootCAsSecrets[0]"),
        ({"rootCAs": [{"configMap": "lost"}]}, "ConfigMapNotFound", "spec.rootCAs[0]"),
        ({"rootCAs": [{"configMap": "empty"}]}, "InvalidConfigMap", "spec.rootCAs[0]"),
        ({"certificatesSecrets": ["lost"]}, "SecretNotFound", "spec.certificatesSecrets[0]"),
        ({"certificatesSecrets": ["none"]}, "InvalidSecret", "spec.certificatesSecrets[0]"),
        ({"minVersion": "TLS12"}, "InvalidValue", "spec.minVersion"),
        ({"maxVersion": "VersionTLS12"}, "UnsupportedValue", "spec.maxVersion"),
        ({"cipherSuites": ["AES"]}, "InvalidValue", "spec.cipherSuites[0]"),
        ({"forwardingTimeouts": {"dialTimeout": "soon"}}, "InvalidValue", "spec.forwardingTimeouts.dialTimeout"),
    ],
)
def test_a_transport_that_cannot_be_followed_is_never_left_out(spec: Any, reason: str, field: str) -> None:
    none = {**tls_secret("none"), "sealed": {"values": {}}}
    empty = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "empty", "namespace": "default"}, "data": {}}
    made = through(spec, tls_secret("bare"), none, empty)
    assert set(made.refused()) == {("InvalidServersTransport", f"{AT}.serversTransport"), (reason, field)}


@pytest.mark.parametrize(
    ("written", "expected"), [("none", "None"), ("NONE", "None"), ("Lax", "Lax"), ("STRICT", "Strict"), ("", "")]
)
def test_the_same_site_of_a_cookie_may_be_in_any_case(written: str, expected: str) -> None:
    sticky = {"cookie": {"sameSite": written}}
    stickiness = Routes(route(rule(ANY, {"name": "web", "port": 80, "sticky": sticky}))).route.stickiness
    assert stickiness is not None
    assert (stickiness.same_site or "") == expected


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_mirror_has_a_share_from_0_to_100_percent(percent: int) -> None:
    mirroring = {**WEB, "mirrors": [{**WEB, "percent": percent}]}
    made = Routes(
        resource("TraefikService", "copied", {"mirroring": mirroring}),
        route(rule(ANY, {"name": "copied", "kind": "TraefikService"})),
    )
    assert ("InvalidValue", "spec.mirroring.mirrors[0].percent") in made.refused()
