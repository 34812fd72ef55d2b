"""What h2load says."""

import pytest
from bench.clients.h2load import H2Load, parse_h2load
from bench.errors import BenchError
from bench.setup.tools import BENCH

SAID = """\
finished in 2.00s, 500.00 req/s, 1.50MB/s
requests: 1005 total, 1008 started, 1005 done, 1000 succeeded, 5 failed, 3 errored, 1 timeout
status codes: 998 2xx, 0 3xx, 1 4xx, 1 5xx
traffic: 3.00MB (3145728) total, 93.75KB (96000) headers (space savings 51.02%), 3.91KB (4000) data
"""
LOG = "".join(f"1795266364935734\t200\t{microseconds}\n" for microseconds in range(10, 1010, 10))


def test_figures_are_per_second_and_in_milliseconds():
    result = parse_h2load(SAID, LOG, busy=0.9, others=0.0)
    assert result.requests_per_s == 500
    assert result.p99_ms == 0.99
    assert result.max_ms == 1.0
    assert result.megabytes_per_s == 1.5 * 2**20 / 1e6


def test_short_runs_are_in_other_units():
    said = SAID.replace("2.00s", "500.00ms").replace("1.50MB/s", "512B/s")
    result = parse_h2load(said, LOG, busy=0.9, others=0.0)
    assert result.requests_per_s == 2000
    assert result.megabytes_per_s == 512 / 1e6


def test_failures_and_statuses_are_told_apart():
    assert parse_h2load(SAID, LOG, busy=0, others=0).errors == {"failed": 2, "errored": 3, "timeout": 1, "status": 2}


def test_output_without_a_summary_is_an_error():
    with pytest.raises(BenchError, match="no figures"):
        parse_h2load("could not connect", LOG, busy=0, others=0)


def test_a_round_without_an_answer_is_an_error():
    with pytest.raises(BenchError, match="no request was answered"):
        parse_h2load(SAID.replace("1000 succeeded", "0 succeeded"), "", busy=0, others=0)


def test_the_command_counts_a_browsers_headers():
    load = H2Load("https://foo.com/", 443, 32, 10, seconds=1, headers=tuple(f"h{number}: v" for number in range(9)))
    assert "9 --header of a browser" in load.command(1)
    assert "--header=h3: v" in load.argv(1)


def test_paths_of_a_written_command_begin_at_the_checkout() -> None:
    load = H2Load("http://a/", 80, clients=1, requests=1, body=BENCH / ".work" / "message")
    assert "--data=bench/.work/message" in load.command(1)
