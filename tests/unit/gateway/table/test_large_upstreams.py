"""Upstreams of thousands of endpoints: compiled in many steps, and by what changed."""

import itertools
from collections.abc import Sequence
from random import Random
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fakes.gateway.balanced import Clock
from fakes.gateway.requests import PLAIN
from fakes.gateway.table import ORIGIN, FakePools, load, new_compiler, publish
from headgate.common.errors import DecodeError
from headgate.common.sealing import Unsealer
from headgate.common.table import ActiveCheck, Balancing, BalancingPolicy, Ejection, Endpoint, HashKey, Upstream
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.balancing.levels import Place
from headgate.gateway.balancing.sessions import endpoint_token
from headgate.gateway.balancing.upstream import UpstreamBalancer
from headgate.gateway.health.state import CHECKS_AT_ONCE
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.upstreams import UpstreamHealth
from headgate.gateway.table import upstreams
from headgate.gateway.table.compiler import TableCompiler, TableUpdate

MANY = 3000
BY_CLIENT = (HashKey(source="client"),)
POLICIES = [
    Balancing(),
    Balancing(policy=BalancingPolicy.RING_HASH, hash=BY_CLIENT),
    Balancing(policy=BalancingPolicy.RENDEZVOUS, hash=BY_CLIENT),
    Balancing(policy=BalancingPolicy.MAGLEV, hash=BY_CLIENT),
    Balancing(policy=BalancingPolicy.PEAK_EWMA),
    Balancing(slow_start_s=30),
    Balancing(locality="zone"),
]


def address(number: int) -> str:
    return f"10.1.{number >> 8}.{number & 255}"


def large(numbers: Sequence[int] = range(MANY), balancing: Balancing | None = None, **fields: object) -> Upstream:
    endpoints = tuple(Endpoint(address=address(number), port=80) for number in numbers)
    return Upstream(
        key="up",
        endpoints=endpoints,
        balancing=balancing or Balancing(),
        provenance=ORIGIN,
        **fields,  # type: ignore[arg-type]
    )


def stage(compiler: TableCompiler, entry: Upstream, revision: int) -> tuple[TableUpdate, int]:
    """An update that has all it needs, and the number of steps that took."""
    manifest, chunks = publish(TableImage([entry]), (1, revision))
    update = compiler.stage(manifest.version, manifest.chunks)
    return update, sum(len(list(update.add(name, chunks[0].content))) for name in update.needed)


def apply(compiler: TableCompiler, entry: Upstream, revision: int) -> int:
    update, steps = stage(compiler, entry, revision)
    update.commit()
    list(update.settling)
    return steps


def balancer(compiler: TableCompiler) -> UpstreamBalancer:
    return dict(compiler.upstreams.compiled())["up"].balancer


@pytest.mark.parametrize("balancing", POLICIES, ids=str)
def test_an_upstream_of_many_endpoints_is_compiled_in_many_steps(balancing: Balancing) -> None:
    compiler = new_compiler()
    assert apply(compiler, large(balancing=balancing), 1) > 12
    assert apply(compiler, large(range(1, MANY + 1), balancing), 2) > 3
    assert len(balancer(compiler).slots) == MANY


def test_of_many_endpoints_only_the_new_one_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, decoded = new_compiler(), []
    apply(compiler, large(), 1)
    before = balancer(compiler)
    decode = upstreams.decode_endpoints

    def note(encoded: Sequence[bytes]) -> list[Endpoint]:
        decoded.extend(decode(encoded))
        return decode(encoded)

    monkeypatch.setattr(upstreams, "decode_endpoints", note)
    apply(compiler, large([*range(7), *range(8, MANY + 1)]), 2)
    assert [endpoint.address for endpoint in decoded] == [address(MANY)]
    assert len(set(balancer(compiler).slots) & set(before.slots)) == MANY - 1


def test_pools_of_unchanged_endpoints_are_kept() -> None:
    compiler = new_compiler()
    apply(compiler, large(), 1)
    pools = {slot.open_pool() for slot in balancer(compiler).slots[:10]}
    apply(compiler, large(range(9, MANY)), 2)
    assert len(pools & {slot.open_pool() for slot in balancer(compiler).slots[:10]}) == 1
    assert len(compiler.directory.take_orphans()) == 9


