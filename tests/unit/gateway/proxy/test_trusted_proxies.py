"""Who the client is, where proxies in front say so."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.proxied import Proxied, proxied
from fakes.peers.http2 import http2_client, request
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.proxy.heads.origin import TrustedPeers
from headgate.gateway.proxy.peer import Peer

NETWORKS = ("10.0.0.0/8", "127.0.0.1", "fd00::/8")


def origin(header: str, value: bytes, **claims: bytes) -> Peer:
    """Give whom 10.0.0.1, over https, names in a header and in `X-Forwarded-*`."""
    fields = RequestFields()
    fields.forwarded = {b"x-forwarded-" + name.encode(): claim for name, claim in claims.items()}
    fields.forwarded[header.lower().encode()] = value
    trusted = TrustedPeers(ProxyConfig(trusted_proxies=NETWORKS, real_ip_header=header))
    return trusted.origin(Peer(b"10.0.0.1", b"https", b"8443", is_trusted=True), fields)


@pytest.mark.parametrize(
    ("value", "client"),
    [
        (b"1.1.1.1", b"1.1.1.1"),
        (b"6.6.6.6, 1.1.1.1", b"1.1.1.1"),
        (b"6.6.6.6, 1.1.1.1, 10.9.9.9,127.0.0.1", b"1.1.1.1"),
        (b"10.2.2.2, 10.3.3.3", b"10.2.2.2"),
        (b"1.1.1.1:4711", b"1.1.1.1"),
        (b"2001:db8::1", b"2001:db8::1"),
        (b"[2001:db8::1]:80, fd00::7", b"2001:db8::1"),
        (b"::ffff:1.1.1.1", b"1.1.1.1"),
        (b"1.1.1.1, unknown, 10.2.2.2", b"10.2.2.2"),
        (b"1.1.1.1, 999.1.1.1", b"10.0.0.1"),
        (b"1.1.1.1,", b"10.0.0.1"),
        (b"", b"10.0.0.1"),
    ],
)
def test_client_is_the_last_address_that_no_trusted_proxy_has(value: bytes, client: bytes) -> None:
    assert origin("X-Forwarded-For", value).address == client


@pytest.mark.parametrize(
    ("value", "client"),
    [
        (b"for=1.1.1.1;proto=http", b"1.1.1.1"),
        (b'for=6.6.6.6, For="[2001:db8::1]:4711";by=x, proto=https;for=10.2.2.2', b"2001:db8::1"),
        (b'for="1.1.1.1, for=6.6.6.6"', b"10.0.0.1"),
        (b'by="for=6.6.6.6", for=10.2.2.2', b"10.2.2.2"),
        (b"for=_hidden, for=10.2.2.2", b"10.2.2.2"),
        (b'for=6.6.6.6, x="a;for=1.1.1.1;b=c"', b"10.0.0.1"),
    ],
)
def test_forwarded_is_read_as_its_grammar_says(value: bytes, client: bytes) -> None:
    assert origin("Forwarded", value).address == client


@given(st.binary(max_size=40), st.sampled_from(["X-Forwarded-For", "Forwarded", "X-Real-IP"]))
def test_any_value_names_an_address_or_leaves_the_peer(value: bytes, header: str) -> None:
    assert origin(header, value).lines.count(b"\r\n") == 4


@pytest.mark.parametrize(
    ("claimed", "scheme"), [(b"http", b"http"), (b"HTTP, https", b"http"), (b"gopher", b"https"), (b"", b"https")]
)
def test_scheme_is_what_the_proxy_says_if_it_is_one(claimed: bytes, scheme: bytes) -> None:
    assert origin("X-Forwarded-For", b"1.1.1.1", proto=claimed).scheme == scheme


@pytest.mark.parametrize(("claimed", "port"), [(b"443", b"443"), (b"+1", b"8443"), (b"123456", b"8443")])
def test_port_is_what_the_proxy_says_if_it_is_one(claimed: bytes, port: bytes) -> None:
    assert origin("X-Forwarded-For", b"1.1.1.1", port=claimed).port == port


CLAIMS = (
    b"X-Forwarded-For: 6.6.6.6, 1.1.1.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nX-Real-IP: 6.6.6.6\r\n"
)


async def seen(proxy: Proxied, lines: bytes) -> bytes:
    await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + lines + b"Connection: close\r\n\r\n")
    return proxy.origin.heads[-1]


async def test_upstream_and_log_see_the_client_behind_a_trusted_proxy() -> None:
    async with proxied(config=ProxyConfig(trusted_proxies=("127.0.0.0/8",))) as proxy:
        head = await seen(proxy, CLAIMS)
        assert b"X-Forwarded-For: 6.6.6.6, 1.1.1.1, 127.0.0.1\r\n" in head
        assert b"X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\n" in head
        assert head.count(b"X-Real-IP: 1.1.1.1\r\n") == head.lower().count(b"x-real-ip") == 1
        assert proxy.log.records[0][1] == b"1.1.1.1"


async def test_claims_of_others_than_trusted_proxies_are_dropped() -> None:
    async with proxied(config=ProxyConfig(trusted_proxies=("10.0.0.0/8",))) as proxy:
        head = await seen(proxy, CLAIMS)
        assert b"6.6.6.6" not in head
        assert b"X-Forwarded-For: 127.0.0.1\r\n" in head
        assert b"X-Forwarded-Proto: http\r\n" in head
        assert proxy.log.records[0][1] == b"127.0.0.1"


@pytest.mark.parametrize(("network", "client"), [("127.0.0.1", b"1.1.1.1"), ("10.0.0.1", b"127.0.0.1")])
async def test_header_of_ones_own_is_for_trusted_proxies_alone(network: str, client: bytes) -> None:
    config = ProxyConfig(trusted_proxies=(network,), real_ip_header="CF-Connecting-IP")
    async with proxied(config=config) as proxy:
        head = await seen(proxy, b"cf-connecting-ip: 1.1.1.1\r\n")
        assert (b"cf-connecting-ip: 1.1.1.1\r\n" in head) is (client == b"1.1.1.1")
        assert b"X-Real-IP: %b\r\n" % client in head


async def test_routes_and_plugins_see_the_client_of_an_http2_request() -> None:
    facts: list[Any] = []

    async with proxied(config=ProxyConfig(trusted_proxies=("127.0.0.1",))) as proxy:
        match = proxy.router.match

        def look(host: bytes, path: bytes, source: Any) -> Any:
            facts.append((source.facts().client, source.facts().scheme))
            return match(host, path, source)

        proxy.router.match = look  # type: ignore[method-assign]
        async with http2_client(proxy.port) as client:
            more = ((b"x-forwarded-for", b"1.1.1.1"), (b"x-forwarded-proto", b"https"))
            await client.fetch(request(b"GET", b"/", *more))
        assert facts == [(b"1.1.1.1", b"https")]


async def test_requests_on_one_connection_have_clients_of_their_own() -> None:
    async with proxied(config=ProxyConfig(trusted_proxies=("127.0.0.1",))) as proxy:
        client = await proxy.connect()
        for line in (b"X-Forwarded-For: 1.1.1.1\r\n", b"", b"X-Forwarded-For: 2.2.2.2\r\n"):
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % line)
            await client.answer()
        assert [record[1] for record in proxy.log.records] == [b"1.1.1.1", b"127.0.0.1", b"2.2.2.2"]
