"""Entry points besides the gateways' own ports, from settings and manifests to the wire."""

import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.served import asking, read_answer
from fakes.gateway.streams import udp_client, udp_server
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.translator.traefik import route as http_route
from fakes.translator.traefik import rule as http_rule
from fakes.translator.traefik_streams import rule, tcp, udp
from headgate.translator.world.entry_points import OWN_ENTRY_POINTS, EntryPoint
from headgate.translator.world.settings import TranslationSettings

NAMES = ("one.test", "two.test")


@dataclass
class Shop:
    """A proxy with entry points `api` of TCP and `dns` of UDP, and Services `one` and `two`."""

    made: World
    api: int
    dns: int

    async def body(self, name: str, tls: ssl.SSLContext | None = None, port: int = 0) -> bytes:
        """Return the answer to a request for a host on the entry point `api`, or another port."""
        client = await self.made.proxy.proxy.connect(tls, name, port or self.api)
        await client.send(asking(host=name))
        return (await read_answer(client)).body


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    api, dns = free_port(), free_port("127.0.0.1", socket.SOCK_DGRAM)
    points = (*OWN_ENTRY_POINTS, EntryPoint("api", "tcp", api), EntryPoint("dns", "udp", dns, "127.0.0.1"))
    async with world("one", "two", settings=TranslationSettings(entry_points=points)) as made:
        for name in NAMES:
            made.proxy.proxy.present(name, Authority("gateway").issue(name, x509.DNSName(name)))
        yield Shop(made, api, dns)


def to(name: str) -> Any:
    return {"name": name, "port": 80}


async def test_connections_of_a_port_go_to_a_service(shop: Shop) -> None:
    shop.made.proxy.apply(tcp(rule("HostSNI(`*`)", to("one")), entryPoints=["api"]))
    assert await shop.body("any.test") == b"one"


async def test_a_port_has_several_server_names(shop: Shop) -> None:
    rules = (rule(f"HostSNI(`{name}`)", to(name.partition(".")[0])) for name in NAMES)
    shop.made.proxy.apply(tcp(*rules, entryPoints=["api"], tls={}))
    assert [await shop.body(name, unverified()) for name in NAMES] == [b"one", b"two"]


async def test_streams_of_one_server_name_differ_by_the_protocols_that_clients_offer(shop: Shop) -> None:
    asking_for = rule(f"HostSNI(`{NAMES[0]}`) && ALPN(`db`)", to("one")), rule(f"HostSNI(`{NAMES[0]}`)", to("two"))
    shop.made.proxy.apply(tcp(*asking_for, entryPoints=["api"], tls={}))
    offering = unverified()
    offering.set_alpn_protocols(["db"])
    assert [await shop.body(NAMES[0], offering), await shop.body(NAMES[0], unverified())] == [b"one", b"two"]


async def test_datagrams_go_to_a_service(shop: Shop) -> None:
    route = udp({"services": [{"name": "names", "port": 53}]}, entryPoints=["dns"])
    async with udp_server() as upstream, udp_client("127.0.0.1", shop.dns) as client:
        made = service("names")
        made["spec"]["ports"] = [{"name": "udp", "port": 53, "protocol": "UDP"}]
        slices = endpoint_slice("names", "127.0.0.1")
        slices["ports"] = [{"name": "udp", "port": upstream.port, "protocol": "UDP"}]
        shop.made.proxy.apply(made, slices, route)
        assert shop.made.proxy.problems(route) == []
        client.send(b"abc")
        assert await client.next() == b"ABC"


HTTP_ANY = f"Host(`{NAMES[0]}`)"


async def test_a_port_speaks_plain_http_and_https_as_its_routes_do(shop: Shop) -> None:
    plain = http_route(http_rule(HTTP_ANY, to("one")), name="plain", spec={"entryPoints": ["api"]})
    secure = http_route(http_rule(HTTP_ANY, to("two")), name="secure", spec={"entryPoints": ["api"], "tls": {}})
    shop.made.proxy.apply(plain)
    assert await shop.body(NAMES[0]) == b"one"
    assert await shop.made.proxy.status(host=NAMES[0]) == 404
    shop.made.proxy.apply(secure)
    assert [await shop.body(NAMES[0]), await shop.body(NAMES[0], unverified())] == [b"one", b"two"]
    shop.made.proxy.delete(plain)
    assert await shop.body(NAMES[0], unverified()) == b"two"
    shop.made.proxy.delete(secure)
    with pytest.raises(ConnectionError):
        await shop.body(NAMES[0])


