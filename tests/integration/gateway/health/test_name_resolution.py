"""Names resolved by a real name server on loopback."""

import pytest

from fakes.peers.name_server import NameServer
from fakes.waiting import until
from headgate.gateway.health.resolve import Answer, ResolutionFailed, Resolver, SystemDns
from headgate.gateway.health.stats import HealthStats


async def test_an_answer_holds_for_the_shortest_ttl_of_its_chain() -> None:
    records = {
        ("web.example.com.", "CNAME"): (7, ["real.example.net."]),
        ("real.example.net.", "A"): (300, ["10.0.0.1", "10.0.0.2"]),
    }
    async with NameServer(records) as server:
        answer = await SystemDns(server.resolver())("web.example.com", "A")
    assert sorted(answer.addresses) == ["10.0.0.1", "10.0.0.2"]
    assert answer.ttl_s == 7


async def test_a_name_without_addresses_of_a_family_has_an_empty_answer() -> None:
    async with NameServer({("web.example.com.", "A"): (60, ["10.0.0.1"])}) as server:
        ask = SystemDns(server.resolver())
        assert (await ask("web.example.com", "AAAA")).addresses == ()
        assert await ask("web.example.com", "A") == Answer(("10.0.0.1",), 60)


async def test_a_name_with_a_dot_is_absolute_and_a_single_label_is_searched_for() -> None:
    async with NameServer({("redis.ns.svc.local.", "A"): (60, ["10.0.0.1"])}) as server:
        ask = SystemDns(server.resolver("ns.svc.local"))
        assert (await ask("redis", "A")).addresses == ("10.0.0.1",)
        server.asked.clear()
        with pytest.raises(ResolutionFailed, match="does not exist"):
            await ask("redis.ns", "A")
        assert server.asked == [("redis.ns.", "A")]


@pytest.mark.parametrize("name", ["a..b", "x" * 64 + ".example.com"])
async def test_a_name_that_is_none_is_a_failure(name: str) -> None:
    async with NameServer({}) as server:
        with pytest.raises(ResolutionFailed):
            await SystemDns(server.resolver())(name, "A")


async def test_changed_records_are_noticed_and_lost_ones_are_kept() -> None:
    changes = list[str]()
    async with NameServer({("web.example.com.", "A"): (1, ["127.0.0.1"])}) as server:
        resolver = Resolver(SystemDns(server.resolver()), HealthStats(), changes.append)
        resolver.follow("web.example.com")
        await until(lambda: resolver.addresses("web.example.com") == ("127.0.0.1",))
        server.records["web.example.com.", "A"] = (1, ["127.0.0.3", "127.0.0.2"])
        await until(lambda: resolver.addresses("web.example.com") == ("127.0.0.2", "127.0.0.3"))
        server.fails = True
        server.asked.clear()
        await until(lambda: bool(server.asked))
        server.fails = False
        server.records.clear()
        server.asked.clear()
        await until(lambda: bool(server.asked))
        assert resolver.addresses("web.example.com") == ("127.0.0.2", "127.0.0.3")
        assert changes == ["web.example.com"] * 2
        await resolver.close()
