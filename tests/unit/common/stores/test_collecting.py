"""Which chunks are named, and since when others are unused."""

import pytest

from headgate.common.snapshot import ChunkName, compress
from headgate.common.stores.collecting import Named, NamedChunks, UnusedChunks
from headgate.common.stores.name_pages import Page


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_chunk_is_idle_when_it_was_found_unused_for_the_whole_grace_period() -> None:
    clock = Clock()
    unused = UnusedChunks(10.0, clock)
    assert unused.find_idle({"a"}) == []
    clock.now += 10.0
    assert unused.find_idle({"a", "b"}) == ["a"]


def test_a_chunk_that_was_used_in_between_begins_anew() -> None:
    clock = Clock()
    unused = UnusedChunks(10.0, clock)
    unused.find_idle({"a"})
    unused.find_idle(set())
    clock.now += 10.0
    assert unused.find_idle({"a"}) == []


def test_a_chunk_that_a_commit_counts_on_begins_anew() -> None:
    clock = Clock()
    unused = UnusedChunks(10.0, clock)
    unused.find_idle({"a"})
    clock.now += 10.0
    unused.forget(["a", "unknown"])
    assert unused.find_idle({"a"}) == []


def test_of_idle_chunks_those_are_still_idle_that_no_commit_counts_on_since() -> None:
    clock = Clock()
    unused = UnusedChunks(10.0, clock)
    unused.find_idle({"a", "b"})
    clock.now += 10.0
    idle = unused.find_idle({"a", "b"})
    unused.forget(["a"])
    assert unused.still_idle(idle) == ["b"]


def test_a_chunk_is_named_while_one_manifest_names_it() -> None:
    named = NamedChunks()
    named.add("1", Named(["a", "b"]))
    named.add("2", Named(["b", "c"]))
    named.drop(["1", "unknown"])
    assert (named.manifests, named.digests()) == ({"2"}, {"b", "c"})
    named.drop(["2"])
    assert named.digests() == set()


def test_a_manifest_counts_once_however_often_it_is_added() -> None:
    named = NamedChunks()
    named.add("1", Named(["a"]))
    named.add("1", Named(["a"]))
    named.drop(["1"])
    assert named.digests() == set()


PAGE = Page.of("hosts", tuple(ChunkName(kind="hosts", prefix=bit, digest=name) for bit, name in ("0a", "1b")))
STORED = compress(PAGE.content)


def test_what_stands_in_a_page_is_named_while_one_manifest_names_the_page() -> None:
    named = NamedChunks()
    named.add("1", Named(["c"], [PAGE.digest]))
    named.add("2", Named([], [PAGE.digest]))
    assert named.lacking() == [PAGE.digest]
    named.add_page(PAGE.digest, STORED)
    assert named.lacking() == []
    named.drop(["1"])
    assert named.digests() == {PAGE.digest, "a", "b"}
    named.drop(["2"])
    assert named.digests() == set()


@pytest.mark.parametrize("found", [None, b"damaged", compress(b"[]")])
def test_a_page_that_is_not_there_or_damaged_is_asked_for_again(found: bytes | None) -> None:
    named = NamedChunks()
    named.add("1", Named([], [PAGE.digest]))
    named.add_page(PAGE.digest, found)
    assert named.digests() == {PAGE.digest}
    assert named.lacking() == [PAGE.digest]
    named.add_page(PAGE.digest, STORED)
    assert named.digests() == {PAGE.digest, "a", "b"}


def test_it_is_known_what_was_written_before_a_chunk_was_first_found_unused() -> None:
    unused = UnusedChunks(0.0)
    unused.find_idle({"a"}, written=7)
    unused.find_idle({"a", "b"}, written=9)
    assert (unused.written_before("a"), unused.written_before("b")) == (7, 9)
