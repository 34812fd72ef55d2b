"""TLSRoutes, TCPRoutes and UDPRoutes of Gateways with addresses of their own, from manifests to the wire."""

import asyncio
import ssl
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import answering
from fakes.gateway.served import asking, named, origins, read_answer
from fakes.gateway.tls import Authority, SelfSigned, unverified
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import gateway, gateway_class, https, listener, route, stream_route, to
from headgate.translator.world.address_pool import read_pool
from headgate.translator.world.settings import TranslationSettings

POOL = TranslationSettings(gateway_addresses=read_pool(["127.10.0.0/28"]))
ONE, TWO = "127.10.0.1", "127.10.0.2"
NAME, OTHER = "passed.example.com", "other.example.com"
OF_SERVICE = SelfSigned(NAME)
AUTHORITY = Authority()
PASSTHROUGH = {"mode": "Passthrough"}


def at(address: str, *listeners: Any, name: str) -> Any:
    """Return a Gateway that asks for an address."""
    return gateway(*listeners, name=name, spec={"addresses": [{"type": "IPAddress", "value": address}]})


def of(name: str, kind: str, **spec: Any) -> Any:
    """Return a route of streams of a Gateway to a Service, by the name of all three."""
    return stream_route(kind, name, name=name, parents=[{"name": name}], **spec)


def certificate(name: str) -> Any:
    return pair(name, AUTHORITY.issue(name, x509.DNSName(name)), name)


def ending(secret: str, port: int, **fields: Any) -> Any:
    return listener("tls", port, "TLS", tls={"certificateRefs": [{"name": secret}]}, **fields)


async def ask(made: World, address: str, port: int, name: str = "", context: ssl.SSLContext | None = None) -> str:
    client = await made.proxy.proxy.connect(context or (unverified() if name else None), name or None, port, to=address)
    await client.send(asking(host=name or "foo.com"))
    return (await read_answer(client)).body.decode()


async def presented(made: World, address: str, port: int, name: str) -> str:
    client = await made.proxy.proxy.connect(unverified(), name, port, to=address)
    found = x509.load_der_x509_certificate(client.writer.get_extra_info("ssl_object").getpeercert(True))
    client.close()
    return str(found.subject.rfc4514_string()).removeprefix("CN=")


async def test_two_gateways_have_equal_ports_of_tcp_each_at_its_address() -> None:
    port = free_port()
    async with world("one", "two", settings=POOL) as made:
        gateways = [at(where, listener("tcp", port, "TCP"), name=name) for where, name in ((ONE, "one"), (TWO, "two"))]
        made.proxy.apply(gateway_class(), *gateways, of("one", "TCPRoute"), of("two", "TCPRoute"))
        assert [await ask(made, where, port) for where in (ONE, TWO)] == ["one", "two"]
        made.proxy.delete(gateways[0])
        with pytest.raises(ConnectionRefusedError):
            await ask(made, ONE, port)
        assert await ask(made, TWO, port) == "two"


async def test_an_address_that_changes_moves_the_ports_of_routes_that_stay() -> None:
    port = free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), at(ONE, listener("tcp", port, "TCP"), name="one"), of("one", "TCPRoute"))
        made.proxy.apply(at(TWO, listener("tcp", port, "TCP"), name="one"))
        assert await ask(made, TWO, port) == "one"
        with pytest.raises(ConnectionRefusedError):
            await ask(made, ONE, port)


async def test_two_gateways_end_tls_of_one_name_with_each_its_certificate() -> None:
    port = free_port()
    async with world("one", "two", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate("first.example"), certificate("second.example"))
        for where, name, secret in ((ONE, "one", "first.example"), (TWO, "two", "second.example")):
            made.proxy.apply(at(where, ending(secret, port), name=name), of(name, "TLSRoute", hostnames=[NAME]))
        assert await presented(made, ONE, port, NAME) == "first.example"
        assert await presented(made, TWO, port, NAME) == "second.example"
        assert [await ask(made, where, port, NAME) for where in (ONE, TWO)] == ["one", "two"]


async def test_a_certificate_that_changes_is_presented_without_a_change_of_its_routes() -> None:
    port = free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate("first.example"), certificate("second.example"))
        made.proxy.apply(at(ONE, ending("first.example", port), name="one"), of("one", "TLSRoute", hostnames=[NAME]))
        assert await presented(made, ONE, port, NAME) == "first.example"
        made.proxy.apply(at(ONE, ending("second.example", port), name="one"))
        assert await presented(made, ONE, port, NAME) == "second.example"


async def test_tls_and_https_share_a_port_of_an_address_by_server_name() -> None:
    port = free_port()
    async with (
        origins(answering(named(b"secure")), tls=OF_SERVICE.server_context()) as (secure,),
        world("one", settings=POOL) as made,
    ):
        made.proxy.apply(service("secure"), endpoint_slice("secure", "127.0.0.1", port=secure.port))
        passes = listener("tls", port, "TLS", hostname=NAME, tls=PASSTHROUGH)
        web = https("https", OTHER, port=port, hostname=OTHER)
        made.proxy.apply(gateway_class(), certificate(OTHER), at(ONE, passes, web, name="one"))
        made.proxy.apply(stream_route("TLSRoute", "secure", parents=[{"name": "one"}], hostnames=[NAME]))
        made.proxy.apply(route(to("one"), parents=[{"name": "one"}]))
        assert await ask(made, ONE, port, NAME, OF_SERVICE.client_context()) == "secure"
        assert await ask(made, ONE, port, OTHER) == "one"


async def test_a_server_name_that_no_tls_route_has_gets_no_handshake() -> None:
    port = free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate(NAME), at(ONE, ending(NAME, port), name="one"))
        made.proxy.apply(of("one", "TLSRoute", hostnames=[NAME]))
        assert await ask(made, ONE, port, NAME) == "one"
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await ask(made, ONE, port, OTHER)


async def test_two_gateways_have_equal_ports_of_udp_each_at_its_address() -> None:
    port = free_port()
    async with world(settings=POOL) as made:
        made.proxy.apply(gateway_class())
        echoes = [await named_by_datagram(made, name) for name in ("one", "two")]
        for where, name in ((ONE, "one"), (TWO, "two")):
            made.proxy.apply(at(where, listener("udp", port, "UDP"), name=name), of(name, "UDPRoute"))
        found = [await ask_by_datagram(where, port) for where in (ONE, TWO)]
        for each in echoes:
            each.close()
        assert found == [b"one", b"two"]


class _Named(asyncio.DatagramProtocol):
    """Answers each datagram with a name."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._transport.sendto(self._name, addr)


async def named_by_datagram(made: World, name: str) -> asyncio.DatagramTransport:
    """Have a Service that answers each datagram with its name."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Named(name.encode()), ("127.0.0.1", 0))
    written = service(name)
    slices = endpoint_slice(name, "127.0.0.1", port=transport.get_extra_info("sockname")[1])
    written["spec"]["ports"][0]["protocol"] = slices["ports"][0]["protocol"] = "UDP"
    made.proxy.apply(written, slices)
    return transport


async def ask_by_datagram(address: str, port: int) -> bytes:
    """Send a datagram and return the answer."""
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    class Client(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            answer.set_result(data)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Client, remote_addr=(address, port))
    transport.sendto(b"?")
    try:
        return await asyncio.wait_for(answer, 5)
    finally:
        transport.close()
