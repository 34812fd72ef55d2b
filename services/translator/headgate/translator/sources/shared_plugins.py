"""Plugins that one dialect's objects hold for those of another, which only names them."""

from collections.abc import Callable
from typing import NamedTuple

from headgate.common.table import PluginUse
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.world.graph import Lookups


class SharedPlugins(NamedTuple):
    """What an object holds."""

    uses: tuple[PluginUse, ...] = ()
    backends: tuple[BackendUse, ...] = ()
    """Upstreams that these refer to."""
    fault: str = ""
    """Why requests cannot be served by it."""


FindPlugins = Callable[[Lookups, str, str, str | None], SharedPlugins]
"""Finds the plugins of an object by its namespace and name, for an object of a class."""


def no_plugins(lookups: Lookups, namespace: str, name: str, class_name: str | None) -> SharedPlugins:
    """Stand in where such objects are taken to be there and as they should be."""
    return SharedPlugins()
