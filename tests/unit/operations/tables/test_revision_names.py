"""How revisions and times are named on the command line."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.snapshot import Version
from headgate.operations.errors import InvalidRequest, OperationError
from headgate.operations.moments import parse_moment
from headgate.operations.tables.revisions import RevisionName, find_version, parse_name

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
KEPT = [Version(4, 7), Version(5, 2), Version(5, 3), Version(5, 9)]
CURRENT = Version(5, 9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("57", RevisionName("57", revision=57)),
        ("1767225600.57", RevisionName("1767225600.57", epoch=1767225600, revision=57)),
        ("HEAD", RevisionName("HEAD", word="head")),
        ("head~", RevisionName("head~", word="head", back=1)),
        ("57~3", RevisionName("57~3", revision=57, back=3)),
        ("Live", RevisionName("Live", word="live")),
    ],
)
def test_names_are_read(text: str, expected: RevisionName) -> None:
    assert parse_name(text) == expected


@pytest.mark.parametrize(
    "text", ["", "~1", "5.", ".5", "1.2.3", "-1", "HEAD~x", "HEAD^", "live~1", "heads", "0x1", "٣"]
)
def test_other_text_names_nothing(text: str) -> None:
    with pytest.raises(InvalidRequest, match="names no revision"):
        parse_name(text)


@given(st.text(max_size=20))
def test_no_text_is_worse_than_a_mistake(text: str) -> None:
    with suppress(InvalidRequest):
        assert parse_name(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HEAD", Version(5, 9)),
        ("9", Version(5, 9)),
        ("2", Version(5, 2)),
        ("4.7", Version(4, 7)),
        ("HEAD~1", Version(5, 3)),
        ("HEAD~3", Version(4, 7)),
        ("3~2", Version(4, 7)),
    ],
)
def test_a_name_means_a_kept_revision(text: str, expected: Version) -> None:
    assert find_version(parse_name(text), KEPT, CURRENT) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("5", "revision 5 is not kept; kept are 4, 4.7 to 5.9"),
        ("7", "revision 7 of this epoch is not kept; do you mean 4.7?"),
        ("10", "there is no revision 10 yet; the newest is 5.9"),
        ("9.1", "there is no revision 9.1 yet"),
        ("HEAD~4", "there are 3 revisions before 5.9, not 4"),
        ("4.7~1", "there are 0 revisions before 4.7, not 1"),
    ],
)
def test_what_is_not_kept_is_told_with_what_is(text: str, told: str) -> None:
    with pytest.raises(OperationError) as raised:
        find_version(parse_name(text), KEPT, CURRENT)
    assert told in str(raised.value)


def test_the_newest_revision_is_there_although_its_manifest_was_not_listed_yet() -> None:
    assert find_version(parse_name("HEAD"), KEPT[:-1], CURRENT) == CURRENT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", NOW - timedelta(seconds=90)),
        ("30m", NOW - timedelta(minutes=30)),
        ("2h", NOW - timedelta(hours=2)),
        ("7d", NOW - timedelta(days=7)),
        ("4w", NOW - timedelta(weeks=4)),
        ("2026-01-09T10:00:00Z", datetime(2026, 1, 9, 10, tzinfo=UTC)),
        ("2026-01-09T10:00:00+02:00", datetime(2026, 1, 9, 8, tzinfo=UTC)),
        ("999999999w", datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_times_are_read(text: str, expected: datetime) -> None:
    assert parse_moment(text, NOW) == expected


def test_a_date_without_a_zone_is_of_this_machine() -> None:
    assert parse_moment("2026-01-09", NOW) == datetime(2026, 1, 9).astimezone()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14:03", datetime(2026, 1, 9, 14, 3)),
        ("9:03:10", datetime(2026, 1, 9, 9, 3, 10)),
        ("15:01", datetime(2026, 1, 8, 15, 1)),
    ],
)
def test_a_time_of_day_is_the_last_one_that_has_passed(text: str, expected: datetime) -> None:
    assert parse_moment(text, datetime(2026, 1, 9, 15).astimezone()) == expected.astimezone()


@pytest.mark.parametrize("text", ["", "h", "24:00", "1:2", "14:03:61", "2 hours", "-2h", "2026-13-01", "yesterday"])
def test_other_text_is_no_time(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no time: give a time ago such as"):
        parse_moment(text, NOW)
