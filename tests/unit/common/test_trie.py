"""Leaves of a trie, change after change, are those that a new one would have."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.common.trie import LEAF_ENTRIES, Trie

Change = tuple[str, int, bytes | None]
"""First key, how many from there on, and their content; None removes them."""
changes = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(1, 2 * LEAF_ENTRIES),
        st.none() | st.binary(min_size=1, max_size=3),
    ),
    max_size=8,
)


def made(prefix: str, content: bytes) -> tuple[str, bytes]:
    return prefix, content


@given(changes)
def test_leaves_after_changes_are_those_of_a_new_trie(steps: list[tuple[int, int, bytes | None]]) -> None:
    trie, entries = Trie(made), dict[str, bytes]()
    for first, count, content in steps:
        for key in map(str, range(first, first + count)):
            if content is None:
                assert trie.discard(key) == (entries.pop(key, None) is not None)
            else:
                trie.put(key, content)
                entries[key] = content
        fresh = Trie(made)
        for key, value in entries.items():
            fresh.put(key, value)
        assert list(trie.leaves()) == list(fresh.leaves())


def test_leaves_that_were_given_out_stay_as_they_are_and_unchanged_ones_are_the_same_objects() -> None:
    trie = Trie(made)
    for number in range(4 * LEAF_ENTRIES):
        trie.put(f"key-{number}", b"1")
    before = trie.leaves()
    kept = list(before)
    assert trie.put("key-7", b"2")
    after = trie.leaves()
    assert list(before) == kept
    differing = [(old, new) for old, new in zip(before, after, strict=True) if old is not new]
    assert len(differing) == 1
    assert trie.leaves() is after
