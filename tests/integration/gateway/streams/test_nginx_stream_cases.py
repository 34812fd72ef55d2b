"""TCP services of ingress-nginx' ConfigMap, to the ports that they open (`test/e2e/tcpudp/tcp.go`)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fakes.gateway.ports import free_port
from fakes.gateway.streams import PATIENCE_S, Streams, echo_server, streams
from fakes.peers.name_server import NameServer
from fakes.translator.deltas import applied, endpoint_slice, service
from fakes.waiting import until
from headgate.common.snapshot import decode_chunk
from headgate.common.table import TableEntry
from headgate.gateway.health.resolve import SystemDns
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation


def tcp_services(**ports: str) -> Any:
    """Return the ConfigMap; keys are ports after `p`."""
    metadata = {"name": "tcp-services", "namespace": "ingress-nginx"}
    data = {key.removeprefix("p"): value for key, value in ports.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Ports:
    """Ports that are open by a translation of manifests."""

    def __init__(self, running: Streams) -> None:
        self._running = running
        self._translation = Translation(DIALECTS)
        self._translation.activate("a")

    def apply(self, *manifests: Any) -> None:
        for manifest in manifests:
            self._translation.apply(applied(manifest))
        for _ in self._translation.settle():
            pass
        self._running.put(*self._entries())

    def _entries(self) -> list[TableEntry]:
        chunks = self._translation.assembly.image.chunks()
        return [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]


@contextlib.asynccontextmanager
async def opened(*manifests: Any, **settings: Any) -> AsyncIterator[Ports]:
    async with streams(**settings) as running:
        ports = Ports(running)
        ports.apply(*manifests)
        yield ports


def at(name: str, port: int) -> tuple[Any, Any]:
    """Return a Service with one endpoint."""
    return service(name), endpoint_slice(name, "127.0.0.1", port=port)


async def first_byte(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await asyncio.wait_for(reader.read(1), PATIENCE_S)
    finally:
        writer.close()


async def test_a_port_leads_to_its_service() -> None:
    port = free_port()
    async with (
        echo_server(name=b"E") as echo,
        opened(*at("echo", echo), tcp_services(**{f"p{port}": "default/echo:80"})),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await asyncio.wait_for(reader.readexactly(19), PATIENCE_S) == b"EGET / HTTP/1.1\r\n\r\n"
        writer.close()


async def test_a_port_may_lead_to_a_name() -> None:
    port = free_port()
    async with (
        echo_server(name=b"N") as echo,
        NameServer({("dns.example.", "A"): (60, ["127.0.0.1"])}) as names,
    ):
        external = service("dns", type="ExternalName", externalName="dns.example")
        external["spec"]["ports"] = [{"name": "dns", "port": 5353, "targetPort": echo}]
        named = tcp_services(**{f"p{port}": "default/dns:5353"})
        async with opened(external, named, query=SystemDns(names.resolver())):
            await until(lambda: first_byte(port), within_s=5)
            assert await first_byte(port) == b"N"


async def test_a_port_leads_to_another_service_after_an_update_and_connections_stay() -> None:
    port = free_port()
    async with echo_server(name=b"1") as first, echo_server(name=b"2") as second:
        services = (*at("first", first), *at("second", second))
        async with opened(*services, tcp_services(**{f"p{port}": "default/first:80"})) as ports:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await asyncio.wait_for(reader.read(1), PATIENCE_S) == b"1"
            ports.apply(tcp_services(**{f"p{port}": "default/second:80"}))
            assert await first_byte(port) == b"2"
            writer.write(b"still there")
            assert await asyncio.wait_for(reader.readexactly(11), PATIENCE_S) == b"still there"
            writer.close()
