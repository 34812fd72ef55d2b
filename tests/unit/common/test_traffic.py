"""Summaries of traffic on their way, and how durations add up."""

import itertools
import math
import random
import zlib

import msgspec
import pytest

from fakes.traffic import counts, of_endpoint, of_route, summary
from headgate.common.errors import DecodeError
from headgate.common.traffic import BOUNDS_S, MAX_SUMMARY_BYTES, Counts, added, decode_summary, percentile


def durations_of(seconds: list[float]) -> dict[int, int]:
    found: dict[int, int] = {}
    for each in seconds:
        place = sum(bound < each for bound in BOUNDS_S)
        found[place] = found.get(place, 0) + 1
    return found


def test_a_summary_arrives_as_it_was_told() -> None:
    told = summary(of_route("a|r", made=counts(3, failed=1, sent=5)), of_endpoint("10.0.0.1:80"), folded=2)
    assert decode_summary(told.encode()) == told


def test_a_busy_worker_says_little() -> None:
    rows = [of_route(f"site-{number}.example.com|local/default/site-{number} rule 0") for number in range(500)]
    assert len(summary(*rows).encode()) < 20_000


def test_what_a_later_release_says_besides_is_passed_over() -> None:
    packed = msgspec.msgpack.encode([*msgspec.structs.astuple(summary(of_route("a|r"))), "news"])
    assert decode_summary(zlib.compress(packed)) == summary(of_route("a|r"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no zlib",
        zlib.compress(b"no msgpack"),
        summary().encode()[:-5],
        zlib.compress(bytes(MAX_SUMMARY_BYTES + 1)),
        zlib.compress(msgspec.msgpack.encode(["default"])),
    ],
    ids=["empty", "not packed", "no summary", "cut", "too long", "too little"],
)
def test_what_is_no_summary_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="a summary of traffic"):
        decode_summary(data)


def test_bounds_are_ten_to_a_factor_of_ten() -> None:
    assert (BOUNDS_S[0], BOUNDS_S[10], BOUNDS_S[20], BOUNDS_S[-1]) == (0.0001, 0.001, 0.01, 100.0)
    assert max(high / low for low, high in itertools.pairwise(BOUNDS_S)) <= 1.34


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99])
def test_percentiles_are_right_within_a_bucket(share: float) -> None:
    drawn = random.Random(7)
    seconds = sorted(math.exp(drawn.gauss(-5, 1.2)) for _ in range(5000))
    found = percentile(durations_of(seconds), share)
    assert found == pytest.approx(seconds[int(share * len(seconds))], rel=0.1)


def test_percentiles_at_the_ends() -> None:
    assert percentile({}, 0.99) == 0.0
    assert percentile({0: 4}, 0.5) == pytest.approx(0.00005)
    assert percentile({len(BOUNDS_S): 1}, 0.99) == 100.0


def test_counts_add_up() -> None:
    assert added([]) == Counts()
    assert added([counts(3, failed=1, sent=5), counts(2, place=20)]) == Counts(
        (0, 0, 4, 0, 0, 1), 0, 5, pytest.approx(0.005), {10: 3, 20: 2}
    )
