"""When certificates are ordered; the clock is given."""

from datetime import UTC, datetime, timedelta

import pytest

from headgate.common.acme import CertificateState, Failure, IssuedCertificate
from headgate.common.sealing import SealedValue
from headgate.translator.leading.acme.authority import read_retry_after
from headgate.translator.leading.acme.schedule import LONGEST_PAUSE, due_at, failed, is_over

NOW = datetime(2026, 11, 23, tzinfo=UTC)
PAUSE = timedelta(minutes=5)
NEW = CertificateState(resolver="le", names=("a.com",))
ISSUED = IssuedCertificate(
    chain_pem="", private_key=SealedValue(boxes={}), fingerprint="", not_before=NOW, not_after=NOW + timedelta(days=90)
)
FAILURE = Failure(count=1, reason="no", at=NOW, retry_at=NOW + timedelta(days=61))


@pytest.mark.parametrize(
    ("state", "due"),
    [
        (None, None),
        (NEW, None),
        (NEW.model_copy(update={"certificate": ISSUED}), NOW + timedelta(days=60)),
        (NEW.model_copy(update={"certificate": ISSUED, "failure": FAILURE}), NOW + timedelta(days=61)),
        (NEW.model_copy(update={"failure": FAILURE}), NOW + timedelta(days=61)),
        (NEW.model_copy(update={"ordered_at": NOW}), NOW + PAUSE),
    ],
)
def test_an_order_is_due(state: CertificateState | None, due: datetime | None) -> None:
    assert due_at(state, PAUSE) == due


def test_each_failure_doubles_the_pause_up_to_a_day() -> None:
    state, pauses = NEW.model_copy(update={"certificate": ISSUED, "ordered_at": NOW}), []
    for _ in range(12):
        state = failed(state, "no", NOW, PAUSE)
        assert state.failure is not None
        pauses.append(state.failure.retry_at - NOW)
    assert pauses[:3] == [PAUSE, 2 * PAUSE, 4 * PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    assert state.certificate == ISSUED
    assert state.ordered_at is None


def test_what_the_authority_says_of_the_pause_counts_if_it_is_longer() -> None:
    for told, pause in ((timedelta(hours=3), timedelta(hours=3)), (timedelta(seconds=1), PAUSE)):
        failure = failed(NEW, "no", NOW, PAUSE, told).failure
        assert failure is not None
        assert failure.retry_at == NOW + pause


@pytest.mark.parametrize(
    ("text", "seconds"), [("120", 120), ("", None), ("soon", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)]
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float | None) -> None:
    found = read_retry_after(text)
    assert (found.total_seconds() if found is not None else None) == seconds


def test_what_the_authority_says_of_a_renewal_goes_before_the_own_rule() -> None:
    state = NEW.model_copy(update={"certificate": ISSUED})
    assert due_at(state, PAUSE, NOW + timedelta(days=5)) == NOW + timedelta(days=5)
    waiting = state.model_copy(update={"failure": FAILURE})
    assert due_at(waiting, PAUSE, NOW) == FAILURE.retry_at


@pytest.mark.parametrize(
    ("changes", "after", "expected"),
    [
        ({}, timedelta(), True),
        ({"certificate": ISSUED}, timedelta(days=89), False),
        ({"certificate": ISSUED}, timedelta(days=90), True),
        ({"ordered_at": NOW}, timedelta(hours=23), False),
        ({"ordered_at": NOW}, timedelta(days=1), True),
        ({"failure": FAILURE}, timedelta(days=61), False),
        ({"failure": FAILURE}, timedelta(days=62), True),
    ],
)
def test_a_state_is_over(changes: dict[str, object], after: timedelta, expected: bool) -> None:
    assert is_over(NEW.model_copy(update=changes), NOW + after) is expected
