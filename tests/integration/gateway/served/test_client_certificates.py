"""Client certificates from the handshake to the upstream's headers, by host."""

import ssl
from datetime import UTC, datetime, timedelta
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


async def told(proxy: Served, client: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Return status and reason of an answer over TLS."""
    got = await proxy.secure(client)
    return got.status, got["x-headgate-reason"]


async def test_bad_and_missing_certificates_are_answered_where_refusals_are_answers(tmp_path: Path) -> None:
    authority, other = Authority(), Authority("Another CA")
    policy = asking_clients(authority.pem, refusals="answer")
    (tmp_path / "bad").mkdir()
    async with origins(answering(OK)) as (origin,), served(site(tls=policy), at(origin.port)) as proxy:
        present(proxy)
        assert await told(proxy) == (400, "no client certificate was sent")
        bad = with_certificate(other, tmp_path / "bad")
        assert await told(proxy, bad) == (400, "client certificate: FAILED:unable to verify the first certificate")
        assert origin.heads == []
        good = with_certificate(authority, tmp_path)
        for _ in range(2):
            assert (await told(proxy, good))[0] == 200
        assert b"\r\nssl-client-verify: SUCCESS\r\n" in origin.heads[-1]


async def test_bad_certificate_is_sent_to_the_error_page_where_refusals_are_answers(tmp_path: Path) -> None:
    policy = asking_clients(Authority().pem, refusals="answer", error_page="https://login.example/")
    async with origins(answering(OK)) as (origin,), served(site(tls=policy), at(origin.port)) as proxy:
        present(proxy)
        got = await proxy.secure(with_certificate(Authority("Another CA"), tmp_path))
        assert (got.status, got["location"]) == (302, "https://login.example/")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_certificate_that_nobody_vouches_for_is_told_and_never_taken_for_a_good_one(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    policy = asking_clients(Authority().pem, mode="optional-unverified", pass_certificate=True)
    async with origins(answering(OK)) as (origin,), served(site(tls=policy), at(origin.port)) as proxy:
        present(proxy)
        unknown = with_certificate(Authority("Another CA"), tmp_path)
        unknown.maximum_version = version
        for _ in range(2):  # a session that is resumed would not be verified
            assert (await told(proxy, unknown))[0] == 200
            head = origin.heads[-1]
            assert b"\r\nssl-client-verify: FAILED:unable to verify the first certificate\r\n" in head
            assert b"\r\nssl-client-subject-dn: CN=alice,O=Example\r\n" in head
            assert b"\r\nssl-client-cert: -----BEGIN%20CERTIFICATE-----%0A" in head
        assert (await told(proxy))[0] == 200
        assert b"\r\nssl-client-verify: NONE\r\n" in origin.heads[-1]


async def test_certificate_with_another_fault_is_refused_though_unverified_ones_are_taken(tmp_path: Path) -> None:
    authority = Authority()
    ended = authority.issue("alice", ends=datetime.now(UTC) - timedelta(minutes=1)).write(tmp_path)
    (tmp_path / "revoked").mkdir()
    revoked = authority.issue("bob")
    policy = asking_clients(
        authority.pem, mode="optional-unverified", crl_pem=authority.revocation_list(revoked).decode()
    )
    async with origins(answering(OK)) as (origin,), served(site(tls=policy), at(origin.port)) as proxy:
        present(proxy)
        assert await told(proxy, client_context(ended)) == (400, "client certificate: FAILED:certificate has expired")
        context = client_context(revoked.write(tmp_path / "revoked"))
        assert await told(proxy, context) == (400, "client certificate: FAILED:certificate revoked")
        assert origin.heads == []


async def test_chain_that_is_too_long_is_answered_where_refusals_are_answers(tmp_path: Path) -> None:
    root = Authority()
    below = Authority("second", Authority("first", root))
    policy = asking_clients(root.pem, refusals="answer")
    async with origins(answering(OK)) as (origin,), served(site(tls=policy), at(origin.port)) as proxy:
        present(proxy)
        status, reason = await told(proxy, with_certificate(below, tmp_path))
        assert (status, reason) == (400, "client certificate: FAILED:certificate chain too long")
