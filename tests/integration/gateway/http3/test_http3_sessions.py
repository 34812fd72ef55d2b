"""Clients that come back: whose sessions are resumed, and whose are not."""

from dataclasses import replace

import pytest
from aioquic.tls import SessionTicket
from cryptography import x509

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import HOST, Served, at, origins, served, site
from fakes.gateway.tls import Authority
from fakes.peers.http3 import http3_client
from headgate.common.secret import Secret
from headgate.common.table import TlsPolicy
from headgate.gateway.tls import CertificateEntry

OTHER = "b.example"


def present(proxy: Served, authority: Authority) -> None:
    """Have a new certificate for both names."""
    issued = authority.issue(HOST, x509.DNSName(HOST), x509.DNSName(OTHER))
    chain, key = issued.chain_pem.decode(), Secret(issued.key_pem)
    proxy.certificates.set_certificates([CertificateEntry((HOST, OTHER), chain, key, str(id(issued)), "both", "")])


async def ticket_of(proxy: Served, server_name: str = HOST) -> SessionTicket:
    tickets: list[SessionTicket] = []
    async with http3_client(proxy.https_port, server_name, keeps=tickets.append) as client:
        assert (await client.ask(host=server_name)).status == 200
    (ticket,) = tickets
    return ticket


async def is_resumed(proxy: Served, ticket: SessionTicket, server_name: str = HOST) -> bool:
    """Come back with a ticket, whatever name it is for, and be served."""
    mine = replace(ticket, server_name=server_name)
    async with http3_client(proxy.https_port, server_name, session_ticket=mine) as client:
        assert client.handshake is not None
        assert not client.handshake.early_data_accepted
        assert (await client.ask(host=server_name)).status == 200
        return bool(client.handshake.session_resumed)


async def test_a_session_is_resumed_any_number_of_times_and_counted() -> None:
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        ticket = await ticket_of(proxy)
        assert ticket.max_early_data_size is None
        assert [await is_resumed(proxy, ticket) for _ in range(3)] == [True] * 3
        assert proxy.certificates.counts.resumed == 3


async def test_a_resumed_session_gives_a_ticket_for_the_next() -> None:
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        further: list[SessionTicket] = []
        first = await ticket_of(proxy)
        async with http3_client(proxy.https_port, session_ticket=first, keeps=further.append) as client:
            assert (await client.ask()).status == 200
        assert further[0].ticket != first.ticket
        assert await is_resumed(proxy, further[0])


async def test_early_data_is_refused_whatever_ticket_it_comes_with() -> None:
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        ticket = replace(await ticket_of(proxy), max_early_data_size=0xFFFFFFFF)
        async with http3_client(proxy.https_port, session_ticket=ticket, waits=False) as client:
            assert (await client.ask()).status == 200
            assert client.handshake is not None
            assert client.handshake.session_resumed
            assert not client.handshake.early_data_accepted
        assert len(origin.heads) == 2


async def test_a_ticket_is_for_one_name_though_another_has_the_same_certificate() -> None:
    authority = Authority()
    async with (
        origins(answering(*[OK] * 9)) as (origin,),
        served(at(origin.port), site(), site(host=OTHER), http3=True) as proxy,
    ):
        present(proxy, authority)
        ticket = await ticket_of(proxy)
        assert not await is_resumed(proxy, ticket, OTHER)
        assert await is_resumed(proxy, ticket)


async def test_a_ticket_ends_with_the_certificate_and_with_the_policy() -> None:
    authority = Authority()
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        present(proxy, authority)
        ticket = await ticket_of(proxy)
        proxy.put(site(tls=TlsPolicy(min_version="1.3")))
        assert not await is_resumed(proxy, ticket)
        proxy.put(site())
        assert await is_resumed(proxy, ticket)
        present(proxy, authority)
        assert not await is_resumed(proxy, ticket)


@pytest.mark.parametrize("forged", [b"", b"x" * 12, b"x" * 200])
async def test_what_is_no_ticket_of_ours_leads_to_a_whole_handshake(forged: bytes) -> None:
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        assert not await is_resumed(proxy, replace(await ticket_of(proxy), ticket=forged or b"\0"))


async def test_a_client_that_has_the_ticket_alone_does_not_get_in() -> None:
    async with origins(answering(*[OK] * 9)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        stolen = replace(await ticket_of(proxy), resumption_secret=bytes(48))
        async with http3_client(proxy.https_port, session_ticket=stolen, waits=False) as client:
            assert (await client.until_closed()).error_code == 0x100 + 40


async def test_a_policy_without_tickets_gives_none() -> None:
    tickets: list[SessionTicket] = []
    async with (
        origins(answering(*[OK] * 9)) as (origin,),
        served(at(origin.port), site(tls=TlsPolicy(session_tickets=False)), http3=True) as proxy,
    ):
        async with http3_client(proxy.https_port, keeps=tickets.append) as client:
            assert (await client.ask()).status == 200
        assert tickets == []
