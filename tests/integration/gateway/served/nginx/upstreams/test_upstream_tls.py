"""TLS towards endpoints, and ciphers of hosts (`test/e2e/annotations/proxyssl.go`, `sslciphers.go`)."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.proxied import Origin, answering
from fakes.gateway.served import HOST, named
from fakes.gateway.tls import Authority
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options

AUTHORITY = Authority()
SECRET = {"proxy_ssl_secret": "default/mutual"}
OVER_TLS = {**SECRET, "backend_protocol": "HTTPS"}
VERIFIED = {"proxy_ssl_verify": "on", "proxy_ssl_name": HOST}


def mutual(authority: Authority = AUTHORITY) -> Any:
    """Return a Secret with our certificate towards endpoints, and the authorities of theirs."""
    made = pair("mutual", AUTHORITY.issue("gateway", x509.DNSName("gateway")), "gateway")
    made["sealed"]["authorities_pem"] = authority.pem.decode()
    return made


def secured(name: str = "web", **annotations: str) -> Any:
    made = classed(name, **annotations)
    made["spec"]["tls"] = [{"hosts": [HOST], "secretName": "mutual"}]
    return made


@contextlib.asynccontextmanager
async def endpoint_over_tls(folder: Path, **settings: Any) -> AsyncIterator[Origin]:
    """A server that speaks TLS with clients of our authority only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*AUTHORITY.issue(HOST, x509.DNSName(HOST)).write(folder))
    context.load_verify_locations(cadata=AUTHORITY.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    if "most" in settings:
        context.maximum_version = settings["most"]
    origin = Origin(answering(named(b"over tls")), context)
    await origin.start()
    try:
        yield origin
    finally:
        await origin.stop()


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, and the Secret."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, mutual())
        yield made


@contextlib.asynccontextmanager
async def behind(folder: Path, **settings: Any) -> AsyncIterator[World]:
    async with endpoint_over_tls(folder, **settings) as origin, world(settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, mutual(), service("tls"), endpoint_slice("tls", "127.0.0.1", port=origin.port))
        yield made


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"proxy_ssl_verify": "on", "proxy_ssl_verify_depth": "2", "proxy_ssl_server_name": "on"},
        {"proxy_ssl_ciphers": "HIGH:!AES"},
        {"proxy_ssl_protocols": "TLSv1.2 TLSv1.3"},
    ],
)
async def test_an_endpoint_without_tls_is_asked_without(one: World, more: dict[str, str]) -> None:
    one.proxy.apply(secured(**SECRET, **more))
    assert await one.proxy.status() == 308
    assert (await one.proxy.proxy.secure()).status == 200


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 200),
        ({**VERIFIED, "proxy_ssl_verify_depth": "2", "proxy_ssl_server_name": "on"}, 200),
        ({**VERIFIED, "proxy_ssl_name": "other.example"}, 502),
        ({"proxy_ssl_verify": "on", "proxy_ssl_server_name": "on"}, 502),
        ({"proxy_ssl_verify": "on", "upstream_vhost": HOST}, 200),
        ({"proxy_ssl_name": "other.example"}, 200),
        ({"proxy_ssl_protocols": "TLSv1.2 TLSv1.3"}, 200),
        ({"proxy_ssl_protocols": "TLSv1.3"}, 200),
    ],
)
async def test_an_endpoint_gets_our_certificate_and_shows_its_own(
    tmp_path: Path, more: dict[str, str], status: int
) -> None:
    async with behind(tmp_path) as made:
        made.proxy.apply(secured(to="tls", ssl_redirect="false", **OVER_TLS, **more))
        assert await made.proxy.status() == status
        made.proxy.apply(secured(to="tls", ssl_redirect="false", backend_protocol="HTTPS", **more))
        assert await made.proxy.status() == 502


async def test_versions_and_ciphers_are_those_that_are_said(tmp_path: Path) -> None:
    async with behind(tmp_path, most=ssl.TLSVersion.TLSv1_2) as made:
        asked = {
            text: await _asked(made, **{key: text})
            for key, text in (
                ("proxy_ssl_protocols", "TLSv1.2"),
                ("proxy_ssl_protocols", "TLSv1.3"),
                ("proxy_ssl_ciphers", "HIGH:!AES"),
                ("proxy_ssl_ciphers", "ECDHE-RSA-AES128-GCM-SHA256"),
            )
        }
        assert asked == {"TLSv1.2": 200, "TLSv1.3": 502, "HIGH:!AES": 200, "ECDHE-RSA-AES128-GCM-SHA256": 502}


async def _asked(made: World, **more: str) -> int:
    made.proxy.apply(secured(to="tls", ssl_redirect="false", **OVER_TLS, **more))
    return await made.proxy.status()


async def test_authorities_of_the_secret_are_those_that_count(tmp_path: Path) -> None:
    async with behind(tmp_path) as made:
        made.proxy.apply(secured(to="tls", ssl_redirect="false", **OVER_TLS, **VERIFIED))
        assert await made.proxy.status() == 200
        made.proxy.apply(mutual(Authority("other")))
        assert await made.proxy.status() == 502


@pytest.mark.parametrize("value", ["true", "false"])
async def test_tls_is_that_of_the_ingress_and_not_of_the_host(tmp_path: Path, value: str) -> None:
    async with behind(tmp_path) as made:
        made.proxy.apply(
            options(proxy_ssl_location_only=value),
            secured("bar", path="/bar", to="tls", ssl_redirect="false", **OVER_TLS, **VERIFIED),
            secured("foo", path="/foo", to="tls", ssl_redirect="false", backend_protocol="HTTPS"),
        )
        assert [await made.proxy.status(path) for path in ("/bar", "/foo")] == [200, 502]


@pytest.mark.parametrize(
    ("ciphers", "prefers"),
    [
        ("ALL:!eNULL:!EXPORT56:RC4+RSA:+HIGH:+MEDIUM:+LOW:+SSLv2:+EXP", "false"),
        ("ALL:!eNULL:!EXPORT56:RC4+RSA@STRENGTH:+HIGH@SECLEVEL=0:+MEDIUM:+LOW:+SSLv2:+EXP", "true"),
    ],
)
async def test_ciphers_in_any_notation_of_openssl_are_taken(one: World, ciphers: str, prefers: str) -> None:
    manifest = classed(path="/something", ssl_ciphers=ciphers, ssl_prefer_server_ciphers=prefers)
    one.proxy.apply(manifest)
    assert (await one.proxy.proxy.secure(path="/something")).body == b"one"
    assert one.proxy.problems(manifest) == []
