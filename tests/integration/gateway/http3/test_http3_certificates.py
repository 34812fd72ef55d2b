"""Which certificate is presented over QUIC, and which hosts are not reached by it."""

import pytest
from cryptography import x509

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import HOST, Served, at, origins, served, site
from fakes.gateway.tls import Authority
from fakes.gateway.tls_listener import asking as asking_clients
from fakes.peers.http3 import Http3Client, http3_client
from headgate.common.secret import Secret
from headgate.common.table import TlsPolicy
from headgate.gateway.tls import CertificateEntry

CLIENTS = asking_clients(Authority().pem)
UNFIT = {
    "client certificates": CLIENTS,
    "optional client certificates": asking_clients(Authority().pem, mode="optional"),
    "TLS 1.2 at most": TlsPolicy(max_version="1.2"),
    "groups": TlsPolicy(curves=("X25519",)),
    "HTTP/1.1 alone": TlsPolicy(alpn=("http/1.1",)),
}


def present(proxy: Served, authority: Authority, *names: str) -> None:
    """Have a certificate of its own for each name, and none for others."""
    entries = []
    for name in names:
        issued = authority.issue(name, x509.DNSName(name))
        chain, key = issued.chain_pem.decode(), Secret(issued.key_pem)
        entries.append(CertificateEntry((name,), chain, key, f"{name} of {id(issued)}", name, ""))
    proxy.certificates.set_certificates(entries)


def shown(client: Http3Client) -> str:
    """The name in the certificate that the gateway has shown."""
    certificate = client.quic.tls._peer_certificate  # noqa: SLF001 - aioquic shows it nowhere else
    assert certificate is not None
    return str(certificate.subject.rfc4514_string())


async def test_the_certificate_is_that_of_the_server_name_and_changes_while_connections_are_open() -> None:
    authority = Authority()
    async with (
        origins(answering(*[OK] * 9)) as (origin,),
        served(at(origin.port), site(), site(host="b.example"), http3=True) as proxy,
    ):
        present(proxy, authority, HOST, "b.example")
        async with http3_client(proxy.https_port) as old, http3_client(proxy.https_port, "b.example") as other:
            assert (shown(old), shown(other)) == ("CN=a.example", "CN=b.example")
            async with http3_client(proxy.https_port, "c.example") as nobody:
                assert shown(nobody) == "CN=headgate.invalid"
            present(proxy, authority, "c.example")
            assert (await old.ask()).status == 200
            async with http3_client(proxy.https_port, "c.example") as third:
                assert shown(third) == "CN=c.example"


async def test_a_client_that_verifies_is_satisfied() -> None:
    authority = Authority()
    async with origins(answering(OK)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        present(proxy, authority, HOST)
        async with http3_client(proxy.https_port, verify_mode=2, cadata=authority.pem) as client:
            assert (await client.ask()).status == 200


@pytest.mark.parametrize("policy", UNFIT.values(), ids=UNFIT.keys())
async def test_a_host_whose_policy_quic_cannot_follow_is_refused_in_the_handshake(policy: TlsPolicy) -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(tls=policy), http3=True) as proxy,
        http3_client(proxy.https_port, waits=False) as client,
    ):
        assert (await client.until_closed()).error_code == 0x100 + 49
        assert origin.heads == []
        assert proxy.certificates.counts.failed == {"ACCESS_DENIED": 1}


@pytest.mark.parametrize("policy", UNFIT.values(), ids=UNFIT.keys())
async def test_such_a_host_is_misdirected_on_a_connection_for_another(policy: TlsPolicy) -> None:
    async with (
        origins(answering(OK, OK)) as (origin,),
        served(at(origin.port), site(), site(host="b.example", tls=policy), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        assert (await client.ask(host="b.example")).status == 421
        assert (await client.ask(host="B.example:443")).status == 421
        assert origin.heads == []
        assert (await client.ask()).status == 200


async def test_a_host_that_begins_to_ask_for_certificates_is_out_of_reach_on_open_connections() -> None:
    async with (
        origins(answering(OK, OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        assert (await client.ask()).status == 200
        proxy.put(site(tls=CLIENTS))
        assert (await client.ask()).status == 421
        assert len(origin.heads) == 1


async def test_such_hosts_are_not_offered_http3() -> None:
    async with (
        origins(answering(OK, OK)) as (origin,),
        served(at(origin.port), site(tls=UNFIT["TLS 1.2 at most"]), site(host="b.example"), http3=True) as proxy,
    ):
        assert not (await proxy.secure())["alt-svc"]
        assert (await proxy.secure(server_name="b.example", host="b.example"))["alt-svc"]


async def test_a_name_without_a_certificate_is_refused_where_names_are_strict() -> None:
    async with (
        served(site(tls=TlsPolicy(strict_names=True)), http3=True) as proxy,
        http3_client(proxy.https_port, waits=False) as client,
    ):
        assert (await client.until_closed()).error_code == 0x100 + 112


async def test_other_protocols_than_h3_are_refused() -> None:
    async with (
        served(site(), http3=True) as proxy,
        http3_client(proxy.https_port, waits=False, alpn_protocols=["hq-interop"]) as client,
    ):
        assert (await client.until_closed()).error_code in (0x100 + 40, 0x100 + 120)
