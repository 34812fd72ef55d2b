"""Stream rules of ApisixRoutes, from manifests to the sockets that they open."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import PATIENCE_S, Streams, echo_server, streams, udp_client, udp_server
from fakes.gateway.tls import SelfSigned, unverified
from fakes.translator.apisix import Translated, resource, route
from fakes.translator.deltas import endpoint_slice, service

CERTIFICATE = SelfSigned("a.test", "b.test")


def stream(port: int, name: str = "web", host: str = "", protocol: str = "TCP") -> Any:
    match = {"ingressPort": port, **({"host": host} if host else {})}
    backend = {"serviceName": name, "servicePort": 80}
    return {"name": name, "protocol": protocol, "match": match, "backend": backend}


def server(name: str, port: int, protocol: str = "TCP") -> tuple[Any, Any]:
    """A Service with one endpoint."""
    made, slices = service(name), endpoint_slice(name, "127.0.0.1", port=port)
    for each in (made["spec"]["ports"][0], slices["ports"][0]):
        each["protocol"] = protocol
    return made, slices


@contextlib.asynccontextmanager
async def listening(*manifests: Any) -> AsyncIterator[Streams]:
    """Open the ports that the manifests ask for; nothing may be wrong with them."""
    table = Translated(*manifests)
    assert table.problems() == []
    async with streams(*table.offline.entries, server_tls=CERTIFICATE.server_context()) as running:
        yield running


async def said(port: int, name: str = "") -> bytes:
    """Return the first byte from a port; over TLS if a server is named."""
    tls = {"ssl": unverified(), "server_hostname": name} if name else {}
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **tls)
    try:
        return await asyncio.wait_for(reader.read(1), PATIENCE_S)
    finally:
        writer.close()


async def test_a_tcp_port_leads_to_its_service() -> None:
    port = free_port()
    async with echo_server(name=b"W") as web, listening(*server("web", web), route(stream=[stream(port)])):
        assert await said(port) == b"W"


async def test_a_tcp_port_may_lead_to_a_service_that_speaks_tls() -> None:
    port, over_tls = free_port(), resource("ApisixUpstream", "web", {"scheme": "tls"})
    async with (
        echo_server(name=b"T", tls=CERTIFICATE.server_context()) as web,
        listening(*server("web", web), over_tls, route(stream=[stream(port)])),
    ):
        assert await said(port) == b"T"


async def test_a_udp_port_leads_to_its_service() -> None:
    port = free_port("127.0.0.1", socket.SOCK_DGRAM)
    async with (
        udp_server() as dns,
        listening(*server("dns", dns.port, "UDP"), route(stream=[stream(port, "dns", protocol="UDP")])),
        udp_client("127.0.0.1", port) as client,
    ):
        client.send(b"abc")
        assert await client.next() == b"ABC"


async def test_server_names_tell_the_rules_of_one_port_apart() -> None:
    port, plain = free_port(), free_port()
    rules = [stream(port, "a", host="a.test"), stream(port, "b", host="b.test"), stream(plain, "c")]
    async with (
        echo_server(name=b"A") as a,
        echo_server(name=b"B") as b,
        echo_server(name=b"C") as c,
        listening(*server("a", a), *server("b", b), *server("c", c), route(stream=rules)),
    ):
        assert [await said(port, name) for name in ("a.test", "b.test")] == [b"A", b"B"]
        assert await said(plain) == b"C"
        with pytest.raises(OSError):  # noqa: PT011 - a reset or an end within the handshake
            await said(port, "c.test")
