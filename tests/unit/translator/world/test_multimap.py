"""A multimap is a dictionary of sets."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.translator.world.multimap import FEW, Multimap

steps = st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 2 * FEW)), max_size=80)


@given(steps)
def test_it_agrees_with_a_dictionary_of_sets(steps: list[tuple[bool, int, int]]) -> None:
    ours: Multimap[int, int] = Multimap()
    model: dict[int, set[int]] = {}
    for is_added, key, value in steps:
        values = model.setdefault(key, set())
        if is_added:
            assert ours.add(key, value) == (not values)
            values.add(value)
        else:
            values.discard(value)
            assert ours.discard(key, value) == (not values)
        assert set(ours.of(key)) == values
        assert len(ours.of(key)) == len(values)
    assert set(ours.keys) == {key for key, values in model.items() if values}
