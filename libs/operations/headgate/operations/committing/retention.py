"""Which revisions of a table are kept for history and rollback; pure.

Endpoints come and go by the minute, routes by the day. If every revision counted alike, an hour of rollouts would push
the last change of a route out of history, and that is the one that is wanted back. So revisions to which nothing
but endpoints led are counted apart from the others.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from headgate.common.snapshot import Manifest, Version


class Retention(NamedTuple):
    """How much history is kept."""

    revisions: int = 100
    """The newest so many of all, and the newest so many to which more than endpoints led."""
    age: timedelta | None = None
    """Older ones are dropped, however few there are; None: not by age."""


class Kept(NamedTuple):
    """What retention needs to know of a revision."""

    version: Version
    created_at: datetime
    is_routine: bool

    @classmethod
    def of(cls, manifest: Manifest) -> "Kept":
        """Take it from a manifest."""
        return cls(manifest.version, manifest.created_at, manifest.is_routine)


def expired(kept: Iterable[Kept], retention: Retention, now: datetime) -> list[Version]:
    """Return the revisions to drop, oldest first."""
    newest_first = sorted(kept, reverse=True)
    remarkable = [one for one in newest_first if not one.is_routine]
    spared = {*newest_first[: retention.revisions], *remarkable[: retention.revisions]}
    if retention.age is not None:
        spared = {one for one in spared if now - one.created_at <= retention.age}
    return [one.version for one in reversed(newest_first) if one not in spared]
