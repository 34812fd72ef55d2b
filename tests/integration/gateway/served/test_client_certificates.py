"""Client certificates from the handshake to the upstream's headers, by host."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import HOST, Served, asking, at, origins, read_answer, served, site
from fakes.gateway.tls import Authority
from fakes.gateway.tls_listener import asking as asking_clients
from fakes.gateway.tls_listener import client_context
from fakes.peers.http2 import http2_client, request


def with_certificate(authority: Authority, folder: Path) -> ssl.SSLContext:
    return client_context(authority.issue("alice", organization="Example").write(folder))


def present(proxy: Served) -> None:
    proxy.present(HOST, Authority("server").issue(HOST, x509.DNSName(HOST)))


async def test_identity_is_told_to_the_upstream_and_forged_ones_are_dropped(tmp_path: Path) -> None:
    authority = Authority()
    async with (
        origins(answering(OK)) as (origin,),
        served(site(tls=asking_clients(authority.pem)), at(origin.port)) as proxy,
    ):
        present(proxy)
        forged = {"ssl_client_verify": "SUCCESS", "Ssl_Client_Subject_Dn": "CN=root"}
        assert (await proxy.secure(with_certificate(authority, tmp_path), **forged)).status == 200
        head = origin.heads[0]
        assert b"\r\nssl-client-verify: SUCCESS\r\n" in head
        assert b"\r\nssl-client-subject-dn: CN=alice,O=Example\r\n" in head
        assert head.lower().count(b"ssl-client-") == 3
        assert b"root" not in head


async def test_client_without_a_certificate_gets_no_connection(tmp_path: Path) -> None:
    authority = Authority()
    async with (
        origins(answering(OK)) as (origin,),
        served(site(tls=asking_clients(authority.pem)), at(origin.port)) as proxy,
    ):
        present(proxy)
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            await proxy.secure()
        assert origin.heads == []


async def test_optional_certificate_may_be_left_out_and_that_is_told() -> None:
    policy = asking_clients(Authority().pem, mode="optional")
    async with origins(answering(OK)) as (origin,), served(site(tls=policy), at(origin.port)) as proxy:
        present(proxy)
        assert (await proxy.secure(ssl_client_verify="SUCCESS")).status == 200
        assert b"\r\nssl-client-verify: NONE\r\n" in origin.heads[0]
        assert b"SUCCESS" not in origin.heads[0]


async def test_client_without_a_certificate_is_sent_to_the_error_page() -> None:
    policy = asking_clients(Authority().pem, error_page="https://login.example/")
    async with origins(answering(OK)) as (origin,), served(site(tls=policy), at(origin.port)) as proxy:
        present(proxy)
        got = await proxy.secure()
        assert (got.status, got["location"]) == (302, "https://login.example/")
        assert origin.heads == []


async def test_connection_of_another_host_is_misdirected(tmp_path: Path) -> None:
    authority = Authority()
    async with (
        origins(answering(OK)) as (origin,),
        served(site(tls=asking_clients(authority.pem)), site(host="open.example"), at(origin.port)) as proxy,
    ):
        present(proxy)
        got = await proxy.secure(server_name="open.example", host=HOST)
        assert got.status == 421
        assert (await proxy.secure(server_name="open.example", host="open.example")).status == 200


async def test_plain_http_to_a_host_that_requires_a_certificate_is_refused() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(tls=asking_clients(Authority().pem)), at(origin.port)) as proxy,
    ):
        got = await proxy.get(ssl_client_verify="SUCCESS")
        assert (got.status, got["x-headgate-reason"]) == (400, "no client certificate was sent")
        assert origin.heads == []


async def test_identity_is_told_over_http2_too(tmp_path: Path) -> None:
    authority = Authority()
    context = with_certificate(authority, tmp_path)
    context.set_alpn_protocols(["h2"])
    async with (
        origins(answering(OK)) as (origin,),
        served(site(tls=asking_clients(authority.pem)), at(origin.port)) as proxy,
    ):
        present(proxy)
        async with http2_client(proxy.https_port, tls=context) as client:
            forged = (b"ssl-client-subject-dn", b"CN=root")
            answer = await client.fetch(request(b"GET", b"/", forged, authority=HOST.encode()))
            assert answer.status == 200
        assert b"\r\nssl-client-subject-dn: CN=alice,O=Example\r\n" in origin.heads[0]
        assert b"root" not in origin.heads[0]


async def test_policy_that_cannot_be_had_is_a_500_of_its_host_alone() -> None:
    broken = asking_clients(b"rubbish")
    async with (
        origins(answering(OK)) as (origin,),
        served(site(tls=broken), site(host="open.example"), at(origin.port)) as proxy,
    ):
        got = await proxy.get()
        assert got.status == 500
        assert "tls.client_auth.ca_pem" in got["x-headgate-reason"]
        client = await proxy.connect()
        await client.send(asking(host="open.example"))
        assert (await read_answer(client)).status == 200