def test_a_change_of_health_between_two_steps_is_not_lost() -> None:
    compiler = new_compiler()
    apply(compiler, large(balancing=Balancing(slow_start_s=30)), 1)
    slots = balancer(compiler).slots
    manifest, chunks = publish(TableImage([large(range(1, MANY + 1), Balancing(slow_start_s=30))]), (1, 2))
    update = compiler.stage(manifest.version, manifest.chunks)
    marked = []
    for count, _ in enumerate(update.add(update.needed[0], chunks[0].content), 1):
        slots[count].mark(is_healthy=False)
        marked.append(slots[count])
    update.commit()
    chosen = {balancer(compiler).pick((), PLAIN) for _ in range(MANY)}
    assert len(marked) > 8
    assert not chosen & set(marked)


def test_a_bad_endpoint_among_many_is_refused() -> None:
    compiler = new_compiler()
    manifest, chunks = publish(TableImage([large()]), (1, 1))
    update = compiler.stage(manifest.version, manifest.chunks)
    bad = chunks[0].content.replace(b'"10.1.2.3","port":80', b'"10.1.2.3","port":0')
    with pytest.raises(DecodeError, match="port"):
        list(update.add(update.needed[0], bad))


def test_an_upstream_of_many_that_cannot_be_connected_to_says_so() -> None:
    compiler = new_compiler()
    apply(compiler, large(host="no host"), 1)
    assert "host" in balancer(compiler).unavailable
    assert not balancer(compiler).slots


async def test_checks_of_many_endpoints_begin_in_steps_and_bounds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    health = UpstreamHealth(HealthStats(), probe=never)
    watch = mock.Mock(wraps=health.watch)
    monkeypatch.setattr(health, "watch", watch)
    directory = EndpointDirectory(FakePools(), Clock())
    compiler = TableCompiler(directory, Unsealer([]).open, health=health)
    update, _ = stage(compiler, large(active_check=ActiveCheck(), ejection=Ejection()), 1)
    update.commit()
    assert health.find("up") is not None
    assert watch.call_count == 2 * CHECKS_AT_ONCE
    assert len(list(update.settling)) == MANY // CHECKS_AT_ONCE - 1
    assert watch.call_count == MANY
    await health.close()


async def never(target: object) -> str | None:
    return None


POOL = [
    Endpoint(address=address(number % 6), port=80, weight=weight, zone=zone, ready=ready, terminating=not ready)
    for number, (weight, zone, ready) in enumerate(itertools.product([1, 0, 3], ["", "a"], [True, False]))
]
ENDPOINTS = st.lists(st.sampled_from(POOL), max_size=8, unique_by=lambda endpoint: endpoint.address)
ENTRIES = st.builds(
    Upstream,
    key=st.just("up"),
    endpoints=ENDPOINTS.map(tuple),
    balancing=st.sampled_from(POLICIES),
    host=st.sampled_from([None, "web.example", "no host"]),
    max_idle=st.sampled_from([None, 3]),
    unavailable=st.sampled_from([None, "because"]),
    provenance=st.just(ORIGIN),
)


def described(compiler: TableCompiler) -> object:
    """What a balancer has, whatever it went through."""
    found = balancer(compiler)
    return (
        [slot.key for slot in found.slots],
        [kept_session(found, number, persists=persists) for number in range(6) for persists in (False, True)],
        found.unavailable,
        [slot and slot.key for slot in (found.pick((), PLAIN) for _ in range(20))],
    )


def kept_session(found: UpstreamBalancer, number: int, *, persists: bool) -> object:
    """Where a session goes on that is with an endpoint; None: nowhere."""
    slot = found.resume(endpoint_token("up", f"{address(number)}:80".encode()), persists=persists)
    return slot and slot.key


@settings(max_examples=150)
@example([large(range(3)), large(range(3), Balancing(locality="zone"))])
@given(st.lists(ENTRIES, min_size=1, max_size=4))
def test_taking_an_upstream_apart_comes_to_the_same(entries: list[Upstream]) -> None:
    apart, whole = (
        TableCompiler(EndpointDirectory(FakePools(), chance=Random(1)), Unsealer([]).open, place=Place("a"))
        for _ in range(2)
    )
    for revision, entry in enumerate(entries, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(upstreams, "SMALL", 0)
            load(apart, TableImage([entry]), (1, revision))
        load(whole, TableImage([entry]), (1, revision))
        assert described(apart) == described(whole)
