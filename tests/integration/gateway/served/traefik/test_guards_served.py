"""Middlewares that guard servers, from manifests to the wire."""

import base64
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

from fakes.gateway.proxied import answering
from fakes.gateway.served import HOST
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, secret, world
from fakes.translator.traefik import ANY, middleware, resource, route, rule, used
from headgate.gateway.proxy.config import ProxyConfig

FAILED = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"
FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
async def web() -> AsyncIterator[World]:
    """A proxy before a Service `web`, which trusts what its clients forward."""
    async with world("web", config=ProxyConfig(trusted_proxies=("127.0.0.0/8",))) as made:
        yield made


# ipStrategy


@pytest.mark.parametrize(
    ("strategy", "networks", "forwarded", "status"),
    [
        ({"depth": 1}, ["10.0.0.1"], "10.0.0.9, 10.0.0.1", 200),
        ({"depth": 2}, ["10.0.0.1"], "10.0.0.1, 10.0.0.9", 200),
        ({"depth": 3}, ["10.0.0.0/8"], "10.0.0.1, 10.0.0.9", 403),
        ({"depth": 1}, ["127.0.0.1"], "", 403),
        ({"excludedIPs": ["10.0.0.9"]}, ["10.0.0.1"], "10.0.0.1, 10.0.0.9", 200),
        ({"excludedIPs": ["10.0.0.0/8"]}, ["0.0.0.0/0"], "10.0.0.1, 10.0.0.9", 403),
        ({}, ["10.0.0.9"], "10.0.0.9", 200),
        ({"depth": 1, "ipv6Subnet": 64}, ["2001:db8::"], "2001:db8::1", 200),
        ({"depth": 1, "ipv6Subnet": 64}, ["2001:db8::1"], "2001:db8::1", 403),
        ({"depth": 1, "ipv6Subnet": 64}, ["10.0.0.1"], "10.0.0.1", 200),
    ],
)
async def test_an_address_of_the_chain_is_the_clients(
    web: World, strategy: Any, networks: list[str], forwarded: str, status: int
) -> None:
    used(web, {"ipAllowList": {"sourceRange": networks, "ipStrategy": strategy}})
    assert await web.proxy.status(**({"X_Forwarded_For": forwarded} if forwarded else {})) == status


@pytest.mark.parametrize(
    "limit",
    [
        {"rateLimit": {"average": 1, "period": "1h", "sourceCriterion": {"ipStrategy": {"depth": 1}}}},
        {
            "rateLimit": {
                "average": 1,
                "period": "1h",
                "sourceCriterion": {"ipStrategy": {"excludedIPs": ["127.0.0.2"]}},
            }
        },
    ],
)
async def test_requests_are_counted_by_an_address_of_the_chain(web: World, limit: Any) -> None:
    used(web, limit)
    found = [await web.proxy.status(X_Forwarded_For=f"10.0.0.9, 10.0.0.{number}") for number in (1, 1, 2)]
    assert found == [200, 429, 200]


async def test_two_limits_of_a_route_count_by_addresses_of_their_own(web: World) -> None:
    limit = {"average": 1, "period": "1h", "burst": 2}
    strategies = ({"ipStrategy": {"depth": 1}}, {"ipStrategy": {"depth": 2}})
    used(web, *({"rateLimit": {**limit, "sourceCriterion": one}} for one in strategies))
    chains = ("10.0.0.1, 10.0.0.2", "10.0.0.2, 10.0.0.1", "10.0.0.1, 10.0.0.3", "10.0.0.1, 10.0.0.4")
    assert [await web.proxy.status(X_Forwarded_For=one) for one in chains] == [200, 200, 200, 429]


async def test_requests_without_the_address_are_counted_together(web: World) -> None:
    used(web, {"rateLimit": {"average": 1, "period": "1h", "sourceCriterion": {"ipStrategy": {"depth": 5}}}})
    assert [await web.proxy.status(X_Forwarded_For=one) for one in ("10.0.0.1", "10.0.0.2")] == [200, 429]


# encodedCharacters


@pytest.mark.parametrize(
    ("spec", "path", "status"),
    [
        ({}, "/a", 200),
        ({}, "/a%20b?x=%3B%2F", 200),
        ({}, "/a%3Bb", 400),
        ({}, "/a%3bb", 400),
        ({}, "/a%25b", 400),
        ({}, "/a%23b", 400),
        ({}, "/a%3Fb", 400),
        ({"allowEncodedSemicolon": True}, "/a%3Bb", 200),
        ({"allowEncodedPercent": True}, "/a%252F", 200),
        ({"allowEncodedHash": True, "allowEncodedQuestionMark": True}, "/a%23%3F", 200),
    ],
)
async def test_encoded_characters(web: World, spec: Any, path: str, status: int) -> None:
    used(web, {"encodedCharacters": spec})
    assert await web.proxy.status(path) == status


# circuitBreaker


@pytest.mark.parametrize(
    ("expression", "answer", "statuses"),
    [
        ("ResponseCodeRatio(500, 600, 0, 600) > 0.30", FAILED, [500, 503]),
        ("ResponseCodeRatio(500, 600, 0, 600) > 0.30", FINE, [200, 200]),
        ("NetworkErrorRatio() > 0.5", FAILED, [500, 500]),
        ("NetworkErrorRatio() > 0.5", FAILED.replace(b"500", b"502"), [502, 503]),
        ("LatencyAtQuantileMS(50.0) >= 0", FINE, [200, 503]),
        ("LatencyAtQuantileMS(50.0) > 60000", FINE, [200, 200]),
        (
            "RequestThreshold() >= 1 && (NetworkErrorRatio() > 0.5 || ResponseCodeRatio(500, 600, 0, 600) >= 1.0)",
            FAILED,
            [500, 503],
        ),
    ],
)
async def test_a_circuit_opens_by_an_expression(expression: str, answer: bytes, statuses: list[int]) -> None:
    async with world(web=answering(answer)) as made:
        used(made, {"circuitBreaker": {"expression": expression}})
        assert [await made.proxy.status() for _ in statuses] == statuses


