"""Since when chunks are unused."""

from headgate.common.stores.collecting import UnusedChunks


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
