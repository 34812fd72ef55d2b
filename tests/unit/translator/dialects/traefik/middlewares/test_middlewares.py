"""Middlewares that cannot be followed refuse the routes that use them; the others become plugins."""

from typing import Any

import pytest

from fakes.translator.deltas import tls_secret
from fakes.translator.traefik import middleware, route, rule
from fakes.translator.traefik_routes import Routes

A = "Host(`a.test`)"
REDIS = {"endpoints": ["redis:6379"]}


def with_middleware(*manifests: Any, **spec: Any) -> Routes:
    return Routes(*manifests, middleware("one", **spec), route(rule(A, middlewares=["one"])))


def limited(**fields: Any) -> Any:
    return {"rateLimit": {"average": 1, **fields}}


def asking(**tls: Any) -> Any:
    return {"forwardAuth": {"address": "https://auth.test", "tls": tls}}


def pages(**fields: Any) -> Any:
    return {"errors": {"status": ["500"], "query": "/", "service": {"name": "web", "port": 80}, **fields}}


@pytest.mark.parametrize(
    ("spec", "reason", "field"),
    [
        ({}, "InvalidValue", ""),
        ({"addPrefix": {"prefix": ""}}, "Required", "addPrefix.prefix"),
        ({"replacePathRegex": {"replacement": "/a"}}, "Required", "replacePathRegex.regex"),
        ({"redirectRegex": {"replacement": "/a"}}, "Required", "redirectRegex.regex"),
        ({"redirectRegex": {"regex": "a", "replacement": "$0"}}, "UnsupportedField", "redirectRegex.replacement"),
        ({"redirectScheme": {"scheme": "HTTPS"}}, "InvalidValue", "redirectScheme.scheme"),
        ({"redirectScheme": {"scheme": "https", "port": "x"}}, "InvalidValue", "redirectScheme.port"),
        ({"redirectScheme": {"scheme": "https", "port": "65536"}}, "InvalidValue", "redirectScheme.port"),
        ({"ipAllowList": {}}, "Required", "ipAllowList.sourceRange"),
        ({"basicAuth": {}}, "Required", "basicAuth.secret"),
        ({"basicAuth": {"secret": "lost"}}, "SecretNotFound", "basicAuth.secret"),
        ({"digestAuth": {"secret": "two"}}, "InvalidSecret", "digestAuth.secret"),
        (limited(period="-1s"), "InvalidValue", "rateLimit.period"),
        (limited(sourceCriterion={"requestHost": True, "ipStrategy": {}}), "InvalidValue", "rateLimit.sourceCriterion"),
        (limited(redis={}), "Required", "rateLimit.redis.endpoints"),
        (limited(redis={"endpoints": ["redis"]}), "InvalidValue", "rateLimit.redis.endpoints"),
        (limited(redis={**REDIS, "tls": {"caSecret": "ca"}}), "SecretNotFound", "rateLimit.redis.tls.caSecret"),
        (limited(redis={**REDIS, "secret": "lost"}), "SecretNotFound", "rateLimit.redis.secret"),
        ({"forwardAuth": {"address": "auth.test"}}, "InvalidValue", "forwardAuth.address"),
        (asking(caSecret="lost"), "SecretNotFound", "forwardAuth.tls.caSecret"),
        (asking(caSecret="bare"), "InvalidSecret", "forwardAuth.tls.caSecret"),
        (asking(certSecret="lost"), "SecretNotFound", "forwardAuth.tls.certSecret"),
        (asking(certSecret="none"), "InvalidSecret", "forwardAuth.tls.certSecret"),
        (pages(status=["99"]), "InvalidValue", "errors.status"),
        (pages(status=["100"]), "InvalidValue", "errors.status"),
        (pages(service=None), "Required", "errors.service"),
        (pages(service={"name": "web"}), "Required", "errors.service.port"),
        (pages(service={"name": "web", "port": 80, "namespace": "b"}), "RefNotPermitted", "errors.service.namespace"),
    ],
)
def test_a_middleware_that_cannot_be_followed_refuses_the_route(spec: Any, reason: str, field: str) -> None:
    value = {"boxes": {"recipient": "sealed"}}
    two = {**tls_secret("two"), "type": "Opaque", "sealed": {"values": {"a": value, "b": value}}}
    none = {**tls_secret("none"), "sealed": {"values": {}}}
    made = with_middleware(tls_secret("bare"), two, none, **spec)
    assert (reason, f"spec.{field}".removesuffix(".")) in made.refused()