async def test_a_circuit_closes_again() -> None:
    async with world(web=answering(FAILED, FINE)) as made:
        spec = {
            "expression": "ResponseCodeRatio(500, 600, 0, 600) > 0.3",
            "checkPeriod": "1ns",
            "fallbackDuration": "1ms",
            "recoveryDuration": "1ms",
            "responseCode": 429,
        }
        used(made, {"circuitBreaker": spec})
        assert await made.proxy.status() == 500
        found = [await made.proxy.status() for _ in range(200)]
        assert set(found) <= {200, 429}
        assert found[-1] == 200


async def test_a_circuit_hears_of_what_comes_behind_it_alone(web: World) -> None:
    breaker = {"circuitBreaker": {"expression": "ResponseCodeRatio(400, 500, 0, 600) > 0.3"}}
    forbidden = {"ipAllowList": {"sourceRange": ["192.0.2.1"]}}
    used(web, forbidden, breaker)
    assert [await web.proxy.status() for _ in range(2)] == [403, 403]
    used(web, breaker, forbidden)
    assert [await web.proxy.status() for _ in range(2)] == [403, 503]


# passTLSClientCert


async def test_servers_hear_of_the_clients_certificate(tmp_path: Path) -> None:
    authority = Authority()
    shown = authority.issue(
        "client.test",
        x509.DNSName("a.test"),
        x509.RFC822Name("jack@a.test"),
        x509.IPAddress(ip_address("10.0.0.1")),
        organization="Org",
    )
    context = unverified()
    context.load_cert_chain(*shown.write(tmp_path))
    async with world("web") as made:
        made.proxy.proxy.present(HOST, authority.issue(HOST))
        options = resource("TLSOption", "certs", {"clientAuth": {"clientAuthType": "RequireAnyClientCert"}})
        subject = {"country": True, "organization": True, "commonName": True}
        info = {"subject": subject, "issuer": subject, "serialNumber": True, "notBefore": True, "notAfter": True}
        listed = middleware("m", passTLSClientCert={"pem": True, "info": {**info, "sans": True}})
        secured = route(rule(ANY, middlewares=["m"]), spec={"tls": {"options": {"name": "certs"}}})
        made.proxy.apply(options, listed, secured)
        assert (await made.proxy.proxy.secure(context)).status == 200
        head = made.servers["web"].heads[-1].decode()
    lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
    certificate = shown.certificate
    der = certificate.public_bytes(serialization.Encoding.DER)
    assert base64.b64decode(lines["X-Forwarded-Tls-Client-Cert"]) == der
    issuer = certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    assert unquote_plus(lines["X-Forwarded-Tls-Client-Cert-Info"]).split(";") == [
        'Subject="O=Org,CN=client.test"',
        f'Issuer="CN={issuer}"',
        f'SerialNumber="{certificate.serial_number}"',
        f'NB="{int(certificate.not_valid_before_utc.timestamp())}"',
        f'NA="{int(certificate.not_valid_after_utc.timestamp())}"',
        'SAN="a.test,jack@a.test,10.0.0.1"',
    ]


async def test_forged_headers_about_a_certificate_do_not_pass(web: World) -> None:
    async with world("web") as made:
        used(made, {"passTLSClientCert": {"pem": True}})
        assert await made.proxy.status(X_Forwarded_Tls_Client_Cert="forged") == 200
        assert b"forged" not in made.servers["web"].heads[-1]


# grpcWeb


@pytest.mark.parametrize(
    ("spec", "headers", "status", "allowed"),
    [
        ({"allowOrigins": ["*"]}, {"Origin": "https://a.test"}, 204, "https://a.test"),
        ({"allowOrigins": ["https://a.test"]}, {"Origin": "https://a.test"}, 204, "https://a.test"),
        ({"allowOrigins": ["https://b.test"]}, {"Origin": "https://a.test"}, 403, ""),
        ({"allowOrigins": ["*"]}, {}, 200, ""),
    ],
)
async def test_pages_may_call_by_grpc_web(
    web: World, spec: Any, headers: dict[str, str], status: int, allowed: str
) -> None:
    used(web, {"grpcWeb": spec})
    asked = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "content-type,x-grpc-web"}
    got = await web.proxy.get(method="OPTIONS", **asked, **headers)
    assert (got.status, got["access-control-allow-origin"]) == (status, allowed)
    assert await web.proxy.status("/plain") == 200


# plugin


async def test_a_plugin_is_looked_up_by_its_name(web: World) -> None:
    used(web, {"plugin": {"response-rewrite": {"headers": {"set": {"X-By": "plugin"}}}}})
    assert (await web.proxy.get())["x-by"] == "plugin"


# rateLimit.redis


async def test_counts_are_shared_in_redis() -> None:
    async with world("web") as made:
        made.proxy.apply(secret("login", username="default", password="wrong"))
        limit = {"rateLimit": {"average": 1, "redis": {"endpoints": ["127.0.0.1:1"], "secret": "login"}}}
        used(made, limit)
        assert await made.proxy.status() == 500
