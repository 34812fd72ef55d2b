"""What `bench.pairs` says of pairs of rounds."""

from bench.pairs import Round, compare


def test_ratio_is_the_median_of_the_pairs_and_counts_processor_time() -> None:
    slow_machine = (Round(500, 0.6, 0.4), Round(600, 0.6, 0.4))
    quiet_machine = (Round(1000, 0.6, 0.4), Round(1100, 0.6, 0.4))
    half_a_core = (Round(1000, 0.6, 0.4), Round(650, 0.25, 0.25))
    said = compare([slow_machine, quiet_machine, half_a_core]).splitlines()
    assert said[0].startswith("1.200 of the requests before")
    assert said[1] == "before: 1,000 requests for a second of processor time, 40% of it in the kernel"
    assert said[2] == "after: 1,100 requests for a second of processor time, 40% of it in the kernel"
