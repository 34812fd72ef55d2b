"""How names are kept fresh: TTL, bounds, failures, order."""

import asyncio

from fakes.virtual_time import in_virtual_time
from headgate.gateway.health.resolve import MAX_ADDRESSES, Answer, Family, ResolutionFailed, Resolver, in_order
from headgate.gateway.health.stats import HealthStats

NAME = "backend.example.com"
NONE = Answer((), 60)


class FakeDns:
    """A name server in a dictionary; None is a failure."""

    def __init__(self, a: Answer | None = None, aaaa: Answer | None = NONE) -> None:
        self.answers: dict[Family, Answer | None] = {"A": a, "AAAA": aaaa}
        self.asked: list[float] = []

    async def __call__(self, name: str, family: Family) -> Answer:
        if family == "A":
            self.asked.append(round(asyncio.get_running_loop().time()))
        answer = self.answers[family]
        if answer is None:
            raise ResolutionFailed(f"{name}: SERVFAIL")
        return answer


def resolver_of(dns: FakeDns, changes: list[str] | None = None) -> Resolver:
    heard = changes if changes is not None else []
    return Resolver(dns, HealthStats(), heard.append, is_routable=lambda address: True)


@in_virtual_time
async def test_an_answer_is_told_and_asked_for_again_after_its_ttl() -> None:
    dns, changes = FakeDns(Answer(("10.0.0.1",), 100)), list[str]()
    resolver = resolver_of(dns, changes)
    resolver.follow(NAME)
    assert resolver.addresses(NAME) == ()
    await asyncio.sleep(1)
    assert resolver.addresses(NAME) == ("10.0.0.1",)
    dns.answers["A"] = Answer(("10.0.0.2", "10.0.0.1"), 100)
    await asyncio.sleep(100)
    assert resolver.addresses(NAME) == ("10.0.0.1", "10.0.0.2")
    assert changes == [NAME, NAME]
    assert len(dns.asked) == 2
    await resolver.close()


@in_virtual_time
async def test_an_answer_in_another_order_is_no_change() -> None:
    dns, changes = FakeDns(Answer(("10.0.0.1", "10.0.0.2"), 5)), list[str]()
    resolver = resolver_of(dns, changes)
    resolver.follow(NAME)
    await asyncio.sleep(1)
    dns.answers["A"] = Answer(("10.0.0.2", "10.0.0.1"), 5)
    await asyncio.sleep(10)
    assert len(dns.asked) >= 3
    assert changes == [NAME]
    await resolver.close()


@in_virtual_time
async def test_the_last_good_answer_is_kept_while_resolving_fails_ever_more_seldom() -> None:
    dns, changes = FakeDns(Answer(("10.0.0.1",), 10)), list[str]()
    resolver = resolver_of(dns, changes)
    resolver.follow(NAME)
    await asyncio.sleep(1)
    dns.answers["A"] = dns.answers["AAAA"] = None
    await asyncio.sleep(300)
    assert resolver.addresses(NAME) == ("10.0.0.1",)
    assert 10 < len(dns.asked) < 22
    dns.answers["A"] = Answer(("10.0.0.9",), 10)
    await asyncio.sleep(31)
    assert resolver.addresses(NAME) == ("10.0.0.9",)
    await resolver.close()


@in_virtual_time
async def test_names_that_are_answered_late_or_never_keep_no_others_waiting() -> None:
    async def query(name: str, family: Family) -> Answer:
        if name.startswith("slow"):
            await asyncio.sleep(4)
        if name.startswith("slow-1"):
            raise ResolutionFailed("timed out")
        return Answer((f"10.0.0.{round(asyncio.get_running_loop().time()) % 256}",), 0)

    resolver, changes = Resolver(query, HealthStats(), is_routable=lambda address: True), list[str]()
    for number in range(1000):
        resolver.follow(f"slow-{number}")
    await asyncio.sleep(80)
    resolver.on_change = changes.append
    resolver.follow(NAME)
    await asyncio.sleep(60)
    assert changes.count(NAME) > 50
    await resolver.close()


