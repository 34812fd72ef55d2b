"""What routes cost those who read them: what an object says once stands in each of its routes.

Counted in microseconds, as `headgate.common.effort` does, and apart from that: conditions are objects to be made, at
some five bytes of JSON each microsecond; of plugins and TLS the text has to be carried.
"""

from collections.abc import Iterable

from headgate.common.effort import MAX_EFFORT
from headgate.common.table import Condition, PluginUse
from headgate.common.table.base import Entry

MAX_COST = MAX_EFFORT
"""Of all routes of one object."""
TOO_COSTLY = (
    "is too much work: conditions, plugins and TLS stand in each route, and what one object has of them is bounded; "
    "spread its hosts and paths over several objects"
)
_CONDITION_BYTES = 5
_TEXT_BYTES = 50


def route_cost(when: Condition | None, plugins: Iterable[PluginUse]) -> int:
    """Return what a route takes beyond a plain one."""
    of_conditions = _size(when) // _CONDITION_BYTES if when is not None else 0
    return of_conditions + sum(map(_size, plugins)) // _TEXT_BYTES


def host_cost(tls: Entry) -> int:
    """Return what the TLS of a host takes."""
    return _size(tls) // _TEXT_BYTES


def _size(entry: Entry) -> int:
    return len(entry.model_dump_json(exclude_defaults=True))
