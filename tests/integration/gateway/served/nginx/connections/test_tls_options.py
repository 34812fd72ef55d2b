"""What the ConfigMap says of TLS and of redirects to it: `test/e2e/settings/tls.go`, `ssl_*.go`."""

import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.proxied import answering
from fakes.gateway.served import HOST, Got, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, world
from fakes.translator.deltas import tls_secret
from fakes.translator.nginx import nginx_ingress, options

CIPHERS = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-SHA"
OF_UPSTREAM = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nStrict-Transport-Security: max-age=3600; preload\r\n\r\nok"


def with_tls(**annotations: str) -> Any:
    """Return an Ingress of ingress-nginx with a certificate."""
    made = nginx_ingress(enable_access_log="true", **annotations)
    made["spec"]["tls"] = [{"hosts": [HOST], "secretName": "cert"}]
    return made


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy with a certificate, before a Service `one` that says of itself what HSTS says."""
    async with world(one=answering(OF_UPSTREAM)) as made:
        made.proxy.proxy.present(HOST, Authority("server").issue(HOST, x509.DNSName(HOST)))
        made.proxy.apply(tls_secret("cert", HOST), with_tls())
        yield made


async def handshake(made: World, client: ssl.SSLContext | None = None) -> tuple[Got, str, str]:
    """Ask over TLS; return the answer, the version and the cipher."""
    connection = await made.proxy.proxy.connect(client or unverified())
    await connection.send(asking())
    tls: ssl.SSLObject = connection.writer.get_extra_info("ssl_object")
    cipher = tls.cipher()
    assert cipher is not None
    return await read_answer(connection), tls.version() or "", cipher[0]


async def test_versions_and_ciphers_are_those_of_the_config_map(shop: World) -> None:
    assert (await handshake(shop))[1] == "TLSv1.3"
    shop.proxy.apply(options(ssl_ciphers=CIPHERS, ssl_protocols="TLSv1.2"))
    got, version, cipher = await handshake(shop)
    assert (got.status, version, cipher) == (200, "TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")


@pytest.mark.parametrize(
    ("written", "version"),
    [
        ("TLSv1.3", "TLSv1.3"),
        ("TLSv1.2 TLSv1.3", "TLSv1.3"),
        ("TLSv1 TLSv1.1 TLSv1.2", "TLSv1.2"),
        ("TLSv9", "TLSv1.3"),
    ],
)
async def test_newest_version_of_the_config_map_is_spoken(shop: World, written: str, version: str) -> None:
    shop.proxy.apply(options(ssl_protocols=written))
    assert (await handshake(shop))[1] == version


async def test_ciphers_are_written_as_openssl_has_them(shop: World) -> None:
    written = "ALL:!aNULL:!EXPORT56:RC4+RSA:+HIGH:+MEDIUM:+LOW:+SSLv2:+EXP"  # codespell:ignore
    manifest = options(ssl_ciphers=written, ssl_protocols="TLSv1.2")
    shop.proxy.apply(manifest)
    assert ((await handshake(shop))[0].status, shop.proxy.problems(manifest)) == (200, [])


@pytest.mark.parametrize(
    ("data", "header"),
    [
        ({}, "max-age=31536000; includeSubDomains"),
        ({"hsts_max_age": "86400"}, "max-age=86400; includeSubDomains"),
        ({"hsts_max_age": "86400", "hsts_include_subdomains": "false"}, "max-age=86400"),
        (
            {"hsts_max_age": "86400", "hsts_include_subdomains": "false", "hsts_preload": "true"},
            "max-age=86400; preload",
        ),
        ({"hsts_max_age": "86400", "hsts_preload": "true"}, "max-age=86400; includeSubDomains; preload"),
        ({"hsts": "false"}, "max-age=3600; preload"),
    ],
)
async def test_strict_transport_security_is_that_of_the_config_map_and_replaces_the_upstreams(
    shop: World, data: dict[str, str], header: str
) -> None:
    shop.proxy.apply(options(**data))
    assert (await shop.proxy.proxy.secure()).all("strict-transport-security") == [header]


async def test_redirects_to_https_have_no_port(shop: World) -> None:
    got = await shop.proxy.get()
    assert (got.status, got["location"]) == (308, f"https://{HOST}")
    got = await shop.proxy.get("/a/?b=c", host=f"{HOST}:8080")
    assert (got.status, got["location"]) == (308, f"https://{HOST}/a/?b=c")