@pytest.mark.parametrize(
    "spec",
    [
        {"stripPrefix": {}},
        {"stripPrefixRegex": {}},
        {"rateLimit": {}},
        {"contentType": {"autoDetect": False}},
        pages(status=[]),
    ],
)
def test_a_middleware_may_have_nothing_to_do(spec: Any) -> None:
    assert with_middleware(**spec).plugins == []


@pytest.mark.parametrize(
    ("regex", "replacement", "expected"),
    [
        ("^/a/(.*)", "/b/$1", "/b/${1}"),
        ("^/a/(?P<rest>.*)", "/b/${rest}", "/b/${1}"),
        ("^/(?:a)/(b)", "/$1$2", "/${1}"),
        (r"^/[(]\(\Q(\E(b)", "/$1", "/${1}"),
        ("^/(a)", "/$lost/$1", "//${1}"),
        ("^/(a)", "/x?y", "/x%3Fy"),
    ],
)
def test_replacements_name_groups_as_go_does(regex: str, replacement: str, expected: str) -> None:
    (use,) = with_middleware(replacePathRegex={"regex": regex, "replacement": replacement}).plugins
    assert use.config["regex_uri"][1] == expected


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        ({"requestHost": True}, {"key": "host"}),
        ({"requestHeaderName": "X-Client"}, {"key": "http_x_client"}),
        ({"ipStrategy": {"depth": 2}}, {"client": {"depth": 2, "ipv6_subnet": None}}),
        ({"ipStrategy": {"excludedIPs": ["10.0.0.0/8"]}}, {"client": {"excluded": ["10.0.0.0/8"]}}),
        ({"ipStrategy": {"ipv6Subnet": 64}}, {"client": {"ipv6_subnet": 64}}),
    ],
)
def test_requests_are_counted_by_one_criterion(criterion: Any, expected: Any) -> None:
    (use,) = with_middleware(rateLimit={"average": 1, "sourceCriterion": criterion}).plugins
    assert {name: use.config[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("redis", "expected"),
    [
        (REDIS, {"policy": "redis", "redis_host": "redis", "redis_port": 6379, "redis_timeout": 3000}),
        ({"endpoints": ["[::1]:1"], "readTimeout": "1s"}, {"redis_host": "::1", "redis_timeout": 1000}),
        ({"endpoints": ["a:1", "b:2"]}, {"policy": "redis-cluster", "redis_cluster_nodes": ["a:1", "b:2"]}),
        ({**REDIS, "tls": {}}, {"redis_ssl": True, "redis_ssl_verify": True}),
    ],
)
def test_counts_may_be_shared(redis: Any, expected: Any) -> None:
    (use,) = with_middleware(rateLimit={"average": 1, "redis": redis}).plugins
    assert {name: use.config.get(name) for name in expected} == expected


def test_redis_is_known_by_authorities_and_knows_us_by_a_certificate() -> None:
    secrets = tls_secret("ca", authorities_pem="authority"), tls_secret("own")
    redis = {**REDIS, "tls": {"caSecret": "ca", "certSecret": "own"}}
    made = with_middleware(*secrets, rateLimit={"average": 1, "redis": redis})
    assert made.said() == []
    (use,) = made.plugins
    assert (use.config["redis_ssl_ca"], use.config["redis_ssl_certificate"]) == ("authority", "chain of own")
    assert [*use.secrets] == ["redis_ssl_key"]


def test_an_auth_server_is_known_by_its_authorities_and_knows_us_by_a_certificate() -> None:
    secrets = tls_secret("ca", authorities_pem="authority"), tls_secret("own")
    made = with_middleware(*secrets, **asking(caSecret="ca", certSecret="own"))
    assert made.said() == []
    (server,) = [each for each in made.upstreams if each.tls is not None]
    assert server.tls is not None
    assert (server.tls.ca_pem, server.tls.certificate_pem, server.tls.verify) == ("authority", "chain of own", True)


def test_an_auth_server_without_tls_has_no_use_for_it() -> None:
    made = with_middleware(forwardAuth={"address": "http://auth.test", "tls": {"caSecret": "lost"}})
    assert made.said() == []
    assert {each.tls for each in made.upstreams} == {None}
