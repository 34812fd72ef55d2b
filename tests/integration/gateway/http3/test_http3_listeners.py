"""HTTP/3 on the ports of the table's listeners, and behind proxies that say who their client is."""

import asyncio
import socket

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import HOST, Got, Served, asking, at, named, origins, read_answer, served, site, to
from fakes.gateway.streams import backend, stream
from fakes.gateway.table import listener
from fakes.gateway.tls import Authority, unverified
from fakes.gateway.tls_listener import asking as asking_clients
from fakes.peers.http3 import head_of, http3_client
from fakes.waiting import until
from headgate.common.secret import Secret
from headgate.common.table import TlsPolicy, VirtualHost
from headgate.gateway.tls import CertificateEntry

KEY = "gw/secure"


def on(upstream: str = "up", *, tls: TlsPolicy | None = None) -> VirtualHost:
    return VirtualHost(host=HOST, routes=(to(upstream),), listeners=(KEY,), tls=tls)


async def over_tcp(proxy: Served, port: int = 0) -> Got:
    client = await proxy.connect(unverified(), HOST, port)
    await client.send(asking())
    return await read_answer(client)


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


async def test_a_listener_offers_http3_on_its_own_port_and_serves_its_own_routes() -> None:
    port = free_port()
    async with (
        origins(answering(*[named(b"own")] * 4), answering(*[named(b"listener")] * 4)) as (own, other),
        served(at(own.port), at(other.port, key="other"), site(), http3=True) as proxy,
    ):
        proxy.put(listener(KEY, port=port, protocol="https"), on("other"))
        assert set(proxy.listeners.names) == {f"https://127.0.0.1:{port}", f"h3://127.0.0.1:{port}"}
        assert (await over_tcp(proxy, port)).all("alt-svc") == [f'h3=":{port}"; ma=86400']
        assert (await over_tcp(proxy)).all("alt-svc") == [f'h3=":{proxy.https_port}"; ma=86400']
        async with http3_client(port) as client, http3_client(proxy.https_port) as beside:
            assert (await client.ask()).body == b"listener"
            assert (await beside.ask()).body == b"own"


async def test_certificates_and_policies_are_those_of_the_listener() -> None:
    port, authority = free_port(), Authority()
    issued = authority.issue(HOST, x509.DNSName(HOST))
    entry = CertificateEntry((), issued.chain_pem.decode(), Secret(issued.key_pem), "mine", "mine", "")
    async with origins(answering(*[OK] * 4)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        proxy.certificates.set_certificates([entry])
        proxy.put(listener(KEY, port=port, protocol="https", certificates=("mine",)), on())
        async with http3_client(port, verify_mode=2, cadata=authority.pem) as client:
            assert (await client.ask()).status == 200
            proxy.put(on(tls=asking_clients(authority.pem)))
            assert (await client.ask()).status == 421
        async with http3_client(port, waits=False) as refused:
            assert (await refused.until_closed()).error_code == 0x100 + 49
        async with http3_client(proxy.https_port) as own:
            assert (await own.ask()).status == 200


async def test_a_listener_that_goes_lets_requests_finish_and_comes_back() -> None:
    port = free_port()
    go_on = asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        while True:
            if b"/slow" in await conversation.head():
                await go_on.wait()
            await conversation.send(OK)

    async with origins(slow) as (origin,), served(at(origin.port), http3=True) as proxy:
        proxy.put(listener(KEY, port=port, protocol="https"), on())
        async with http3_client(port) as client:
            stream_id = client.begin(head_of("/slow"), end=True)
            await until(lambda: origin.heads != [])
            proxy.remove("listeners", KEY)
            await until(lambda: client.goaways() != [])
            assert proxy.listeners.names == ()
            go_on.set()
            assert (await client.answers[stream_id].until_over()).status == 200
        await until(lambda: is_free(port))
        proxy.put(listener(KEY, port=port, protocol="https"))
        async with http3_client(port) as client:
            assert (await client.ask()).status == 200


async def test_a_udp_stream_has_its_port_and_http3_comes_once_it_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), http3=True) as proxy:
        proxy.put(listener(KEY, port=port, protocol="https"), on())
        async with http3_client(port) as client:
            proxy.put(stream(port, protocol="udp"))
            assert (await client.until_closed()).error_code == 0x10C
        assert (await over_tcp(proxy, port)).all("alt-svc") == []
        assert proxy.listeners.names == (f"https://127.0.0.1:{port}",)
        assert [record.error for record in caplog.records if "HTTP/3" in record.message] == [  # type: ignore[attr-defined]
            "a stream route has the UDP port"
        ]
        proxy.remove("streams", "s")
        assert (await over_tcp(proxy, port)).all("alt-svc") == [f'h3=":{port}"; ma=86400']
        async with http3_client(port) as client:
            assert (await client.ask()).status == 200


async def test_a_port_that_somebody_else_has_is_tried_with_the_next_table(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), http3=True) as proxy:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", port))
            proxy.put(listener(KEY, port=port, protocol="https"), on())
            proxy.put(on())
            assert (await over_tcp(proxy, port)).all("alt-svc") == []
        assert [record.message for record in caplog.records] == ["a listener's port does not speak HTTP/3"]
        proxy.put(on())
        async with http3_client(port) as client:
            assert (await client.ask()).status == 200


async def test_a_listener_of_tls_that_becomes_plain_speaks_no_http3() -> None:
    port = free_port()
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), http3=True) as proxy:
        proxy.put(listener(KEY, port=port, protocol="https"), on())
        async with http3_client(port) as client:
            assert (await client.ask()).status == 200
            proxy.put(listener(KEY, port=port, protocol="http"))
            await until(lambda: client.goaways() != [])
        await until(lambda: is_free(port))
        proxy.put(listener(KEY, port=port, protocol="https"))
        async with http3_client(port) as client:
            assert (await client.ask()).status == 200


async def test_a_proxy_of_datagrams_says_who_its_client_is() -> None:
    port = free_port(kind=socket.SOCK_DGRAM)
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True, proxy_protocol=True) as proxy,
    ):
        before = backend(proxy.https_port, key="before", protocol="udp", proxy_protocol=2)
        proxy.put(before, stream(port, up="before", protocol="udp"))
        async with http3_client(port) as client:
            assert (await client.ask()).status == 200
        # No other part of the gateway knows the number of the port that the client connected to.
        assert b"x-forwarded-port: %d\r\n" % port in origin.heads[0].lower()


async def test_datagrams_without_the_header_that_is_expected_begin_nothing() -> None:
    async with (
        served(site(), http3=True, proxy_protocol=True) as proxy,
        http3_client(proxy.https_port, waits=False),
    ):
        await asyncio.sleep(0.3)
        assert proxy.certificates.counts.started == 0
