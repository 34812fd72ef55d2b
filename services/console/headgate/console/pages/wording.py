"""How figures look on pages."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from headgate.operations.traffic.history import Point
from headgate.operations.wording import count_of

WIDTH: Final = 120
HEIGHT: Final = 20


def rate(value: float) -> str:
    """Return requests a second: `12.3`, `4,560`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def milliseconds(value: float) -> str:
    """Return a duration: `4.1 ms`, `1.2 s`; nothing for none."""
    if not value:
        return ""
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.3g} ms"


def size(value: float) -> str:
    """Return bytes: `1.2 MB`."""
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} GB"


def share(part: float, whole: float) -> str:
    """Return a share in percent; nothing of nothing."""
    return f"{100 * part / whole:.1f}%" if part and whole else ""


def counted(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return how many of each kind changed in which way: `1 host added, 2 routes changed`."""
    return ", ".join(f"{count_of(number, kind)} {how}" for kind, ways in counts.items() for how, number in ways.items())


def value(held: Any) -> str:
    """Return a value of a table as JSON, without fields that say nothing."""
    if isinstance(held, str):
        return held
    return json.dumps(_said(held), ensure_ascii=False)


def _said(held: Any) -> Any:
    match held:
        case dict():
            found = {name: _said(each) for name, each in held.items()}
            return {name: each for name, each in found.items() if each not in (None, "", [], {}, 0)}
        case list():
            return [_said(each) for each in held]
        case _:
            return held


def clock(seconds: float) -> str:
    """Return a time of day, of seconds since 1970, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


class Line(NamedTuple):
    """A series as an image of 120 by 20."""

    path: str
    """Points of a line, as SVG has them."""
    marks: tuple[float, ...]
    """Where something failed, from the left."""
    title: str


def line_of(points: Sequence[Point], of: str = "requests") -> Line:
    """Return a series as a line, with marks where requests failed."""
    values = [float(getattr(point, of)) for point in points]
    top = max(values, default=0.0) or 1.0
    step = WIDTH / max(1, len(values) - 1)
    heights = (HEIGHT - 1 - value / top * (HEIGHT - 2) for value in values)
    path = " ".join(f"{index * step:.1f},{height:.1f}" for index, height in enumerate(heights))
    marks = tuple(round(index * step - 0.8, 1) for index, point in enumerate(points) if point.failed)
    return Line(path, marks, f"{of.replace('_', ' ')}, at most {top:.4g}")


def ago(moment: datetime | str | None) -> str:
    """Return how long ago something was: `3 min`."""
    if not moment:
        return ""
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    seconds = (datetime.now(UTC) - at).total_seconds()
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"
