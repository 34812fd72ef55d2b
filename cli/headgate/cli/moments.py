"""Times on the command line: `2h` ago, or a date."""

import re
from datetime import UTC, datetime, timedelta

from headgate.cli.errors import UsageMistake

_AGO = re.compile(r"([0-9]{1,9})(s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
FORMS = "a time ago such as 90s, 30m, 2h, 7d or 4w, or a date such as 2026-01-31 or 2026-01-31T09:30:00Z"


def parse_moment(text: str, now: datetime) -> datetime:
    """Return the time that a text means; a date without a time zone is one of this machine.

    Raises:
        UsageMistake: it means none.
    """
    if found := _AGO.fullmatch(text.strip()):
        try:
            return now - timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone() if moment.tzinfo is None else moment
    except (ValueError, OverflowError, OSError):
        raise UsageMistake(f"{text!r} is no time: give {FORMS}") from None