async def test_a_route_is_on_several_entry_points(shop: Shop) -> None:
    shop.made.proxy.apply(http_route(http_rule(HTTP_ANY, to("one")), spec={"entryPoints": ["web", "api"]}))
    assert [(await shop.made.proxy.get(host=NAMES[0])).body, await shop.body(NAMES[0])] == [b"one", b"one"]


async def test_a_route_without_entry_points_is_on_the_default_ones(shop: Shop) -> None:
    shop.made.proxy.apply(http_route(http_rule(HTTP_ANY, to("one"))))
    assert [(await shop.made.proxy.get(host=NAMES[0])).body, await shop.body(NAMES[0])] == [b"one", b"one"]


async def test_of_the_routes_of_an_entry_point_the_longest_rule_goes_first_whatever_its_host(shop: Shop) -> None:
    rules = http_rule(HTTP_ANY, to("one")), http_rule("HostRegexp(`^[a-z]+[.]test$`)", to("two"))
    shop.made.proxy.apply(http_route(*rules, spec={"entryPoints": ["api"]}))
    assert await shop.body(NAMES[0]) == b"two"


async def test_streams_share_a_port_with_https_which_keeps_its_hosts(shop: Shop) -> None:
    web = http_route(http_rule(HTTP_ANY, to("one")), spec={"entryPoints": ["api"], "tls": {}})
    rest = tcp(rule("HostSNI(`*`)", to("two")), entryPoints=["api"], tls={})
    shop.made.proxy.apply(web, rest)
    assert [await shop.body(name, unverified()) for name in NAMES] == [b"one", b"two"]
    assert shop.made.proxy.problems(rest) == []


async def test_streams_take_the_server_names_of_the_https_port_that_no_host_has(shop: Shop) -> None:
    web = http_route(http_rule(HTTP_ANY, to("one")), spec={"tls": {}})
    shop.made.proxy.apply(web, tcp(rule("HostSNI(`*`)", to("two")), entryPoints=["websecure"], tls={}))
    proxy = shop.made.proxy.proxy
    assert [await shop.body(name, unverified(), proxy.https_port) for name in NAMES] == [b"one", b"two"]


async def test_a_stream_for_all_plain_connections_leaves_those_over_tls_to_https(shop: Shop) -> None:
    web = http_route(http_rule(HTTP_ANY, to("one")), spec={"entryPoints": ["api"], "tls": {}})
    shop.made.proxy.apply(web, tcp(rule("HostSNI(`*`)", to("two")), entryPoints=["api"]))
    assert [await shop.body(NAMES[0], unverified()), await shop.body(NAMES[0])] == [b"one", b"two"]


async def test_a_host_has_one_owner_on_all_entry_points(shop: Shop) -> None:
    """Cookies and passwords of a host know no ports."""
    owned = ingress("web", host=NAMES[0], path="/", service="one", created="2026-01-01T00:00:00Z")
    made = {"namespace": "shop", "creationTimestamp": "2026-02-01T00:00:00Z"}
    thief = http_route(http_rule(HTTP_ANY, to("two")), spec={"entryPoints": ["api"]}, **made)
    stream = tcp(rule("HostSNI(`*`)", to("two")), entryPoints=["api"])
    stream["metadata"] |= made
    shop.made.proxy.apply(owned, thief)
    assert "HostNotOwned" in shop.made.proxy.errors(thief)
    rule_below = http_rule(f"{HTTP_ANY} && PathPrefix(`/x`)", to("two"))
    below = http_route(rule_below, spec={"entryPoints": ["api"]}, **made)
    shop.made.proxy.apply(below, stream)
    assert "HostNotOwned" not in shop.made.proxy.errors(below)
    assert "HostNotOwned" in shop.made.proxy.errors(stream)
