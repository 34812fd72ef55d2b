"""How endpoints are spoken to: TLS, Host, PROXY headers, and how long connections are kept."""

import asyncio
import ssl
from ipaddress import IPv6Address
from pathlib import Path

import pytest
from cryptography import x509

from fakes.gateway.proxied import OK, Conversation, Origin, Script, answering
from fakes.gateway.served import asking, at, origins, read_answer, sealed, served, site
from fakes.gateway.tls import Authority
from fakes.peers.http2 import Http2Origin, answer_with
from fakes.waiting import until
from headgate.common.table import BackendTls, Endpoint
from headgate.gateway.proxy.config import ProxyConfig


def server_context(
    authority: Authority, folder: Path, name: str = "web.internal", asks: bool = False
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(name, x509.DNSName(name)).write(folder))
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem.decode())
    return context


def verifying(authority: Authority, server_name: str = "web.internal", **more: object) -> BackendTls:
    return BackendTls.model_validate(
        {"verify": True, "ca_pem": authority.pem.decode(), "server_name": server_name, **more}
    )


async def test_upstream_over_tls_is_verified_and_its_connection_kept(tmp_path: Path) -> None:
    authority = Authority()
    async with (
        origins(answering(OK), tls=server_context(authority, tmp_path)) as (origin,),
        served(site(), at(origin.port, protocol="https", tls=verifying(authority))) as proxy,
    ):
        assert await proxy.bodies(3) == ["ok"] * 3
        assert len(origin.conversations) == 1


@pytest.mark.parametrize("fault", ["name", "authority"])
async def test_upstream_that_is_not_who_it_should_be_is_a_502_that_says_so(fault: str, tmp_path: Path) -> None:
    authority = Authority()
    trusted = Authority() if fault == "authority" else authority
    tls = verifying(trusted, "other.internal" if fault == "name" else "web.internal")
    async with (
        origins(answering(OK), tls=server_context(authority, tmp_path)) as (origin,),
        served(site(), at(origin.port, protocol="https", tls=tls)) as proxy,
    ):
        got = await proxy.get()
        assert got.status == 502
        said = "Hostname mismatch" if fault == "name" else "certificate verify failed"
        assert said in got["x-headgate-reason"], got["x-headgate-reason"]
        assert origin.heads == []


async def test_gateway_shows_its_certificate_to_an_upstream_that_asks(tmp_path: Path) -> None:
    authority = Authority()
    own = authority.issue("gateway")
    with_own = {"certificate_pem": own.chain_pem.decode(), "private_key": sealed(own.key_pem)}
    async with (
        origins(answering(OK), tls=server_context(authority, tmp_path, asks=True)) as (origin,),
        served(site(), at(origin.port, protocol="https", tls=verifying(authority, **with_own))) as proxy,
    ):
        assert (await proxy.get()).status == 200
        peer = origin.conversations[0].writer.get_extra_info("peercert")
        assert peer["subject"] == ((("commonName", "gateway"),),)
        proxy.put(at(origin.port, protocol="https", tls=verifying(authority)))
        assert (await proxy.get()).status == 502


async def test_upstream_whose_tls_cannot_be_had_is_unavailable_and_says_which_field() -> None:
    tls = BackendTls(verify=True, ca_pem="rubbish")
    async with served(site(), at(1, protocol="https", tls=tls)) as proxy:
        got = await proxy.get()
        assert got.status == 503
        assert "tls.ca_pem" in got["x-headgate-reason"]


@pytest.mark.parametrize(
    ("host", "sent"), [(None, b"a.example"), ("inner.example:81", b"inner.example:81"), ("", b"127.0.0.1:%d")]
)
async def test_host_that_the_upstream_wants_is_sent(host: str | None, sent: bytes) -> None:
    async with origins(answering(OK)) as (origin,), served(site(), at(origin.port, host=host)) as proxy:
        await proxy.get()
        assert b"\r\nHost: %b\r\n" % (sent % origin.port if b"%" in sent else sent) in origin.heads[0]
        assert b"\r\nX-Forwarded-Host: a.example\r\n" in origin.heads[0]


