"""Times as people write them: `2h` ago, a time of day, or a date."""

import re
from datetime import UTC, datetime, time, timedelta

from headgate.operations.errors import InvalidRequest

_AGO = re.compile(r"([0-9]{1,9})(s|m|h|d|w)")
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
FORMS = (
    "a time ago such as 90s, 30m, 2h, 7d or 4w, a time of day such as 14:03 or 14:03:10, "
    "or a date such as 2026-01-31 or 2026-01-31T09:30:00Z"
)


def parse_moment(text: str, now: datetime) -> datetime:
    """Return the time that a text means; without a time zone it is one of this machine.

    A time of day is the last one that has passed: before 14:03 `14:03` is of yesterday.

    Raises:
        InvalidRequest: it means none.
    """
    if (span := parse_span(text)) is not None:
        try:
            return now - span
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        if found := _CLOCK.fullmatch(text.strip()):
            return _last(time.fromisoformat(f"{found[0]:0>{8 if found[1] else 5}}"), now)
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone() if moment.tzinfo is None else moment
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(f"{text!r} is no time: give {FORMS}") from None


def parse_span(text: str) -> timedelta | None:
    """Return how long `90s`, `2h` or `4w` is; None: the text is none of these."""
    found = _AGO.fullmatch(text.strip())
    try:
        return timedelta(seconds=int(found[1]) * _SECONDS[found[2]]) if found else None
    except OverflowError:
        return timedelta.max


def _last(clock: time, now: datetime) -> datetime:
    today = datetime.combine(now.astimezone().date(), clock)
    moment = today.astimezone()
    return moment if moment <= now else (today - timedelta(days=1)).astimezone()
