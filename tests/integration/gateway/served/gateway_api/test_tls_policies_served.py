"""BackendTLSPolicies from manifests to the wire: certificates of Services are checked as they say."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import answering
from fakes.gateway.served import HOST, asking, named, origins, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.peers.grpc_service import grpc_server, grpc_stub
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import (
    authorities,
    by_config_maps,
    gateway,
    gateway_class,
    grpc_route,
    listener,
    route,
    stream_route,
    tls_policy,
    to,
)

AUTHORITY, OTHER = Authority(), Authority("other")
SPIFFE = "spiffe://cluster.local/ns/default/sa/web"
ISSUED = AUTHORITY.issue("web.example", x509.DNSName("web.example"), x509.UniformResourceIdentifier(SPIFFE))


@contextlib.asynccontextmanager
async def secure_web(folder: Path) -> AsyncIterator[World]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*ISSUED.write(folder))
    async with origins(answering(named(b"secure")), tls=context) as (secure,), world() as made:
        made.proxy.apply(service("web"), endpoint_slice("web", "127.0.0.1", port=secure.port))
        made.proxy.apply(authorities("ca", AUTHORITY), authorities("other", OTHER))
        made.proxy.apply(gateway_class(), gateway(), route(to("web")))
        yield made


def san(kind: str, value: str) -> Any:
    return [{"type": kind, "hostname" if kind == "Hostname" else "uri": value}]


@pytest.mark.parametrize(
    ("validation", "status"),
    [
        ({}, 200),
        ({"hostname": "mismatch.example"}, 502),
        (by_config_maps("other"), 502),
        (by_config_maps("missing"), 503),
        ({"hostname": "any.example", "subjectAltNames": san("Hostname", "web.example")}, 200),
        ({"subjectAltNames": san("Hostname", "mismatch.example")}, 502),
        ({"hostname": "any.example", "subjectAltNames": san("URI", SPIFFE)}, 200),
        ({"subjectAltNames": san("URI", "spiffe://other")}, 502),
    ],
)
async def test_a_certificate_of_a_service_is_checked_by_authority_and_name(
    validation: Any, status: int, tmp_path: Path
) -> None:
    async with secure_web(tmp_path) as made:
        made.proxy.apply(tls_policy(**{**by_config_maps("ca"), **validation}))
        assert await made.proxy.status() == status


async def test_a_policy_that_goes_leaves_a_service_to_plain_requests(tmp_path: Path) -> None:
    async with secure_web(tmp_path) as made:
        policy = tls_policy(**by_config_maps("ca"))
        made.proxy.apply(policy)
        assert (await made.proxy.get()).body == b"secure"
        made.proxy.delete(policy)
        assert await made.proxy.status() == 502


async def test_calls_go_over_tls_by_a_policy() -> None:
    async with grpc_server(ISSUED) as (_, port), world() as made:
        made.proxy.apply(service("web"), endpoint_slice("web", "127.0.0.1", port=port), authorities("ca", AUTHORITY))
        made.proxy.apply(gateway_class(), gateway(), grpc_route(to("web")), tls_policy(**by_config_maps("ca")))
        async with grpc_stub(made.proxy.proxy.port, authority=HOST) as stub:
            assert await stub.unary(b"abc") == b"cba"


async def test_a_service_that_asks_for_a_certificate_is_shown_that_of_the_gateway(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*ISSUED.write(tmp_path))
    context.load_verify_locations(cadata=AUTHORITY.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    client = pair("cert", AUTHORITY.issue("client"), "client")
    async with origins(answering(named(b"secure")), tls=context) as (secure,), world() as made:
        made.proxy.apply(service("web"), endpoint_slice("web", "127.0.0.1", port=secure.port))
        made.proxy.apply(authorities("ca", AUTHORITY), client, gateway_class(), gateway(), route(to("web")))
        made.proxy.apply(tls_policy(**by_config_maps("ca")))
        assert await made.proxy.status() == 502
        made.proxy.apply(gateway(spec={"tls": {"backend": {"clientCertificateRef": {"name": "cert"}}}}))
        assert (await made.proxy.get()).body == b"secure"


@pytest.mark.parametrize(("authority", "is_served"), [("ca", True), ("other", False)])
async def test_tls_that_ends_here_is_spoken_with_a_service_again(
    authority: str, is_served: bool, tmp_path: Path
) -> None:
    port = free_port()
    async with secure_web(tmp_path) as made:
        ended = {"certificateRefs": [{"name": "cert"}]}
        made.proxy.apply(pair("cert", AUTHORITY.issue("ended.example", x509.DNSName("ended.example")), "ended.example"))
        made.proxy.apply(gateway(listener("tls", port, "TLS", tls=ended)), tls_policy(**by_config_maps(authority)))
        made.proxy.apply(stream_route("TLSRoute", "web", hostnames=["ended.example"]))
        client = await made.proxy.proxy.connect(unverified(), "ended.example", port)
        await client.send(asking(host="ended.example"))
        if is_served:
            assert (await read_answer(client)).body == b"secure"
        else:
            with pytest.raises((ConnectionError, EOFError)):
                await read_answer(client)


async def test_tls_that_is_passed_on_is_no_matter_of_policies(tmp_path: Path) -> None:
    port = free_port()
    async with secure_web(tmp_path) as made:
        passed = listener("tls", port, "TLS", tls={"mode": "Passthrough"})
        made.proxy.apply(gateway(passed), tls_policy(**by_config_maps("other")))
        made.proxy.apply(stream_route("TLSRoute", "web", hostnames=["web.example"]))
        client = await made.proxy.proxy.connect(unverified(), "web.example", port)
        await client.send(asking(host="web.example"))
        assert (await read_answer(client)).body == b"secure"
