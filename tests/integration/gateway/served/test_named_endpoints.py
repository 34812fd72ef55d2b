"""Endpoints that are DNS names: resolved by a real name server, expanded into the table that is served."""

import ssl

import pytest
from cryptography import x509

from fakes.gateway.proxied import OK, Conversation, Origin, answering
from fakes.gateway.served import Served, at, named, origins, served, site, to
from fakes.gateway.tls import Authority
from fakes.peers.name_server import NameServer
from fakes.waiting import until
from headgate.common.table import ActiveCheck, BackendProtocol, BackendTls, Endpoint
from headgate.gateway.health.resolve import SystemDns

NAME = "web.example"


def records(*addresses: str, ttl: int = 1) -> dict[tuple[str, str], tuple[int, list[str]]]:
    return {(f"{NAME}.", "A"): (ttl, list(addresses))}


def known(proxy: Served) -> list[str]:
    """Addresses that requests may go to."""
    holder = proxy.compiler.find_endpoints("up")
    return sorted(slot.key[0] for slot in holder.balancer.slots) if holder else []


async def both_addresses(conversation: Conversation) -> None:
    """Answers with the address that was connected to."""
    while True:
        await conversation.request()
        address = conversation.writer.get_extra_info("sockname")[0]
        await conversation.send(named(address.encode()))


@pytest.fixture
async def anywhere():
    """An origin on all addresses of loopback; gives its port."""
    origin = Origin(both_addresses)
    await origin.start("0.0.0.0")
    yield origin.port
    await origin.stop()


async def test_name_becomes_all_its_addresses(anywhere: int) -> None:
    async with NameServer(records("127.0.0.2", "127.0.0.3")) as names:
        upstream = at(Endpoint(address=NAME, port=anywhere))
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            await until(lambda: bool(known(proxy)))
            assert sorted(await proxy.bodies(4)) == ["127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"]


async def test_other_addresses_are_taken_without_a_new_table(anywhere: int) -> None:
    async with NameServer(records("127.0.0.2")) as names:
        upstream = at(Endpoint(address=NAME, port=anywhere))
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            await until(lambda: known(proxy) == ["127.0.0.2"])
            version = proxy.holder.router.version_label
            names.records = records("127.0.0.4")
            await until(lambda: known(proxy) == ["127.0.0.4"])
            assert await proxy.bodies(2) == ["127.0.0.4"] * 2
            assert proxy.holder.router.version_label == version


async def test_last_good_addresses_are_kept_while_the_name_server_is_away(anywhere: int) -> None:
    async with NameServer(records("127.0.0.2")) as names:
        upstream = at(Endpoint(address=NAME, port=anywhere))
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            await until(lambda: bool(known(proxy)))
            names.fails = True
            await until(lambda: proxy.health.stats.resolutions["failure"] > 0)
            assert await proxy.bodies(2) == ["127.0.0.2"] * 2


async def test_resolve_s_bounds_how_long_an_answer_is_kept(anywhere: int) -> None:
    async with NameServer(records("127.0.0.2", ttl=3600)) as names:
        upstream = at(Endpoint(address=NAME, port=anywhere), resolve_s=1)
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            await until(lambda: bool(known(proxy)))
            names.records = records("127.0.0.3", ttl=3600)
            await until(lambda: known(proxy) == ["127.0.0.3"])


async def test_name_that_nobody_knows_is_a_503_that_names_it() -> None:
    async with NameServer({}) as names:
        upstream = at(Endpoint(address="ghost.example", port=80))
        names.is_silent = True
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            early = await proxy.get()
            names.is_silent = False
            assert (early.status, early["x-headgate-reason"]) == (503, "ghost.example is not resolved yet")
            await until(lambda: proxy.health.stats.resolutions["failure"] > 0)
            got = await proxy.get()
    assert got.status == 503
    assert got["x-headgate-reason"].startswith("ghost.example cannot be resolved: ")
    assert "does not exist" in got["x-headgate-reason"]


async def test_addresses_beside_a_name_that_is_unknown_are_served(anywhere: int) -> None:
    async with NameServer({}) as names:
        upstream = at(Endpoint(address="127.0.0.5", port=anywhere), Endpoint(address="ghost.example", port=80))
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            assert await proxy.bodies(2) == ["127.0.0.5"] * 2


async def test_new_revision_keeps_known_addresses_and_a_removed_name_is_not_asked_for(anywhere: int) -> None:
    async with NameServer(records("127.0.0.2")) as names:
        upstream = at(Endpoint(address=NAME, port=anywhere))
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            await until(lambda: bool(known(proxy)))
            proxy.put(upstream.model_copy(update={"max_idle": 3}))
            assert (await proxy.get()).body == b"127.0.0.2"
            assert proxy.resolver is not None
            assert len(proxy.resolver) == 1
            proxy.remove("upstreams", "up")
            assert len(proxy.resolver) == 0
            assert (await proxy.get())["x-headgate-reason"] == "up is not in the table"


@pytest.mark.parametrize(("host", "sent"), [(None, b"a.example"), ("", b"web.example:%d"), ("other", b"other")])
async def test_host_is_that_of_the_name_where_the_endpoints_own_is_wanted(host: str | None, sent: bytes) -> None:
    async with NameServer(records("127.0.0.1")) as names, origins(answering(OK)) as (origin,):
        upstream = at(Endpoint(address=NAME, port=origin.port), host=host)
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            await until(lambda: bool(known(proxy)))
            assert (await proxy.get()).status == 200
        expected = sent % origin.port if b"%" in sent else sent
        assert b"\r\nHost: %b\r\n" % expected in origin.heads[0]


async def test_certificate_is_verified_for_the_name(tmp_path) -> None:
    authority = Authority()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*authority.issue("web", x509.DNSName(NAME)).write(tmp_path))
    tls = BackendTls(verify=True, ca_pem=authority.pem.decode())
    async with NameServer(records("127.0.0.1")) as names, origins(answering(OK), tls=server) as (origin,):
        upstream = at(Endpoint(address=NAME, port=origin.port), protocol=BackendProtocol.HTTPS, tls=tls)
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            await until(lambda: bool(known(proxy)))
            assert (await proxy.get()).status == 200


async def test_checks_follow_the_addresses_and_ask_for_the_name(anywhere: int) -> None:
    async with NameServer(records("127.0.0.1")) as names, origins(answering(OK)) as (origin,):
        check = ActiveCheck(interval_s=0.05, unhealthy_after=1)
        upstream = at(Endpoint(address=NAME, port=origin.port), active_check=check)
        async with served(site(), upstream, query=SystemDns(names.resolver())) as proxy:
            await until(lambda: bool(origin.heads))
            assert b"\r\nHost: web.example" in origin.heads[0]
            names.records = records("127.0.0.1", "127.0.0.9")
            # Nobody listens there, so that the check takes the second address out.
            await until(lambda: proxy.health.stats.unavailable.get("up") == 1)
            assert await proxy.bodies(3) == ["ok"] * 3


async def test_localhost_needs_no_name_server(anywhere: int) -> None:
    async with NameServer({}) as names:
        upstream = at(Endpoint(address="localhost", port=anywhere))
        query = SystemDns(names.resolver())
        async with served(site(to("up", retries={"on": ("connect",)})), upstream, query=query) as proxy:
            await until(lambda: bool(known(proxy)))
            assert (await proxy.get()).body == b"127.0.0.1"
            assert names.asked == []
