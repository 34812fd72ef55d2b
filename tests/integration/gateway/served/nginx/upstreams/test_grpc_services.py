"""gRPC through Ingresses, with the library of the gRPC authors at both ends (`test/e2e/annotations/grpc.go`)."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import grpc
import pytest
from cryptography import x509

from fakes.gateway.proxied import Conversation
from fakes.gateway.tls import Authority, Issued
from fakes.peers.grpc_service import Echo, Stub, grpc_server, grpc_stub
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options

HOST = "echo.example"
AUTHORITY = Authority()
AT_BIN = AUTHORITY.issue("bin.example", x509.DNSName("bin.example"))


async def authorizing(conversation: Conversation) -> None:
    """An authentication service that lets everybody in and says who it is."""
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nAuthorization: foo\r\nContent-Length: 0\r\n\r\n")


class Grpc(NamedTuple):
    """A proxy with a certificate, and a gRPC service behind it."""

    made: World
    echo: Echo

    @contextlib.asynccontextmanager
    async def secure(self) -> AsyncIterator[Stub]:
        async with grpc_stub(self.made.proxy.proxy.https_port, AUTHORITY.pem, HOST) as stub:
            yield stub


@contextlib.asynccontextmanager
async def grpc_world(issued: Issued | None = None) -> AsyncIterator[Grpc]:
    async with grpc_server(issued) as (echo, port), world(auth=authorizing, settings=ADOPTED) as made:
        certificate = pair(HOST, AUTHORITY.issue(HOST, x509.DNSName(HOST)), HOST)
        made.proxy.apply(NGINX_CLASS, certificate, service("bin"), endpoint_slice("bin", "127.0.0.1", port=port))
        named = service("named", type="ExternalName", externalName="127.0.0.1")
        named["spec"]["ports"] = [{"name": "echo", "port": 9000, "targetPort": port, "protocol": "TCP"}]
        made.proxy.apply(named)
        yield Grpc(made, echo)


def secured(**annotations: str) -> Any:
    made = classed(host=HOST, to="named", port=9000, **annotations)
    made["spec"]["tls"] = [{"hosts": [HOST], "secretName": HOST}]
    return made


async def test_calls_over_tls_reach_a_service_that_speaks_grpc() -> None:
    async with grpc_world() as found:
        found.made.proxy.apply(secured(backend_protocol="GRPC"))
        async with found.secure() as stub:
            assert await stub.unary(b"abc") == b"cba"
        assert found.echo.metadata[0]["x-forwarded-host"] == HOST
        assert found.made.proxy.proxy.log.records[0][5] == 200


async def test_metadata_of_the_authentication_takes_the_place_of_the_clients() -> None:
    async with grpc_world() as found:
        url = f"http://127.0.0.1:{found.made.port('auth')}/response-headers?authorization=foo"
        found.made.proxy.apply(secured(backend_protocol="GRPC", auth_url=url, auth_response_headers="Authorization"))
        async with found.secure() as stub:
            assert await stub.unary(b"abc", metadata=[("authorization", "bar")]) == b"cba"
        assert found.echo.metadata[0]["authorization"] == "foo"


NAMED = """
   # without this setting the name is that of the client
   grpc_ssl_name        bin.example;
   grpc_ssl_server_name on;
   grpc_ssl_ciphers     HIGH:!eNULL:!MD5;
"""


async def test_calls_over_tls_reach_a_service_that_speaks_grpc_over_tls() -> None:
    async with grpc_world(AT_BIN) as found:
        manifest = secured(backend_protocol="GRPCS", configuration_snippet=NAMED)
        found.made.proxy.apply(manifest)
        async with found.secure() as stub:
            assert await stub.unary(b"abc") == b"cba"
        assert found.made.proxy.problems(manifest) == []
        (holder,) = (found.made.proxy.proxy.compiler.find_endpoints(key) for key in upstreams(found))
        assert holder is not None
        spec = holder.balancer.slots[0].pool.spec
        assert (spec.server_name, spec.protocol) == ("bin.example", "h2")


def upstreams(found: Grpc) -> list[str]:
    return [key for key, _ in found.made.proxy.proxy.compiler.upstreams.compiled() if "named" in key]


@pytest.mark.parametrize(
    ("snippet", "line"),
    [
        ("grpc_ssl_name $http_x;", "grpc_ssl_name: must be a name without variables of the request"),
        ("grpc_ssl_ciphers 'a b';", "grpc_ssl_ciphers: must be ciphers in OpenSSL's notation"),
        ("grpc_ssl_verify on;", "grpc_ssl_verify: is followed as off only"),
    ],
)
async def test_what_cannot_be_said_of_tls_refuses_the_snippet(snippet: str, line: str) -> None:
    async with grpc_world() as found:
        manifest = classed(to="bin", configuration_snippet=snippet)
        found.made.proxy.apply(manifest)
        assert await found.made.proxy.status() == 503
        assert line in found.made.proxy.messages(manifest)


async def test_tls_of_endpoints_is_no_matter_of_all_locations() -> None:
    async with grpc_world() as found:
        told = options(location_snippet="proxy_ssl_name x;")
        server = classed(to="bin", server_snippet="location /x { proxy_ssl_name x; return 200; }")
        found.made.proxy.apply(told, server)
        for manifest in (told, server):
            assert "is followed in a configuration-snippet only" in found.made.proxy.messages(manifest)


@pytest.mark.parametrize(("timeout", "code"), [("10", None), ("1", grpc.StatusCode.DEADLINE_EXCEEDED)])
async def test_timeouts_hold_for_calls_without_tls(timeout: str, code: grpc.StatusCode | None) -> None:
    async with grpc_world() as found:
        times = {f"proxy_{each}_timeout": timeout for each in ("connect", "send", "read")}
        found.made.proxy.apply(classed(host=HOST, to="named", port="echo", backend_protocol="GRPC", **times))
        async with grpc_stub(found.made.proxy.proxy.port, authority=HOST) as stub:
            assert await stub.unary(b"abc") == b"cba"
            if code is not None:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await stub.unary(b"sleep", timeout=20)
                assert caught.value.code() is code
