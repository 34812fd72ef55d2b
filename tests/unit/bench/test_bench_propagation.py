"""What a change's records amount to."""

import pytest
from bench.parts.propagation import count_stale, summarise
from bench.recording.stages import stages_of
from bench.recording.steady import Answer
from bench.recording.tap import POINTERS, Heard
from bench.setup.changes import Change

DELTA = "headgate.delta.local.discovery=2Ek8s=2Eio.endpointslices.bench.changing-1"
POINTER = f"{POINTERS}default"

FIRST = Change(written=10.0, served=10.020, endpoint="9001")
SECOND = Change(written=11.0, served=11.030, endpoint="9002")


def answer(asked: float, body: str, status: int = 200) -> Answer:
    return Answer(asked, asked + 0.001, status, body)


def test_an_old_endpoint_may_answer_until_the_new_one_has():
    assert count_stale([FIRST, SECOND], [answer(10.5, "9001"), answer(11.029, "9001")]) == 0


def test_an_old_endpoint_after_the_new_one_is_stale():
    assert count_stale([FIRST, SECOND], [answer(11.031, "9001")]) == 1


def test_a_new_endpoint_may_answer_somebody_else_before_the_probe():
    assert count_stale([FIRST, SECOND], [answer(11.010, "9002")]) == 0


def test_nothing_is_stale_before_the_first_change():
    assert count_stale([FIRST], [answer(9.0, "9000")]) == 0


def test_a_change_is_split_at_its_delta_and_its_revision():
    heard = [Heard(9.0, POINTER), Heard(10.004, DELTA), Heard(10.012, POINTER)]
    stages = stages_of([FIRST], heard)
    assert [round(each.max) for each in stages.values()] == [4, 8, 8]


def test_a_change_without_its_revision_is_left_out():
    assert stages_of([FIRST], [Heard(10.004, DELTA), Heard(10.5, POINTER)]) == {}


def test_failed_requests_fail_the_run():
    answers = [answer(9.0, "9000"), answer(10.5, "9001"), answer(10.6, "", status=502)]
    result = summarise("alone", [FIRST], answers, [], started=9.5)
    assert result.failed == 1
    assert "status=502" in result.failures[0]
    assert result.took.max == pytest.approx(20)
