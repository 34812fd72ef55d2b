"""Numbers and ages as the texts of problems and answers say them."""

from datetime import UTC, datetime


def count_of(number: int, noun: str) -> str:
    """Say how many: `1 error`, `3 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def age(moment: datetime, now: datetime | None = None) -> str:
    """Say how long ago something was: `12s`, `3m`, `5h`, `2d`."""
    seconds = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
