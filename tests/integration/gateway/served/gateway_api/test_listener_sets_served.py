"""ListenerSets from manifests to the wire, at shared ports and at addresses of their Gateway's own."""

from typing import Any

from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.served import asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, pair, world
from fakes.translator.gateway_api import (
    allowing,
    gateway,
    gateway_class,
    https,
    listener,
    listener_set,
    of_set,
    route,
    stream_route,
    to,
)
from headgate.translator.world.address_pool import read_pool
from headgate.translator.world.settings import TranslationSettings

POOL = TranslationSettings(gateway_addresses=read_pool(["127.10.0.0/28"]))
ONE = "127.10.0.1"
AUTHORITY = Authority()


def at(*listeners: Any, **fields: Any) -> Any:
    return gateway(*listeners, spec={"addresses": [{"type": "IPAddress", "value": ONE}], **fields})


async def body(made: World, port: int, host: str, address: str = "127.0.0.1", path: str = "/") -> str:
    client = await made.proxy.proxy.connect(port=port, to=address)
    await client.send(asking(path, host=host))
    got = await read_answer(client)
    return got.body.decode() if got.status == 200 else str(got.status)


async def test_routes_of_a_gateway_and_of_its_set_are_asked_at_their_own_listeners_alone() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(gateway_class(), gateway(listener(hostname="a.com"), spec=allowing("Same")))
        made.proxy.apply(listener_set(listener("b", hostname="b.com"), listener("c", hostname="*.com")))
        made.proxy.apply(route(to("one"), name="one"), route(to("two"), name="two", parents=[of_set()]))
        port = made.proxy.proxy.port
        assert [await body(made, port, host) for host in ("a.com", "b.com", "c.com")] == ["one", "two", "two"]


async def test_a_hostname_of_the_gateway_is_left_out_of_a_wildcard_of_its_set() -> None:
    async with world("two") as made:
        made.proxy.apply(gateway_class(), gateway(listener(hostname="a.com"), spec=allowing("Same")))
        made.proxy.apply(listener_set(listener("c", hostname="*.com")), route(to("two"), parents=[of_set()]))
        port = made.proxy.proxy.port
        assert [await body(made, port, host) for host in ("a.com", "c.com")] == ["404", "two"]


async def test_a_set_of_another_namespace_opens_a_port_and_closes_it_when_it_is_let_in_no_more() -> None:
    port = free_port()
    async with world("one") as made:
        parent = {"name": "gw", "namespace": "default"}
        more = listener_set(listener("b", port), parent=parent, namespace="other")
        more["spec"]["listeners"][0]["allowedRoutes"] = {"namespaces": {"from": "All"}}
        made.proxy.apply(gateway_class(), gateway(listener(hostname="a.com"), spec=allowing("All")), more)
        made.proxy.apply(route(to("one"), parents=[of_set(namespace="other")]))
        assert await body(made, port, "any.com") == "one"
        made.proxy.apply(gateway(listener(hostname="a.com"), spec=allowing("Same")))
        assert await body(made, made.proxy.proxy.port, "any.com") == "404"
        assert not made.proxy.proxy.listeners.names


async def test_a_set_is_at_the_addresses_of_its_gateway_with_its_own_certificate() -> None:
    port, secure = free_port(), free_port()
    async with world("one", settings=POOL) as made:
        issued = AUTHORITY.issue("b.com", x509.DNSName("b.com"))
        made.proxy.apply(gateway_class(), pair("cert", issued, "b.com"))
        made.proxy.apply(at(listener(port=port, hostname="a.com"), **allowing("Same")))
        made.proxy.apply(listener_set(listener("b", port, hostname="b.com"), https("s", "cert", port=secure)))
        made.proxy.apply(route(to("one"), parents=[of_set()]))
        assert [await body(made, port, host, ONE) for host in ("a.com", "b.com")] == ["404", "one"]
        client = await made.proxy.proxy.connect(unverified(), "b.com", secure, to=ONE)
        found = x509.load_der_x509_certificate(client.writer.get_extra_info("ssl_object").getpeercert(True))
        assert found.subject.rfc4514_string() == "CN=b.com"


async def test_listeners_of_one_name_in_a_gateway_and_its_set_are_two() -> None:
    first, second = free_port(), free_port()
    async with world("one", "two", settings=POOL) as made:
        made.proxy.apply(gateway_class(), at(listener("tcp", first, "TCP"), **allowing("Same")))
        made.proxy.apply(listener_set(listener("tcp", second, "TCP")))
        made.proxy.apply(stream_route("TCPRoute", "one", name="one"))
        made.proxy.apply(stream_route("TCPRoute", "two", name="two", parents=[of_set()]))
        assert [await body(made, port, "any.com", ONE) for port in (first, second)] == ["one", "two"]
