"""A lease: which one of several processes does the work, as it says itself; `election` says when to believe it."""

from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict


class Lease(BaseModel):
    """What the holder wrote. Its times are of its own clock: for people to read, and never compared with another."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    holder: str
    """Name of the process among its replicas; empty: given back."""
    duration_s: float
    """A lease that stands unchanged for this long, on the clock of the process that looks at it, may be taken."""
    acquired_at: AwareDatetime
    renewed_at: AwareDatetime
    transitions: int = 0
    """How often the lease was taken since it exists."""
    behind_since: AwareDatetime | None = None
    """When the oldest change was made that the holder has not dealt with; None: it is up to date, or does not say."""


class StoredLease(NamedTuple):
    """A lease as its store has it."""

    lease: Lease
    version: str
    """Another one after every change; says nothing but that."""


NOBODYS = Lease(
    holder="", duration_s=0.0, acquired_at=datetime.fromtimestamp(0, UTC), renewed_at=datetime.fromtimestamp(0, UTC)
)
"""What a store takes a lease for that it cannot read: a process that wants it writes it again."""


def translator_lease(table: str) -> str:
    """Return the name of the lease of the translator that commits a table."""
    return f"translator.{table}"
