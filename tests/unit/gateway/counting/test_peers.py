"""What workers show each other in memory: found by its key, read by all, and gone with its worker."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.gateway.workers import Workers, workers
from headgate.gateway.counting.layout import BUCKETS, WAYS
from headgate.gateway.counting.peers import FOR_EVER, Peers

WRITING = """
import sys, time
from headgate.gateway.counting.peers import Peers
descriptor, buckets, until = (int(text) for text in sys.argv[1:])
peers, number = Peers(descriptor, 3, 0), 0
while time.monotonic() * 1000 < until:
    number += 1
    place = 7 + buckets * (number % 16)
    peers.write(place, place, place, place, float(number))
"""


@pytest.fixture
def three() -> Iterator[Workers]:
    with workers(3) as sharing:
        yield sharing


def test_each_worker_reads_what_the_others_show(three: Workers) -> None:
    one, two, other = three.peers
    one.write(7, 1.0, 2.0, 3.0, 100.0)
    other.write(7, 4.0, 5.0, 6.0, 200.0)
    assert two.read(7) == [(1.0, 2.0, 3.0, 100.0), (4.0, 5.0, 6.0, 200.0)]
    assert one.read(7) == [(4.0, 5.0, 6.0, 200.0)]
    assert two.read(8) == []


def test_what_is_written_again_takes_the_place_of_what_was_there(three: Workers) -> None:
    one, two, _ = three.peers
    for number in range(3):
        one.write(7, number, 0.0, 0.0, FOR_EVER)
    assert two.read(7) == [(2.0, 0.0, 0.0, FOR_EVER)]


def test_what_is_withdrawn_is_read_no_more_and_makes_room(three: Workers) -> None:
    one, two, _ = three.peers
    places = [7 + BUCKETS * way for way in range(WAYS + 1)]
    for place in places[:-1]:
        one.write(place, 1.0, 0.0, 0.0, FOR_EVER)
    one.withdraw(places[3])
    one.withdraw(12345)
    one.write(places[-1], 2.0, 0.0, 0.0, FOR_EVER)
    assert two.read(places[3]) == []
    assert two.read(places[-1]) == [(2.0, 0.0, 0.0, FOR_EVER)]
    assert all(two.read(place) for place in places if place != places[3])


def test_what_ends_first_makes_room_and_what_never_ends_does_not(three: Workers) -> None:
    one, two, _ = three.peers
    places = [7 + BUCKETS * way for way in range(WAYS + 2)]
    for way, place in enumerate(places[:WAYS]):
        one.write(place, 1.0, 0.0, 0.0, FOR_EVER if way % 2 else 100.0 - way)
    one.write(places[WAYS], 1.0, 0.0, 0.0, 500.0)
    assert [bool(two.read(place)) for place in places] == [True] * 6 + [False, True, True, False]
    for place in places[:WAYS]:
        one.write(place, 1.0, 0.0, 0.0, FOR_EVER)
    one.write(places[-1], 1.0, 0.0, 0.0, FOR_EVER)
    assert two.read(places[-1]) == []


def test_what_a_worker_that_ended_has_shown_is_forgotten_and_no_one_elses(three: Workers) -> None:
    one, two, other = three.peers
    for place in range(1, 5000, 7):
        two.write(place, 1.0, 0.0, 0.0, FOR_EVER)
        other.write(place, 2.0, 0.0, 0.0, FOR_EVER)
    three.counts.forget(1)
    assert all(one.read(place) == [(2.0, 0.0, 0.0, FOR_EVER)] for place in range(1, 5000, 7))
    two.write(1, 9.0, 0.0, 0.0, FOR_EVER)
    assert len(one.read(1)) == 2


def test_numbers_of_one_key_are_never_read_under_another_while_they_change(three: Workers) -> None:
    arguments = [str(three.counts.descriptor), str(BUCKETS), str(int(time.monotonic() * 1000) + 2000)]
    writer = subprocess.Popen([sys.executable, "-c", WRITING, *arguments], pass_fds=(three.counts.descriptor,))
    places = [7 + BUCKETS * way for way in range(2 * WAYS)]
    seen, wrong = 0, []
    while writer.poll() is None:
        for place in places:
            for first, second, third, _ in three.peers[1].read(place):
                seen += 1
                if (first, second, third) != (place, place, place):
                    wrong.append((place, first, second, third))
    assert writer.returncode == 0
    assert wrong == []
    assert seen > 100


def test_keys_are_those_of_this_gateway_alone() -> None:
    with workers(2) as here, workers(2) as there:
        assert here.peers[0].place("a") == here.peers[1].place("a")
        assert here.peers[0].place("a") != here.peers[0].place("b")
        assert here.peers[0].place("a") != there.peers[0].place("a")
        assert here.peers[0].place("\udcff") > 0


def test_a_worker_needs_the_descriptor_only_to_begin() -> None:
    with workers(2) as sharing:
        inherited = os.dup(sharing.counts.descriptor)
        late = Peers(inherited, 2, 1)
        os.close(inherited)
        sharing.peers[0].write(3, 1.0, 0.0, 0.0, FOR_EVER)
        assert late.read(3) == [(1.0, 0.0, 0.0, FOR_EVER)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(["write", "withdraw"]),
            st.integers(1, 3).map(lambda way: 5 + way * BUCKETS),
            st.integers(0, 99),
        ),
        max_size=60,
    )
)
def test_workers_agree_with_dictionaries_whatever_they_do(steps: list[tuple[int, str, int, int]]) -> None:
    known: list[dict[int, int]] = [{}, {}, {}]
    with workers(3) as sharing:
        for worker, what, place, number in steps:
            if what == "write":
                sharing.peers[worker].write(place, number, 0.0, 0.0, FOR_EVER)
                known[worker][place] = number
            else:
                sharing.peers[worker].withdraw(place)
                known[worker].pop(place, None)
        for reader, peers in enumerate(sharing.peers):
            for place in {step[2] for step in steps}:
                others = [shown[place] for index, shown in enumerate(known) if index != reader and place in shown]
                assert [int(numbers[0]) for numbers in peers.read(place)] == others
