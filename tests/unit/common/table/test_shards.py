"""Which shard has a host, and how tables are laid out for that."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.common import trie
from headgate.common.snapshot import Chunk
from headgate.common.stores.chunk_entries import entry_contents
from headgate.common.table import HostKey, VirtualHost
from headgate.common.table.shards import Shard, is_of_all, missing_shards
from headgate.common.table_image import TableImage

COUNTS = st.integers(0, 10).map(lambda power: 1 << power)
NAMES = st.from_regex(r"[a-z0-9]{1,8}(\.[a-z]{1,5}){0,2}", fullmatch=True)
HOSTS = st.one_of(
    NAMES, NAMES.map(lambda name: f"*.{name}"), NAMES.map(lambda name: f"~^{name}"), st.sampled_from(["*", "**.a"])
)
LISTENERS = st.sampled_from([(), ("gw/a",), ("gw/b",), ("gw/a", "gw/b")])
KEYS = st.sets(st.tuples(HOSTS, LISTENERS), max_size=60)


def hosts(keys: set[tuple[str, tuple[str, ...]]]) -> list[VirtualHost]:
    return [VirtualHost(host=host, listeners=listeners, routes=()) for host, listeners in keys]


def host_keys(chunk: Chunk) -> set[str]:
    return set(entry_contents(chunk.content))


@given(NAMES, COUNTS)
def test_each_name_is_in_exactly_one_shard(name: str, count: int) -> None:
    having = [number for number in range(count) if Shard(number, count).has_name(name.encode())]
    assert len(having) == 1


@given(NAMES, COUNTS)
def test_a_shard_is_halved_without_other_hosts_moving(name: str, count: int) -> None:
    number = next(number for number in range(count) if Shard(number, count).has_name(name.encode()))
    halves = [Shard(2 * number + half, 2 * count) for half in (0, 1)]
    assert sum(half.has_name(name.encode()) for half in halves) == 1


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "is no shard; write its number, a slash and how many there are: 0/4"),
        ("3", "is no shard"),
        ("-1/4", "is no shard"),
        ("1/4/8", "is no shard"),
        ("١/4", "is no shard"),
        ("1/6", "has 6 shards; the count is a power of two"),
        ("0/0", "has 0 shards"),
        ("0/2048", "2, 4, 8, to 1024"),
        ("8/8", "has no such number; numbers begin at 0, the last is 7"),
    ],
)
def test_what_is_no_shard_is_refused_with_what_would_be_right(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Shard.parse(written)


@given(COUNTS, st.data())
def test_a_shard_is_read_as_it_is_written(count: int, data: st.DataObject) -> None:
    shard = Shard(data.draw(st.integers(0, count - 1)), count)
    assert Shard.parse(str(shard)) == shard
    assert len(shard.bits) == count.bit_length() - 1


@pytest.mark.parametrize(
    ("live", "missing"),
    [
        ([], []),
        ([Shard(0, 1)], []),
        ([Shard(0, 2)], [Shard(1, 2)]),
        ([Shard(0, 2), Shard(1, 2)], []),
        ([Shard(0, 2), Shard(3, 4)], [Shard(2, 4)]),
        ([Shard(0, 2), Shard(2, 4), Shard(3, 4)], []),
        ([Shard(0, 4), Shard(0, 1)], []),
    ],
)
def test_shards_without_a_gateway_are_found_for_different_counts_too(live: list[Shard], missing: list[Shard]) -> None:
    assert list(missing_shards(live)) == missing


@settings(max_examples=60)
@given(KEYS, st.integers(0, 4), st.booleans())
def test_the_chunks_that_shards_need_have_all_hosts_of_theirs(
    keys: set[tuple[str, tuple[str, ...]]], power: int, is_for_shards: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trie, "LEAF_ENTRIES", 4)
        chunks = TableImage(hosts(keys), is_for_shards=is_for_shards).chunks()
    whole = {str(HostKey(*key)) for key in keys}
    assert set().union(*map(host_keys, chunks)) == whole
    shards = [Shard(number, 1 << power) for number in range(1 << power)]
    for shard in shards:
        needed = set().union(*(host_keys(chunk) for chunk in chunks if shard.needs_chunk(chunk.prefix)))
        assert {key for key in whole if shard.has_host(HostKey.read(key).host)} <= needed


def test_a_shard_needs_few_chunks_of_a_table_that_is_laid_out_for_shards() -> None:
    names = [*(f"h{number}.example" for number in range(2000)), "*.a.example", "*"]
    image = TableImage((VirtualHost(host=name, routes=()) for name in names), is_for_shards=True)
    needed = [chunk for chunk in image.chunks() if Shard(2, 4).needs_chunk(chunk.prefix)]
    foreign = [
        key
        for chunk in needed
        for key in host_keys(chunk)
        if not is_of_all(key) and not Shard(2, 4).has_name(key.encode())
    ]
    assert foreign == []
    assert len(needed) < len(image.chunks()) / 3


def test_many_virtual_hosts_of_one_name_are_placed_together_and_apart_again() -> None:
    made = [VirtualHost(host="a.example", listeners=(f"gw/{number}",), routes=()) for number in range(200)]
    image = TableImage(made, is_for_shards=True)
    assert sum(len(host_keys(chunk)) for chunk in image.chunks()) == 200
    [shard] = [Shard(number, 8) for number in range(8) if Shard(number, 8).has_name(b"a.example")]
    assert all(shard.needs_chunk(chunk.prefix) for chunk in image.chunks())
    assert not any(Shard((shard.number + 1) % 8, 8).needs_chunk(chunk.prefix) for chunk in image.chunks())
    for each in made[1:]:
        image.discard("hosts", each.key)
    assert image.chunks() == TableImage(made[:1], is_for_shards=True).chunks()


@given(KEYS, st.randoms())
def test_a_table_for_shards_is_the_same_in_whatever_order_it_came(
    keys: set[tuple[str, tuple[str, ...]]], random: Random
) -> None:
    entries = hosts(keys)
    shuffled = list(entries)
    random.shuffle(shuffled)
    one, other = (TableImage(each, is_for_shards=True).chunks() for each in (entries, shuffled))
    assert one == other
    assert [chunk.name for chunk in one] == sorted((chunk.name for chunk in one), key=lambda name: name.prefix)


def test_a_table_without_shards_is_as_it_was() -> None:
    image = TableImage([VirtualHost(host=name, routes=()) for name in ("a.example", "*.a.example")])
    assert [chunk.prefix for chunk in image.chunks()] == [""]
