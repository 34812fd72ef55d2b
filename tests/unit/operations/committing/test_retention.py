"""Which revisions are kept."""

from datetime import UTC, datetime, timedelta

import pytest

from headgate.common.snapshot import Cause, Manifest, Version
from headgate.operations.committing.retention import Kept, Retention, expired

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def kept(revision: int, *, routine: bool = False, days: float = 0) -> Kept:
    return Kept(Version(1, revision), NOW - timedelta(days=days), routine)


def dropped(revisions: list[Kept], retention: Retention) -> list[int]:
    return [version.revision for version in expired(revisions, retention, NOW)]


def test_the_newest_are_kept_by_number() -> None:
    assert dropped([kept(number) for number in (9, 10, 8, 11)], Retention(2)) == [8, 9]


def test_endpoint_churn_pushes_no_other_change_out_of_history() -> None:
    revisions = [kept(1), kept(2), kept(3), *(kept(number, routine=True) for number in range(4, 10))]
    assert dropped(revisions, Retention(2)) == [1, 4, 5, 6, 7]


def test_age_drops_what_number_alone_would_keep() -> None:
    revisions = [kept(1, days=8), kept(2, days=7), kept(3, days=6)]
    assert dropped(revisions, Retention(10, timedelta(days=7))) == [1]


def test_without_an_age_nothing_is_too_old() -> None:
    assert dropped([kept(1, days=4000)], Retention(1)) == []


@pytest.mark.parametrize(
    ("kinds", "count", "expected"),
    [
        (["EndpointSlice", "Endpoints"], 2, True),
        (["EndpointSlice", "Ingress"], 2, False),
        (["EndpointSlice"], 2, False),  # what is not named may be anything
        ([], 0, False),
    ],
)
def test_a_revision_is_routine_if_endpoints_alone_led_to_it(kinds: list[str], count: int, expected: bool) -> None:
    causes = tuple(
        Cause(cluster="a", kind=kind, namespace="n", name="x", operation="apply", sequence=1) for kind in kinds
    )
    manifest = Manifest(table="t", version=Version(1, 1), created_at=NOW, causes=causes, cause_count=count, chunks=())
    assert Kept.of(manifest).is_routine is expected
