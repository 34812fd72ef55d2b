"""What is spoken with endpoints (`test/e2e/annotations/backendprotocol.go`), and buffers that make no difference."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from cryptography import x509

from fakes.gateway.proxied import Conversation, answering
from fakes.gateway.served import HOST, named, origins
from fakes.gateway.tls import Authority, SelfSigned
from fakes.peers.grpc_service import grpc_server, grpc_stub
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import nginx_ingress

AUTHORITY = Authority()
SELF_SIGNED = SelfSigned(HOST)
SERVER = AUTHORITY.issue(HOST, x509.DNSName(HOST))


async def shut(conversation: Conversation) -> None:
    """Script: hang up on what is no request."""
    if (await conversation.reader.read(3)) != b"\x16\x03\x01":
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture
async def secured() -> AsyncIterator[World]:
    """A proxy with a certificate before a Service `one` over plain HTTP, and one `tls` over TLS."""
    async with (
        origins(answering(named(b"tls")), tls=SELF_SIGNED.server_context()) as (server,),
        world("one", shut=shut) as made,
    ):
        made.proxy.proxy.present(HOST, SERVER)
        made.proxy.apply(service("tls"), endpoint_slice("tls", "127.0.0.1", port=server.port))
        yield made


@pytest.mark.parametrize("protocol", ["HTTPS", "https", "Https"])
async def test_endpoints_are_spoken_to_over_tls(secured: World, protocol: str) -> None:
    secured.proxy.apply(nginx_ingress(to="tls", backend_protocol=protocol))
    assert await secured.proxy.bodies(1) == ["tls"]
    secured.proxy.apply(nginx_ingress(to="shut", backend_protocol=protocol))
    assert await secured.proxy.status() == 502
    secured.proxy.apply(nginx_ingress(to="shut", backend_protocol="HTTP"))
    assert await secured.proxy.status() == 200


@pytest.mark.parametrize("protocol", ["HTTP", "http", "SPDY", None])
async def test_endpoints_are_spoken_to_without_tls_otherwise(secured: World, protocol: str | None) -> None:
    secured.proxy.apply(nginx_ingress(**({"backend_protocol": protocol} if protocol else {"enable_cors": "true"})))
    assert await secured.proxy.bodies(1) == ["one"]


async def test_auto_http_speaks_as_the_client_does(secured: World) -> None:
    auto = {"backend_protocol": "AUTO_HTTP", "ssl_redirect": "false"}
    secured.proxy.apply(nginx_ingress(to="shut", **auto))
    assert await secured.proxy.status() == 200
    assert (await secured.proxy.proxy.secure()).status == 502
    secured.proxy.apply(nginx_ingress(to="tls", **auto))
    assert (await secured.proxy.proxy.secure()).body == b"tls"


@pytest.mark.parametrize("protocol", ["GRPC", "GRPCS"])
async def test_endpoints_are_spoken_to_in_grpc(protocol: str) -> None:
    issued = SERVER if protocol == "GRPCS" else None
    async with contextlib.AsyncExitStack() as stack:
        echo, port = await stack.enter_async_context(grpc_server(issued))
        made = await stack.enter_async_context(world("one"))
        made.proxy.proxy.present(HOST, SERVER)
        made.proxy.apply(service("echo"), endpoint_slice("echo", "127.0.0.1", port=port))
        made.proxy.apply(nginx_ingress(to="echo", backend_protocol=protocol))
        stub = await stack.enter_async_context(grpc_stub(made.proxy.proxy.https_port, AUTHORITY.pem, HOST))
        assert await stub.unary(b"abc") == b"cba"
        assert len(echo.metadata) == 1


@pytest.mark.parametrize("size", ["1000", "1K", "1k", "1m", "1M", "1b"])
async def test_a_size_of_the_buffer_for_bodies_makes_no_difference(secured: World, size: str) -> None:
    made = nginx_ingress(client_body_buffer_size=size)
    secured.proxy.apply(made)
    assert await secured.proxy.bodies(1) == ["one"]
    assert (await secured.proxy.post(b"x" * 100_000)).status == 200
    assert len(secured.servers["one"].heads) == 2
    assert secured.proxy.errors(made) == []
