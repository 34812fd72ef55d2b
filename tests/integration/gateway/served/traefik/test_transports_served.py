"""ServersTransports from manifests to the wire."""

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
from fakes.translator.traefik import ANY, resource, route, rule

AUTHORITY, OTHER = Authority("server"), Authority("other")
TRUSTED = {"serverName": HOST, "rootCAs": [{"secret": "own"}]}


def own(authority: Authority = AUTHORITY) -> Any:
    """Return a Secret with our certificate for servers, and the authorities of theirs."""
    made = pair("own", AUTHORITY.issue("gateway", x509.DNSName("gateway")), "gateway")
    made["sealed"]["authorities_pem"] = authority.pem.decode()
    return made


def config_map(**data: str) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "roots", "namespace": "default"},
        "data": data,
    }


def transport(**spec: Any) -> Any:
    return resource("ServersTransport", "own", spec)


def through(**fields: Any) -> Any:
    """A route to a Service over TLS with the transport."""
    return route(rule(ANY, {"name": "tls", "port": 80, "scheme": "https", "serversTransport": "own", **fields}))


@contextlib.asynccontextmanager
async def behind(folder: Path, *, asks: bool = False) -> AsyncIterator[World]:
    """A proxy before a server that speaks TLS, perhaps with clients of our authority only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*AUTHORITY.issue(HOST, x509.DNSName(HOST)).write(folder))
    if asks:
        context.load_verify_locations(cadata=AUTHORITY.pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    origin = Origin(answering(named(b"over tls")), context)
    await origin.start()
    try:
        async with world() as made:
            made.proxy.apply(own(), service("tls"), endpoint_slice("tls", "127.0.0.1", port=origin.port))
            yield made
    finally:
        await origin.stop()


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({}, 502),
        ({"insecureSkipVerify": True}, 200),
        (TRUSTED, 200),
        ({"serverName": HOST, "rootCAsSecrets": ["own"]}, 200),
        ({**TRUSTED, "serverName": "other.example"}, 502),
        ({**TRUSTED, "peerCertSANs": [{"type": "DNS", "value": HOST}]}, 200),
        ({**TRUSTED, "peerCertSANs": [{"type": "DNS", "value": "other.example"}]}, 502),
        ({**TRUSTED, "minVersion": "VersionTLS13"}, 200),
        ({**TRUSTED, "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]}, 200),
        ({**TRUSTED, "forwardingTimeouts": {"dialTimeout": "5s", "responseHeaderTimeout": 5}}, 200),
        ({**TRUSTED, "maxIdleConnsPerHost": -1, "disableHTTP2": True}, 200),
    ],
)
async def test_servers_are_checked_as_the_transport_says(tmp_path: Path, spec: Any, status: int) -> None:
    async with behind(tmp_path) as made:
        made.proxy.apply(transport(**spec), through())
        assert await made.proxy.status() == status
        assert made.proxy.errors(through()) == made.proxy.errors(transport()) == []


@pytest.mark.parametrize(("authority", "status"), [(AUTHORITY, 200), (OTHER, 502)])
async def test_authorities_may_be_in_a_config_map(tmp_path: Path, authority: Authority, status: int) -> None:
    async with behind(tmp_path) as made:
        roots = config_map(**{"ca.crt": authority.pem.decode()})
        made.proxy.apply(roots, transport(serverName=HOST, rootCAs=[{"configMap": "roots"}]), through())
        assert await made.proxy.status() == status


@pytest.mark.parametrize(("more", "status"), [({}, 502), ({"certificatesSecrets": ["own"]}, 200)])
async def test_servers_that_ask_for_a_certificate_get_ours(tmp_path: Path, more: Any, status: int) -> None:
    async with behind(tmp_path, asks=True) as made:
        made.proxy.apply(transport(**TRUSTED, **more), through())
        assert await made.proxy.status() == status


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"rootCAs": [{"secret": "missing"}]}, "rootCAs[0]"),
        ({"rootCAs": [{"configMap": "missing"}]}, "rootCAs[0]"),
        ({"rootCAs": [{}]}, "rootCAs[0]"),
        ({"certificatesSecrets": ["missing"]}, "certificatesSecrets[0]"),
        ({"peerCertSANs": [{"type": "URI", "value": "spiffe://a"}]}, "peerCertSANs[0]"),
        ({"peerCertURI": "spiffe://a"}, "peerCertURI"),
        ({"spiffe": {}}, "spiffe"),
        ({"minVersion": "1.2"}, "minVersion"),
        ({"maxVersion": "VersionTLS12"}, "maxVersion"),
        ({"cipherSuites": ["AES"]}, "cipherSuites[0]"),
    ],
)
async def test_what_cannot_be_followed_closes_the_routes_and_is_named(tmp_path: Path, spec: Any, field: str) -> None:
    async with behind(tmp_path) as made:
        made.proxy.apply(transport(**spec), through())
        assert await made.proxy.status() == 503
        assert made.proxy.errors(through()) == ["InvalidServersTransport"]
        assert made.proxy.fields(transport()) == [f"spec.{field}"]
        made.proxy.apply(transport(**TRUSTED))
        assert await made.proxy.status() == 200


async def test_a_transport_that_is_missing_closes_the_route_until_it_is_there(tmp_path: Path) -> None:
    async with behind(tmp_path) as made:
        made.proxy.apply(through())
        assert await made.proxy.status() == 503
        assert made.proxy.errors(through()) == ["ServersTransportNotFound"]
        made.proxy.apply(transport(**TRUSTED))
        assert await made.proxy.status() == 200


async def test_a_transport_of_another_provider_is_refused(tmp_path: Path) -> None:
    async with behind(tmp_path) as made:
        made.proxy.apply(through(serversTransport="own@file"))
        assert await made.proxy.status() == 503
        assert made.proxy.errors(through()) == ["RefNotPermitted"]
