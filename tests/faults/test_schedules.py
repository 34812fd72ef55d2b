"""Schedules come from their seed alone and can be read again."""

import itertools
import random

import pytest

from faults.schedule import Fault, Possible, draw, read, show

POSSIBLE = [
    Possible("kill", "translator-0"),
    Possible("pause", "translator-0"),
    Possible("kill", "nats-server-1"),
    Possible("lose", "nats-server-all"),
    Possible("stall", "gateway-0 > nats"),
]


def test_a_seed_gives_the_same_schedule_again() -> None:
    assert draw(random.Random(3), POSSIBLE, 10.0, 4) == draw(random.Random(3), POSSIBLE, 10.0, 4)
    assert draw(random.Random(3), POSSIBLE, 10.0, 4) != draw(random.Random(4), POSSIBLE, 10.0, 4)


def test_a_printed_schedule_can_be_read() -> None:
    schedule = draw(random.Random(3), POSSIBLE, 10.0, 4)
    assert read(show(schedule)) == schedule
    with pytest.raises(ValueError, match="is no fault"):
        read("at once: everything")


@pytest.mark.parametrize("seed", range(50))
def test_nothing_suffers_from_two_faults_at_a_time(seed: int) -> None:
    schedule = draw(random.Random(seed), POSSIBLE, 10.0, 6)
    spans = sorted((fault.victim.split("-server-")[0], fault.at_s, fault.end_s) for fault in schedule)
    assert all(one[2] < other[1] for one, other in itertools.pairwise(spans) if one[0] == other[0])
    assert all(fault.at_s >= 0 and fault.end_s <= 10.0 for fault in schedule)


def test_what_must_be_in_a_schedule_is_in_it() -> None:
    assert all(
        any(fault.what == "lose" for fault in draw(random.Random(seed), POSSIBLE, 10.0, 3, "lose"))
        for seed in range(20)
    )


def test_a_fault_is_a_line() -> None:
    assert str(Fault(1.5, 0.5, "stall", "gateway-0 > nats")) == "at 1.5 s for 0.5 s: stall gateway-0 > nats"