@pytest.mark.parametrize("protocol", ["http", "https"])
async def test_an_endpoint_with_an_ipv6_address_is_connected_to_and_named_in_brackets(
    protocol: str, tmp_path: Path
) -> None:
    authority, address = Authority(), x509.IPAddress(IPv6Address("::1"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("web", address).write(tmp_path))
    origin = Origin(answering(OK), context if protocol == "https" else None)
    await origin.start("::1")
    tls = BackendTls(verify=True, ca_pem=authority.pem.decode()) if protocol == "https" else None
    upstream = at(Endpoint(address="::1", port=origin.port), protocol=protocol, tls=tls, host="")
    async with served(site(), upstream) as proxy:
        assert await proxy.bodies(2) == ["ok", "ok"]
        assert b"\r\nHost: [::1]:%d\r\n" % origin.port in origin.heads[0]
        assert proxy.log.records[0][12] == f"[::1]:{origin.port}"
        assert len(origin.conversations) == 1
    await origin.stop()


async def test_an_endpoint_with_an_ipv6_address_is_spoken_to_in_http2() -> None:
    origin = Http2Origin(answer_with())
    await origin.start(host="::1")
    async with served(site(), at(Endpoint(address="::1", port=origin.port), protocol="h2c", host="")) as proxy:
        assert (await proxy.get()).body == b"ok"
        assert origin.requests[0].headers[b":authority"] == b"[::1]:%d" % origin.port
    await origin.stop()


def after_header(headers: list[bytes], size: int | None) -> Script:
    """Reads a PROXY header, of a line or of so many bytes, then answers."""

    async def script(conversation: Conversation) -> None:
        reader = conversation.reader
        headers.append(await (reader.readline() if size is None else reader.readexactly(size)))
        await answering(OK)(conversation)

    return script


@pytest.mark.parametrize("version", [1, 2])
async def test_every_connection_begins_with_a_proxy_header_and_serves_one_request(version: int) -> None:
    headers: list[bytes] = []
    script = after_header(headers, None if version == 1 else 28)
    async with origins(script) as (origin,), served(site(), at(origin.port, proxy_protocol=version)) as proxy:
        client = await proxy.connect()
        own = client.writer.get_extra_info("sockname")[1]
        for _ in range(2):
            await client.send(asking())
            assert (await read_answer(client)).status == 200
        if version == 1:
            assert headers == [b"PROXY TCP4 127.0.0.1 127.0.0.1 %d %d\r\n" % (own, proxy.port)] * 2
        else:
            assert headers[0][:16] == b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"
            assert headers[0][24:28] == own.to_bytes(2, "big") + proxy.port.to_bytes(2, "big")
        assert len(origin.conversations) == 2


async def test_proxy_header_goes_before_tls(tmp_path: Path) -> None:
    authority = Authority()
    context = server_context(authority, tmp_path)
    headers: list[bytes] = []

    async def script(conversation: Conversation) -> None:
        # Byte by byte: a buffered reader would take a part of the handshake too.
        header = b""
        while not header.endswith(b"\r\n"):
            header += await conversation.reader.readexactly(1)
        headers.append(header)
        await conversation.writer.start_tls(context)
        await answering(OK)(conversation)

    upstream = at(1, protocol="https", tls=verifying(authority), proxy_protocol=1)
    async with origins(script) as (origin,), served(site(), upstream) as proxy:
        proxy.put(at(origin.port, protocol="https", tls=verifying(authority), proxy_protocol=1))
        assert (await proxy.get()).status == 200
        assert headers[0].startswith(b"PROXY TCP4 127.0.0.1 127.0.0.1 ")


async def test_connection_is_closed_after_as_many_requests_as_it_may_have() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(), at(origin.port, max_requests_per_connection=2)) as proxy,
    ):
        await proxy.bodies(5)
        assert [len(each.heads) for each in origin.conversations] == [2, 2, 1]


async def test_no_more_connections_rest_than_the_upstream_allows() -> None:
    async with origins(answering(OK)) as (origin,), served(site(), at(origin.port, max_idle=1)) as proxy:
        await asyncio.gather(*[proxy.get() for _ in range(4)])
        pool = proxy.slot(origin.port).pool
        assert pool is not None
        assert pool.idle_count == 1


async def test_connection_that_rested_for_too_long_is_closed() -> None:
    config = ProxyConfig(lingering_s=0.1)
    async with (
        origins(answering(OK)) as (origin,),
        served(site(), at(origin.port, idle_timeout_s=1.0), config=config) as proxy,
    ):
        await proxy.get()
        pool = proxy.slot(origin.port).pool
        assert pool is not None
        assert pool.idle_count == 1
        await until(lambda: pool.idle_count == 0)
