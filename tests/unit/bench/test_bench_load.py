"""What wrk's script says."""

import json

import pytest
from bench.clients.load import parse_result
from bench.errors import BenchError

SAID = {
    "requests": 1000, "duration_us": 2_000_000, "bytes": 3_000_000,
    "p50_us": 500, "p90_us": 900, "p99_us": 1500, "p999_us": 2500, "max_us": 9000,
    "connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0,
}  # fmt: skip


def test_figures_are_per_second_and_in_milliseconds():
    result = parse_result("Running 2s test\n" + json.dumps(SAID) + "\n", busy=0.9, others=0.0)
    assert result.requests_per_s == 500
    assert result.p99_ms == 1.5
    assert result.megabytes_per_s == 1.5
    assert result.errors == {}


def test_errors_are_kept_by_kind():
    assert parse_result(json.dumps(SAID | {"status": 7, "timeout": 1}), busy=0.0, others=0.0).errors == {
        "status": 7,
        "timeout": 1,
    }


def test_output_without_figures_is_an_error():
    with pytest.raises(BenchError, match="no figures"):
        parse_result("unable to connect", busy=0.0, others=0.0)


def test_a_round_without_an_answer_is_an_error():
    with pytest.raises(BenchError, match="no request"):
        parse_result(json.dumps(SAID | {"requests": 0}), busy=0.0, others=0.0)
