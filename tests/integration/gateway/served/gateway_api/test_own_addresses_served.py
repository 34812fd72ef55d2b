"""Gateways with addresses of their own, from manifests to the wire, on addresses of the loopback interface."""

from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.served import HOST, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, pair, world
from fakes.translator.gateway_api import gateway, gateway_class, https, listener, route, to
from headgate.translator.world.address_pool import read_pool
from headgate.translator.world.settings import TranslationSettings

POOL = TranslationSettings(gateway_addresses=read_pool(["127.10.0.0/28"]))
ONE, TWO = "127.10.0.1", "127.10.0.2"
AUTHORITY = Authority()


def at(address: str, *listeners: Any, name: str) -> Any:
    """Return a Gateway that asks for an address."""
    return gateway(*listeners, name=name, spec={"addresses": [{"type": "IPAddress", "value": address}]})


def of(name: str, *rules: Any) -> Any:
    """Return a route of a Gateway, by the name of both."""
    return route(*rules, name=name, parents=[{"name": name}])


async def body(made: World, address: str, port: int, path: str = "/") -> str:
    client = await made.proxy.proxy.connect(port=port, to=address)
    await client.send(asking(path))
    got = await read_answer(client)
    return got.body.decode() if got.status == 200 else str(got.status)


async def test_two_gateways_with_equal_ports_and_hosts_answer_each_at_its_address() -> None:
    port = free_port()
    async with world("one", "two", settings=POOL) as made:
        gateways = [at(ONE, listener(port=port), name="one"), at(TWO, listener(port=port), name="two")]
        made.proxy.apply(gateway_class(), *gateways, of("one", to("one")), of("two", to("two")))
        assert [await body(made, address, port) for address in (ONE, TWO)] == ["one", "two"]


async def test_a_gateway_that_goes_closes_its_port_and_no_other_one() -> None:
    port = free_port()
    async with world("one", "two", settings=POOL) as made:
        one, two = at(ONE, listener(port=port), name="one"), at(TWO, listener(port=port), name="two")
        made.proxy.apply(gateway_class(), one, two, of("one", to("one")), of("two", to("two")))
        made.proxy.delete(one)
        with pytest.raises(ConnectionRefusedError):
            await made.proxy.proxy.connect(port=port, to=ONE)
        assert await body(made, TWO, port) == "two"


async def test_an_address_that_changes_is_bound_without_a_restart() -> None:
    port = free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), at(ONE, listener(port=port), name="one"), of("one", to("one")))
        made.proxy.apply(at(TWO, listener(port=port), name="one"))
        assert await body(made, TWO, port) == "one"
        with pytest.raises(ConnectionRefusedError):
            await made.proxy.proxy.connect(port=port, to=ONE)


async def test_a_gateway_with_two_addresses_answers_at_both() -> None:
    port = free_port()
    both = gateway(listener(port=port), name="one", spec={"addresses": [{"value": ONE}, {"value": TWO}]})
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), both, of("one", to("one")))
        assert [await body(made, address, port) for address in (ONE, TWO)] == ["one", "one"]


async def test_the_gateways_own_ports_serve_nothing_of_such_a_gateway() -> None:
    port = free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), at(ONE, listener(port=port), name="one"), of("one", to("one")))
        assert await made.proxy.status() == 404


async def test_a_gateway_may_have_the_number_of_the_gateways_own_port() -> None:
    async with world("one", settings=POOL) as made:
        port = made.proxy.proxy.port
        made.proxy.apply(gateway_class(), at(ONE, listener(port=port), name="one"), of("one", to("one")))
        assert await body(made, ONE, port) == "one"
        assert await made.proxy.status() == 404


async def presented(made: World, address: str, port: int, server_name: str) -> str:
    client = await made.proxy.proxy.connect(unverified(), server_name, port, to=address)
    found = x509.load_der_x509_certificate(client.writer.get_extra_info("ssl_object").getpeercert(True))
    client.close()
    return str(found.subject.rfc4514_string()).removeprefix("CN=")


def certificate(name: str, *names: str) -> Any:
    return pair(name, AUTHORITY.issue(names[0], *map(x509.DNSName, names)), *names)


async def test_two_gateways_with_equal_hosts_present_each_its_certificate() -> None:
    port = free_port()
    async with world("one", "two", settings=POOL) as made:
        made.proxy.apply(
            gateway_class(), certificate("first", "first.example"), certificate("second", "second.example")
        )
        made.proxy.apply(at(ONE, https("https", "first", port=port), name="one"), of("one", to("one")))
        made.proxy.apply(at(TWO, https("https", "second", port=port), name="two"), of("two", to("two")))
        assert await presented(made, ONE, port, HOST) == "first.example"
        assert await presented(made, TWO, port, HOST) == "second.example"
        client = await made.proxy.proxy.connect(unverified(), HOST, port, to=TWO)
        await client.send(asking(host=HOST))
        assert (await read_answer(client)).body == b"two"


async def test_of_several_certificates_that_with_the_server_name_is_presented_and_else_the_first() -> None:
    port = free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate("b", "b.example"), certificate("a", "a.example", "*.a.example"))
        made.proxy.apply(at(ONE, https("https", "b", "a", port=port), name="one"))
        names = ("a.example", "x.a.example", "b.example", "c.example")
        found = [await presented(made, ONE, port, name) for name in names]
        assert found == ["a.example", "a.example", "b.example", "b.example"]


async def test_listeners_of_one_port_hold_their_hosts_and_certificates_apart() -> None:
    port = free_port()
    async with world("web", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate("a", "a.example"), certificate("wild", "x.b.example"))
        both = [https("a", "a", port=port, hostname="a.example"), https("b", "wild", port=port, hostname="*.b.example")]
        parents = [{"name": "one", "sectionName": "b"}]
        made.proxy.apply(at(ONE, *both, name="one"), route(to("web"), name="one", parents=parents))
        assert await presented(made, ONE, port, "a.example") == "a.example"
        assert await presented(made, ONE, port, "y.b.example") == "x.b.example"
        for host, status in (("y.b.example", 200), ("a.example", 404), ("c.example", 404)):
            client = await made.proxy.proxy.connect(unverified(), host, port, to=ONE)
            await client.send(asking(host=host))
            assert (await read_answer(client)).status == status
