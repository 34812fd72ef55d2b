"""What a look saw, after commits that came while it looked."""

from datetime import UTC, datetime

from headgate.common.snapshot import Pointer, Version
from headgate.translator.leading.surroundings import Surroundings

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def pointer(revision: int, epoch: int = 1) -> Pointer:
    return Pointer(table="default", version=Version(epoch, revision), manifest_digest="0" * 64, committed_at=NOW)


def look(found: Pointer | None, known: Pointer | None) -> Surroundings:
    return Surroundings(found, None, None, (), known.version if known else None)


def test_a_pointer_that_was_read_before_our_commit_is_not_one_that_went_back() -> None:
    assert look(pointer(4), known=pointer(4)).seen_by(pointer(5)).pointer == pointer(5)


def test_a_pointer_that_went_back_is_seen() -> None:
    assert look(pointer(3), known=pointer(4)).seen_by(pointer(4)).pointer == pointer(3)


def test_a_pointer_that_another_one_moved_is_seen() -> None:
    assert look(pointer(6), known=pointer(4)).seen_by(pointer(5)).pointer == pointer(6)


def test_a_pointer_that_is_gone_is_seen() -> None:
    assert look(None, known=pointer(4)).seen_by(pointer(5)).pointer is None
    assert look(None, known=None).seen_by(None).pointer is None
