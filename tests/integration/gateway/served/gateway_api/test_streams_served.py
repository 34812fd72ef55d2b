"""TLSRoutes, TCPRoutes and UDPRoutes from manifests to the wire."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
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

PASSED, ENDED, OTHER = "passed.example.com", "ended.example.com", "other.example.com"
OF_SERVICE = SelfSigned(PASSED)
AUTHORITY = Authority()
PASSTHROUGH = {"mode": "Passthrough"}
TERMINATE = {"mode": "Terminate", "certificateRefs": [{"name": "cert"}]}


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy, plain Services `one` and `two`, and `secure`, which speaks TLS itself."""
    async with (
        origins(answering(named(b"secure")), tls=OF_SERVICE.server_context()) as (secure,),
        world("one", "two") as made,
    ):
        made.proxy.apply(service("secure"), endpoint_slice("secure", "127.0.0.1", port=secure.port))
        issued = AUTHORITY.issue(ENDED, x509.DNSName(ENDED), x509.DNSName(OTHER))
        made.proxy.apply(gateway_class(), pair("cert", issued, ENDED, OTHER))
        yield made


async def ask(made: World, name: str, port: int = 0, context: ssl.SSLContext | None = None) -> bytes:
    client = await made.proxy.proxy.connect(context or unverified(), name, port)
    await client.send(asking(host=name))
    return (await read_answer(client)).body


def tls_route(*services: Any, hostnames: Any, **fields: Any) -> Any:
    return stream_route("TLSRoute", *services, hostnames=list(hostnames), **fields)


async def test_tls_of_a_server_name_on_the_https_port_is_passed_on_and_other_names_are_https(shop: World) -> None:
    both = gateway(listener("tls", 443, "TLS", hostname=PASSED, tls=PASSTHROUGH), https("https", "cert"))
    shop.proxy.apply(both, tls_route("secure", hostnames=[PASSED]), route(to("one"), hostnames=[OTHER]))
    assert await ask(shop, PASSED, context=OF_SERVICE.client_context()) == b"secure"
    assert await ask(shop, OTHER) == b"one"


async def test_a_name_of_a_more_specific_https_listener_is_not_passed_on_by_a_wildcard(shop: World) -> None:
    wide = listener("tls", 443, "TLS", hostname="*.example.com", tls=PASSTHROUGH)
    shop.proxy.apply(gateway(wide, https("https", "cert", hostname=OTHER)), route(to("one")))
    shop.proxy.apply(tls_route("secure", hostnames=["*.example.com"]))
    assert await ask(shop, "deep.below.example.com") == b"secure"
    assert await ask(shop, OTHER) == b"one"


async def test_tls_ends_here_or_is_passed_on_by_the_listener_on_one_port(shop: World) -> None:
    port = free_port()
    mixed = gateway(
        listener("ends", port, "TLS", hostname=ENDED, tls=TERMINATE),
        listener("passes", port, "TLS", hostname=PASSED, tls=PASSTHROUGH),
    )
    ended = tls_route(("one", 3), ("two", 1), hostnames=[ENDED], name="ended")
    shop.proxy.apply(mixed, ended, tls_route("secure", hostnames=[PASSED], name="passed"))
    found = Counter([await ask(shop, ENDED, port) for _ in range(8)])
    assert found == {b"one": 6, b"two": 2}
    assert await ask(shop, PASSED, port, OF_SERVICE.client_context()) == b"secure"
    with pytest.raises((ConnectionError, EOFError, ssl.SSLError)):
        await ask(shop, OTHER, port)


async def test_a_whole_server_name_goes_before_an_older_wildcard_whose_part_of_the_listener_is_the_same(
    shop: World,
) -> None:
    port = free_port()
    old, young = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    wide = tls_route("one", hostnames=["*.example.com"], name="wide")
    exact = tls_route("two", hostnames=[ENDED], name="exact")
    shop.proxy.apply(gateway(listener("ends", port, "TLS", hostname=ENDED, tls=TERMINATE)))
    shop.proxy.apply({**wide, "metadata": {**wide["metadata"], "creationTimestamp": old}})
    assert await ask(shop, ENDED, port) == b"one"
    shop.proxy.apply({**exact, "metadata": {**exact["metadata"], "creationTimestamp": young}})
    assert await ask(shop, ENDED, port) == b"two"


async def test_a_port_of_tls_is_one_of_https_too(shop: World) -> None:
    port = free_port()
    both = gateway(listener("tls", port, "TLS", hostname=PASSED, tls=PASSTHROUGH), https("https", "cert", port=port))
    shop.proxy.apply(both, tls_route("secure", hostnames=[PASSED]), route(to("one"), hostnames=[OTHER]))
    assert await ask(shop, PASSED, port, OF_SERVICE.client_context()) == b"secure"
    assert await ask(shop, OTHER, port) == b"one"


async def test_connections_of_tcp_are_shared_by_weight_and_those_of_a_missing_service_closed(shop: World) -> None:
    port = free_port()
    shop.proxy.apply(gateway(listener("tcp", port, "TCP")), stream_route("TCPRoute", ("one", 2), "two", "missing"))
    found: Counter[bytes] = Counter()
    for _ in range(8):
        client = await shop.proxy.proxy.connect(port=port)
        try:
            await client.send(asking())
            found[(await read_answer(client)).body] += 1
        except (ConnectionError, EOFError):
            found[b""] += 1
    assert found == {b"one": 4, b"two": 2, b"": 2}


class Echo(asyncio.DatagramProtocol):
    """Says its name to every datagram."""

    def __init__(self, name: bytes) -> None:
        self.name = name

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.transport.sendto(self.name + data, addr)


class Asking(asyncio.DatagramProtocol):
    """Waits for one answer."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.answer.set_result(data)


async def echo(made: World, name: str) -> asyncio.BaseTransport:
    """Apply a Service for datagrams that says its name."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: Echo(name.encode()), local_addr=("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    written, slices = service(name), endpoint_slice(name, "127.0.0.1", port=port)
    written["spec"]["ports"][0]["protocol"] = slices["ports"][0]["protocol"] = "UDP"
    made.proxy.apply(written, slices)
    return transport


async def ask_by_datagram(port: int) -> bytes:
    client, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        Asking, remote_addr=("127.0.0.1", port)
    )
    client.sendto(b"!")
    answer = await asyncio.wait_for(protocol.answer, 5)
    client.close()
    return answer


async def test_sessions_of_udp_are_shared_by_weight() -> None:
    port = free_port()
    async with world() as made:
        echoes = [await echo(made, name) for name in ("one", "two")]
        made.proxy.apply(gateway_class(), gateway(listener("udp", port, "UDP")))
        made.proxy.apply(stream_route("UDPRoute", ("one", 3), ("two", 1)))
        assert Counter([await ask_by_datagram(port) for _ in range(8)]) == {b"one!": 6, b"two!": 2}
        for each in echoes:
            each.close()