@in_virtual_time
async def test_a_name_has_no_more_addresses_than_are_looked_at() -> None:
    many = tuple(f"10.0.{number // 256}.{number % 256}" for number in range(4000))
    resolver = resolver_of(FakeDns(Answer(many, 100)))
    resolver.follow(NAME)
    await asyncio.sleep(1)
    assert len(resolver.addresses(NAME)) == MAX_ADDRESSES
    await resolver.close()


@in_virtual_time
async def test_an_empty_answer_does_not_take_the_last_address_away() -> None:
    dns = FakeDns(Answer(("10.0.0.1",), 2))
    resolver = resolver_of(dns)
    resolver.follow(NAME)
    await asyncio.sleep(1)
    dns.answers["A"] = Answer((), 2)
    await asyncio.sleep(20)
    assert resolver.addresses(NAME) == ("10.0.0.1",)
    await resolver.close()


@in_virtual_time
async def test_a_family_that_fails_keeps_its_last_addresses_beside_the_other() -> None:
    dns = FakeDns(Answer(("10.0.0.1",), 2), Answer(("fd00::1",), 2))
    resolver = resolver_of(dns)
    resolver.follow(NAME)
    await asyncio.sleep(1)
    dns.answers = {"A": Answer(("10.0.0.2",), 2), "AAAA": None}
    await asyncio.sleep(5)
    assert resolver.addresses(NAME) == ("fd00::1", "10.0.0.2")
    dns.answers["AAAA"] = Answer((), 2)
    await asyncio.sleep(5)
    assert resolver.addresses(NAME) == ("10.0.0.2",)
    await resolver.close()


@in_virtual_time
async def test_an_answer_is_not_kept_for_longer_than_the_shortest_bound() -> None:
    dns = FakeDns(Answer(("10.0.0.1",), 3600))
    resolver = resolver_of(dns)
    resolver.follow(NAME)
    await asyncio.sleep(100)
    resolver.follow(NAME, 20)
    await asyncio.sleep(1)
    assert dns.asked == [0, 100]
    await asyncio.sleep(100)
    assert 6 <= len(dns.asked) <= 8
    resolver.unfollow(NAME, 20)
    await asyncio.sleep(30)
    count = len(dns.asked)
    await asyncio.sleep(500)
    assert len(dns.asked) == count
    await resolver.close()


@in_virtual_time
async def test_a_ttl_of_nothing_does_not_make_a_flood() -> None:
    dns = FakeDns(Answer(("10.0.0.1",), 0))
    resolver = resolver_of(dns)
    resolver.follow(NAME)
    await asyncio.sleep(10)
    assert 9 <= len(dns.asked) <= 13
    await resolver.close()


@in_virtual_time
async def test_the_last_who_follows_a_name_ends_its_task() -> None:
    dns = FakeDns(Answer(("10.0.0.1",), 5))
    resolver = resolver_of(dns)
    resolver.follow(NAME)
    resolver.follow(NAME)
    resolver.unfollow(NAME)
    await asyncio.sleep(1)
    assert resolver.addresses(NAME) == ("10.0.0.1",)
    resolver.unfollow(NAME)
    await asyncio.sleep(20)
    assert len(dns.asked) == 1
    assert len(resolver) == 0
    assert len(asyncio.all_tasks()) == 1


@in_virtual_time
async def test_a_listener_that_breaks_does_not_end_the_resolving() -> None:
    dns = FakeDns(Answer(("10.0.0.1",), 5))
    resolver = resolver_of(dns)

    def break_down(name: str) -> None:
        raise RuntimeError(name)

    resolver.on_change = break_down
    resolver.follow(NAME)
    await asyncio.sleep(20)
    assert len(dns.asked) > 2
    await resolver.close()


def test_families_take_turns_beginning_with_ipv6() -> None:
    addresses = ["10.0.0.2", "10.0.0.1", "fd00::2", "10.0.0.3", "fd00::1"]
    assert in_order(addresses, lambda address: True) == ("fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2", "10.0.0.3")


def test_addresses_without_a_route_are_left_out_while_others_have_one() -> None:
    assert in_order(["fd00::1", "10.0.0.1"], lambda address: ":" not in address) == ("10.0.0.1",)
    assert in_order(["fd00::1"], lambda address: False) == ("fd00::1",)
