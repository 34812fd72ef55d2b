"""Durations as Go writes them: `1h2m3.5s`, `250ms`."""

from typing import Final

_SMALL: Final = (("ms", 1e-3), ("us", 1e-6))


def duration_text(seconds: float) -> str:
    """Return seconds as Go's `Duration` prints them, to a microsecond; 0 is `0s`."""
    seconds = round(seconds, 6)
    for unit, size in _SMALL:
        if size <= seconds < size * 1000:
            return f"{seconds / size:.6g}{unit}"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:.6f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
