"""A mapping that shares with its successor whatever did not change."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.model.persistent_map import BUCKETS, MOST_IN_ONE, PersistentMap

CHANGES = st.dictionaries(st.integers(0, 40), st.one_of(st.none(), st.text(max_size=2)), max_size=20)


def changed(before: PersistentMap[int, str], changes: dict[int, str | None]) -> PersistentMap[int, str]:
    edit = before.edit()
    for key, value in changes.items():
        if value is None:
            edit.discard(key)
        else:
            edit.put(key, value)
    return edit.done()


@given(st.sampled_from([0, MOST_IN_ONE - 10, MOST_IN_ONE, 3 * BUCKETS]), st.lists(CHANGES, max_size=4))
def test_each_map_has_what_a_dictionary_would_have_however_it_came_to_be(
    others: int, revisions: list[dict[int, str | None]]
) -> None:
    expected = [{-number - 1: "" for number in range(others)}]
    maps = [PersistentMap.of(expected[0])]
    for changes in revisions:
        maps.append(changed(maps[-1], changes))
        kept = {key: value for key, value in expected[-1].items() if key not in changes}
        expected.append(kept | {key: value for key, value in changes.items() if value is not None})
    # Those before are as they were, too.
    assert [dict(each.items()) for each in maps] == expected
    assert [len(each) for each in maps] == [len(each) for each in expected]


@given(st.sampled_from([3, 5 * BUCKETS]))
def test_what_is_there_is_found_and_nothing_else(size: int) -> None:
    found = PersistentMap.of({str(number).encode(): number for number in range(size)})
    assert [found.get(key) for key in (b"2", b"x")] == [2, None]
    assert (b"2" in found, b"x" in found, found[b"2"]) == (True, False, 2)
    assert set(found) == {str(number).encode() for number in range(size)}
    assert sorted(found.values()) == list(range(size))


def test_an_empty_map_is_false() -> None:
    assert not PersistentMap.of({})
    assert PersistentMap.of({1: ""})


def test_an_edit_sees_its_own_changes() -> None:
    edit = PersistentMap.of({1: "a", 2: "b"}).edit()
    edit.put(1, "c")
    edit.discard(2)
    edit.discard(3)
    assert [edit.get(key) for key in (1, 2, 3)] == ["c", None, None]
