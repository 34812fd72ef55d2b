"""Plugins that are packages of their own, announced by an entry point under the name that routes use."""

from importlib.metadata import entry_points
from typing import Final

ENTRY_POINT_GROUP: Final = "headgate.plugins"


def installed_names() -> frozenset[str]:
    """Return the names of those that are installed here; none of them is imported."""
    return frozenset(point.name for point in entry_points(group=ENTRY_POINT_GROUP))
