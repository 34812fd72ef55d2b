"""IngressRouteTCPs from manifests to the wire."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.proxied import answering
from fakes.gateway.served import asking, named, origins, read_answer
from fakes.gateway.tls import Authority, SelfSigned, unverified
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service, tls_secret
from fakes.translator.traefik import route as http_route
from fakes.translator.traefik import rule as http_rule
from fakes.translator.traefik_streams import resource, rule, tcp
from fakes.waiting import until

PASSED, ENDED, OTHER = "passed.test", "ended.test", "other.test"
OF_SERVICE = SelfSigned(PASSED)


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy with certificates, plain Services `one` and `two`, and `secure`, which speaks TLS itself."""
    async with (
        origins(answering(named(b"secure")), tls=OF_SERVICE.server_context()) as (secure,),
        world("one", "two") as made,
    ):
        for name in (ENDED, OTHER):
            made.proxy.proxy.present(name, Authority("gateway").issue(name, x509.DNSName(name)))
        made.proxy.apply(service("secure"), endpoint_slice("secure", "127.0.0.1", port=secure.port))
        yield made


def to(name: str, **fields: Any) -> Any:
    return {"name": name, "port": 80, **fields}


async def ask(made: World, name: str, context: ssl.SSLContext | None = None) -> bytes:
    client = await made.proxy.proxy.connect(context or unverified(), name)
    await client.send(asking(host=name))
    return (await read_answer(client)).body


async def test_tls_of_a_server_name_is_left_to_the_service_and_other_names_are_https(shop: World) -> None:
    passed = rule(f"HostSNI(`{PASSED}`)", to("secure"))
    shop.proxy.apply(tcp(passed, entryPoints=["websecure"], tls={"passthrough": True}))
    shop.proxy.apply(http_route(http_rule(f"Host(`{OTHER}`)", to("one")), spec={"tls": {}}))
    assert await ask(shop, PASSED, OF_SERVICE.client_context()) == b"secure"
    assert await ask(shop, OTHER) == b"one"


async def test_tls_of_a_server_name_ends_here_and_services_share_its_connections(shop: World) -> None:
    ended = rule(f"HostSNI(`{ENDED}`)", to("one", weight=3), to("two"))
    shop.proxy.apply(tcp(ended, tls={}))
    found = [await ask(shop, ENDED) for _ in range(8)]
    assert (found.count(b"one"), found.count(b"two")) == (6, 2)


async def test_a_connection_that_ends_here_goes_on_in_tls_to_a_service_that_wants_it(shop: World) -> None:
    """Its certificate is checked, and this one is for another name."""
    shop.proxy.apply(tcp(rule(f"HostSNI(`{ENDED}`)", to("secure", tls=True)), tls={}))
    with pytest.raises((ConnectionError, EOFError, ssl.SSLError)):
        await ask(shop, ENDED)


async def test_connections_of_a_route_that_cannot_be_followed_are_closed(shop: World) -> None:
    closed = tcp(rule(f"HostSNI(`{ENDED}`)", to("one"), middlewares=[{"name": "allowed"}]), tls={})
    shop.proxy.apply(closed)
    assert shop.proxy.problems(closed) == ["MiddlewareTCPNotFound"]
    with pytest.raises((ConnectionError, EOFError, ssl.SSLError)):
        await ask(shop, ENDED)


@pytest.mark.parametrize(("network", "is_admitted"), [("127.0.0.0/8", True), ("10.0.0.0/8", False)])
async def test_a_middleware_admits_some_networks(shop: World, network: str, is_admitted: bool) -> None:
    guarded = tcp(rule(f"HostSNI(`{ENDED}`)", to("one"), middlewares=[{"name": "allowed"}]), tls={})
    shop.proxy.apply(guarded, resource("MiddlewareTCP", "allowed", ipAllowList={"sourceRange": [network]}))
    assert shop.proxy.problems(guarded) == []
    if is_admitted:
        assert await ask(shop, ENDED) == b"one"
    else:
        with pytest.raises((ConnectionError, EOFError, ssl.SSLError)):
            await ask(shop, ENDED)


async def test_connections_of_an_address_are_bounded(shop: World) -> None:
    guarded = tcp(rule(f"HostSNI(`{ENDED}`)", to("one"), middlewares=[{"name": "bound"}]), tls={})
    shop.proxy.apply(guarded, resource("MiddlewareTCP", "bound", inFlightConn={"amount": 1}))
    first = await shop.proxy.proxy.connect(unverified(), ENDED)
    await first.send(asking(host=ENDED))
    assert (await read_answer(first)).body == b"one"
    with pytest.raises((ConnectionError, EOFError, ssl.SSLError)):
        await ask(shop, ENDED)
    first.close()
    again = await until(lambda: ask(shop, ENDED), despite=(ConnectionError, EOFError, ssl.SSLError))
    assert again == b"one"


REFUSED = (ConnectionError, EOFError, ssl.SSLError)
CLIENTS = Authority("clients")
STRICT = {"clientAuth": {"clientAuthType": "RequireAndVerifyClientCert", "secretNames": ["clients"]}}


def knowing(authority: Authority, folder: Path) -> ssl.SSLContext:
    context = unverified()
    context.load_cert_chain(*authority.issue("client").write(folder))
    return context


@pytest.mark.parametrize("name", ["strict", "default"])
async def test_an_option_asks_clients_for_certificates(shop: World, name: str, tmp_path: Path) -> None:
    options = {} if name == "default" else {"options": {"name": name}}
    guarded = tcp(rule(f"HostSNI(`{ENDED}`)", to("one")), tls=options)
    shop.proxy.apply(tls_secret("clients", authorities_pem=CLIENTS.pem.decode()))
    shop.proxy.apply(resource("TLSOption", name, **STRICT), guarded)
    assert shop.proxy.problems(guarded) == []
    assert await ask(shop, ENDED, knowing(CLIENTS, tmp_path)) == b"one"
    for context in (unverified(), knowing(Authority("others"), tmp_path)):
        with pytest.raises(REFUSED):
            await ask(shop, ENDED, context)


async def test_each_route_has_the_versions_of_its_own_option(shop: World) -> None:
    modern = rule(f"HostSNIRegexp(`^{ENDED}$`)", to("one"))
    shop.proxy.apply(resource("TLSOption", "modern", minVersion="VersionTLS13"))
    shop.proxy.apply(tcp(modern, tls={"options": {"name": "modern"}}))
    shop.proxy.apply(tcp(rule(f"HostSNI(`{OTHER}`)", to("two")), tls={}, name="other"))
    old = unverified()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert await ask(shop, ENDED) == b"one"
    assert await ask(shop, OTHER, old) == b"two"
    with pytest.raises(REFUSED):
        await ask(shop, ENDED, old)


@pytest.mark.parametrize(
    ("options", "reason"),
    [([], "TLSOptionNotFound"), ([resource("TLSOption", "strict", cipherSuites=["NONE"])], "InvalidTLSOption")],
)
async def test_an_option_that_cannot_be_followed_lets_no_client_in(shop: World, options: Any, reason: str) -> None:
    closed = tcp(rule(f"HostSNI(`{ENDED}`)", to("one")), tls={"options": {"name": "strict"}})
    shop.proxy.apply(*options, closed)
    assert shop.proxy.errors(closed) == [reason]
    with pytest.raises(REFUSED):
        await ask(shop, ENDED)
