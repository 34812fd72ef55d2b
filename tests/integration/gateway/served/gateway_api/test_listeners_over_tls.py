"""HTTPS listeners of Gateways, from manifests to the wire: certificates, hosts, grants."""

from typing import Any

from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.served import HOST, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, pair, world
from fakes.translator.gateway_api import gateway, gateway_class, grant, https, listener, route, to

AUTHORITY = Authority()


def certificate(name: str, *names: str, namespace: str = "default") -> Any:
    made = pair(name, AUTHORITY.issue(names[0], *map(x509.DNSName, names)), *names)
    made["metadata"]["namespace"] = namespace
    return made


async def presented(made: World, server_name: str, port: int = 0) -> str:
    """Return the name of the certificate that a client gets."""
    client = await made.proxy.proxy.connect(unverified(), server_name, port)
    tls = client.writer.get_extra_info("ssl_object")
    found = x509.load_der_x509_certificate(tls.getpeercert(True))
    client.close()
    return str(found.subject.rfc4514_string()).removeprefix("CN=")


async def test_a_listener_ends_tls_with_its_certificate_and_plain_requests_are_no_route_of_it() -> None:
    async with world("web") as made:
        made.proxy.apply(gateway_class(), certificate("cert", HOST), gateway(https("https", "cert")))
        made.proxy.apply(route(to("web")))
        assert (await made.proxy.proxy.secure()).body == b"web"
        assert await presented(made, HOST) == HOST
        assert await made.proxy.status() == 404


async def test_a_route_of_both_listeners_is_served_on_both() -> None:
    async with world("web") as made:
        both = gateway(listener(), https("https", "cert"))
        made.proxy.apply(gateway_class(), certificate("cert", HOST), both, route(to("web")))
        assert (await made.proxy.proxy.secure()).body == b"web"
        assert (await made.proxy.get()).body == b"web"


async def test_a_route_of_one_of_two_listeners_is_not_served_on_the_other() -> None:
    async with world("plain", "secure") as made:
        both = gateway(listener(), https("https", "cert"))
        parents = {name: [{"name": "gw", "sectionName": name}] for name in ("http", "https")}
        made.proxy.apply(
            *(gateway_class(), certificate("cert", HOST), both),
            route(to("plain"), name="plain", parents=parents["http"]),
            route(to("secure"), name="secure", parents=parents["https"]),
        )
        assert (await made.proxy.proxy.secure()).body == b"secure"
        assert (await made.proxy.get()).body == b"plain"


async def test_each_listener_has_its_certificate() -> None:
    one, two = https("one", "one", hostname="one.example"), https("two", "two", hostname="*.two.example")
    async with world("web") as made:
        made.proxy.apply(gateway_class(), certificate("one", "one.example"), certificate("two", "any.name"))
        made.proxy.apply(gateway(one, two), route(to("web")))
        assert await presented(made, "one.example") == "one.example"
        assert await presented(made, "a.two.example") == "any.name"


async def test_a_port_of_its_own_speaks_tls() -> None:
    port = free_port()
    async with world("web") as made:
        own = gateway(https("own", "cert", port=port))
        made.proxy.apply(gateway_class(), certificate("cert", HOST), own, route(to("web")))
        client = await made.proxy.proxy.connect(unverified(), HOST, port)
        await client.send(asking(host=HOST))
        assert (await read_answer(client)).body == b"web"
        assert await presented(made, HOST, port) == HOST


async def test_a_certificate_of_another_namespace_is_presented_while_that_grants_it() -> None:
    named = {"name": "cert", "namespace": "certs"}
    permission = grant("Gateway", "default", "Secret", namespace="certs")
    async with world("web") as made:
        made.proxy.apply(gateway_class(), certificate("cert", HOST, namespace="certs"), gateway(https("https", named)))
        made.proxy.apply(route(to("web")))
        assert await presented(made, HOST) != HOST
        made.proxy.apply(permission)
        assert await presented(made, HOST) == HOST
