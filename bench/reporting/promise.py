"""A promise of the project, beside what a run measured."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

MEASURED = "Headgate"
"""Whose figures the promises are about."""


@dataclass(frozen=True)
class Promise:
    """One figure."""

    what: str
    promised: str
    measured: str
    is_kept: bool

    def cells(self) -> list[str]:
        """As a row of a table."""
        return [self.what, self.promised, self.measured, "kept" if self.is_kept else "missed"]


def at_least(what: str, least: float, measured: float) -> Promise:
    """Promise of a ratio."""
    return Promise(what, f"at least {least:g}", f"{measured:.3f}", measured >= least)


def none_of(what: str, count: int) -> Promise:
    """Promise that something never happens."""
    return Promise(what, "0", f"{count:,}", count == 0)


def below(what: str, bound: float, measured: float, unit: str) -> Promise:
    """Promise of less than a bound."""
    return Promise(what, f"under {bound:g} {unit}", f"{measured:.1f} {unit}", measured < bound)


class PartResult(Protocol):
    """What a part of a run found, a dataclass: its own text, promises and failures."""

    @property
    def failures(self) -> list[str]:
        """What went wrong; a run with any is not to be quoted."""

    @property
    def versions(self) -> dict[str, str]:
        """Proxy to its version, of those that were measured."""

    def promises(self) -> Iterable[Promise]:
        """Compare what was measured, and nothing that was not."""

    def markdown(self) -> str:
        """The part of the report, its heading of level two included."""
