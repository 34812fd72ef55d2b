"""HTTPS listeners of Gateways, from manifests to the wire: certificates, hosts, grants."""

from typing import Any

import pytest
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


ANY, SECOND, WILD, FOURTH = "any.example", "second.example", "third.wild.example", "fourth.wild.example"


@pytest.mark.parametrize(
    ("server_name", "host", "answer"),
    [
        (ANY, ANY, "one"),
        (ANY, SECOND, 421),
        (ANY, "unknown.example", 404),
        (SECOND, SECOND, "two"),
        (SECOND, ANY, 421),
        (SECOND, "unknown.example", 421),
        (WILD, WILD, "three"),
        (WILD, "fifth.wild.example", "three"),
        (WILD, FOURTH, 421),
        (WILD, SECOND, 421),
        (WILD, "unknown.example", 421),
        (FOURTH, FOURTH, "one"),
        (FOURTH, "fifth.wild.example", 421),
        ("unknown.example", ANY, "one"),
        ("unknown.example", "unknown.example", 404),
    ],
)
async def test_a_request_by_a_connection_for_another_listener_is_misdirected(
    server_name: str, host: str, answer: str | int
) -> None:
    """The cases of upstream's `HTTPRouteHTTPSListenerDetectMisdirectedRequests`."""
    listeners = {"any": "", "second": SECOND, "wild": "*.wild.example", "fourth": FOURTH}
    written = [https(name, "cert", **({"hostname": one} if one else {})) for name, one in listeners.items()]
    async with world("one", "two", "three") as made:
        made.proxy.apply(gateway_class(), certificate("cert", ANY), gateway(*written))
        for name, backend in {"any": "one", "second": "two", "wild": "three", "fourth": "one"}.items():
            hostnames = [ANY] if name == "any" else ()
            at = [{"name": "gw", "sectionName": name}]
            made.proxy.apply(route(to(backend), name=name, parents=at, hostnames=hostnames))
        client = await made.proxy.proxy.connect(unverified(), server_name)
        await client.send(asking(host=host))
        got = await read_answer(client)
        assert (got.body.decode() if got.status == 200 else got.status) == answer


async def test_of_one_listener_no_request_is_misdirected_and_over_plain_http_none_is() -> None:
    async with world("web") as made:
        made.proxy.apply(gateway_class(), certificate("cert", HOST), gateway(listener(), https("https", "cert")))
        made.proxy.apply(route(to("web")))
        client = await made.proxy.proxy.connect(unverified(), "other.example")
        await client.send(asking(host=HOST))
        assert (await read_answer(client)).body == b"web"
        two = gateway(listener(), https("https", "cert"), https("more", "cert", hostname="more.example"))
        made.proxy.apply(two)
        assert (await made.proxy.get()).body == b"web"
