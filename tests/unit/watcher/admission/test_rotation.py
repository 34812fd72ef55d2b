"""When the webhook's certificate is made, renewed and replaced, on a clock that the tests turn."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.common.secret import Secret
from headgate.watcher.admission.issuing import Pair, examine, issue
from headgate.watcher.admission.rotation import MOST_AUTHORITIES, DesiredCertificate, Kept, Step, advance

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LIFE = timedelta(days=90)
WANTED = DesiredCertificate(("headgate-admission.headgate.svc",), LIFE)
GARBAGE = Pair(b"broken", Secret(b"broken"))


def step(
    kept: Kept, after: timedelta = timedelta(0), *, is_trusted: bool = False, wanted: DesiredCertificate = WANTED
) -> Step:
    found = advance(kept, wanted, NOW + after, is_trusted=is_trusted)
    assert found is not None
    return found


def is_settled(kept: Kept, after: timedelta) -> bool:
    return advance(kept, WANTED, NOW + after, is_trusted=True) is None


@pytest.fixture(scope="module")
def first() -> Kept:
    return step(Kept()).kept


def test_where_there_is_none_one_is_made_and_presented(first: Kept) -> None:
    assert first.present is not None
    assert examine(first.present, first.authorities, NOW).problem is None
    assert (first.upcoming, len(first.authorities)) == (None, 1)
    assert is_settled(first, timedelta(days=59))


def test_the_next_one_comes_at_two_thirds_of_its_life_and_waits_until_it_is_trusted(first: Kept) -> None:
    second = step(first, timedelta(days=60)).kept
    assert second.present == first.present
    assert second.upcoming is not None
    assert second.authorities[1:] == first.authorities
    assert advance(second, WANTED, NOW + timedelta(days=60), is_trusted=False) is None
    third = step(second, timedelta(days=60), is_trusted=True).kept
    assert (third.present, third.upcoming) == (second.upcoming, None)
    assert third.authorities == second.authorities


def test_the_old_authority_is_trusted_until_its_certificate_ends(first: Kept) -> None:
    second = step(step(first, timedelta(days=60)).kept, timedelta(days=60), is_trusted=True).kept
    assert is_settled(second, timedelta(days=90) - timedelta(seconds=1))
    third = step(second, timedelta(days=90)).kept
    assert third.authorities == second.authorities[:1]
    assert third.present == second.present


def test_one_that_ends_untrusted_is_followed_by_the_one_that_was_made_for_it(first: Kept) -> None:
    second = step(first, timedelta(days=60)).kept
    found = step(second, timedelta(days=91))
    assert "it ended at 2026-05-30 00:00:00 UTC" in found.reason
    assert found.kept.present == second.upcoming


def test_content_that_cannot_be_used_is_replaced_and_what_can_be_read_stays_trusted(first: Kept) -> None:
    found = step(replace(first, present=GARBAGE))
    assert "tls.crt is not a readable PEM certificate" in found.reason
    assert found.kept.authorities[1:] == first.authorities
    assert found.kept.present is not None
    assert examine(found.kept.present, found.kept.authorities, NOW).problem is None


def test_a_next_one_that_cannot_be_used_is_made_anew(first: Kept) -> None:
    found = step(replace(first, upcoming=GARBAGE), timedelta(days=60), is_trusted=True).kept
    assert found.present == first.present
    assert found.upcoming not in (None, GARBAGE)


def test_a_certificate_from_the_future_is_replaced_and_says_that_a_clock_is_wrong(first: Kept) -> None:
    found = step(first, timedelta(days=-365))
    assert "a clock is or was wrong" in found.reason


def test_other_names_are_presented_only_when_they_are_trusted(first: Kept) -> None:
    wanted = DesiredCertificate(("other.headgate.svc", "192.0.2.1"), LIFE)
    second = step(first, wanted=wanted)
    assert "other names" in second.reason
    assert second.kept.present == first.present
    third = step(second.kept, wanted=wanted, is_trusted=True).kept
    assert third.present is not None
    assert examine(third.present, third.authorities, NOW).names == frozenset(wanted.names)
    assert advance(third, wanted, NOW, is_trusted=True) is None


def test_settings_that_disagree_do_not_let_the_bundle_grow_without_bound(first: Kept) -> None:
    kept = first
    for number in range(2 * MOST_AUTHORITIES):
        wanted = DesiredCertificate((f"name-{number}.svc",), LIFE)
        kept = step(step(kept, wanted=wanted).kept, wanted=wanted, is_trusted=True).kept
    assert len(kept.authorities) == MOST_AUTHORITIES
    assert kept.present is not None
    assert examine(kept.present, kept.authorities, NOW).problem is None


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.booleans()), max_size=20))
def test_whatever_a_replica_presents_is_trusted(history: list[tuple[int, bool, bool]]) -> None:
    """A replica may present anything that was ever in the Secret and has not ended."""
    pair, authority = issue(WANTED.names, NOW, LIFE)
    kept, now = Kept(present=pair, authorities=(authority,)), NOW
    presented = [pair]
    for days, is_trusted, breaks in history:
        now += timedelta(days=days)
        if breaks and kept.upcoming is not None:
            kept = replace(kept, upcoming=GARBAGE)
        found = advance(kept, WANTED, now, is_trusted=is_trusted)
        kept = found.kept if found else kept
        assert kept.present is not None
        presented.append(kept.present)
        for one in presented:
            assert examine(one, kept.authorities, now).problem is None or _ends(one) <= now


def _ends(pair: Pair) -> datetime:
    found = examine(pair, (), NOW).not_after
    assert found is not None
    return found
