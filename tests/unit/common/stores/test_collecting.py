"""Which chunks are named, and since when others are unused."""

from headgate.common.stores.collecting import Named, NamedChunks, UnusedChunks


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


def test_what_stands_in_a_page_is_named_while_one_manifest_names_the_page() -> None:
    named = NamedChunks()
    assert named.lacking(["page", "other"]) == ["page", "other"]
    named.add_page("page", ["a", "b"])
    named.add("1", Named(["c"], ["page"]))
    named.add("2", Named([], ["page"]))
    named.drop(["1"])
    assert named.digests() == {"page", "a", "b"}
    assert named.lacking(["page"]) == []
    named.drop(["2"])
    assert named.digests() == set()
    assert named.lacking(["page"]) == ["page"]


def test_it_is_known_what_was_written_before_a_chunk_was_first_found_unused() -> None:
    unused = UnusedChunks(0.0)
    unused.find_idle({"a"}, written=7)
    unused.find_idle({"a", "b"}, written=9)
    assert (unused.written_before("a"), unused.written_before("b")) == (7, 9)
