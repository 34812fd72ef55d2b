"""Memory that plugins take beside requests: log entries and copies that wait, answers that are collected.

Each use of a plugin has a bound of its own; this one is for all of a worker together, so that many routes with many
loggers cannot fill it. Bodies of requests that wait count elsewhere (`proxy.exchange.buffers`), where a client gets an
error; here the plugin gives up the entry, the copy or the answer that finds no room.
"""

import logging
from typing import Final

from headgate.gateway.model.memory_budget import MemoryBudget, Shortage
from headgate.gateway.plugins.interface import PluginServices

MAX_KEPT: Final = 128 << 20
"""Bytes in one worker."""
_SHORTAGE: Final = Shortage(
    logging.getLogger(__name__),
    "plugins keep as many bytes as they may, so entries, copies or answers are dropped: "
    "look whether the services of loggers and mirrors answer",
    owner_field="plugin",
    limit_field="limit",
)


def plugin_budget(limit: int = MAX_KEPT) -> MemoryBudget:
    """Make a budget of so many bytes; owners are names of plugins."""
    return MemoryBudget(limit, _SHORTAGE)


class Allocation:
    """What one holder takes. It is given back by `release`, or with the last reference to this object."""

    __slots__ = ("_memory", "_owner", "size")

    def __init__(self, memory: MemoryBudget, owner: str) -> None:
        """Begin with nothing; `owner` is the plugin's name, for the log."""
        self._memory = memory
        self._owner = owner
        self.size = 0

    def grow(self, more: int) -> bool:
        """Take more bytes; False: there is no room. One holder gets no more than what stays free beside it."""
        if not self._memory.take(self.size, more, self._owner):
            return False
        self.size += more
        return True

    def shrink(self, less: int) -> None:
        """Give some of it back."""
        self.size -= less
        self._memory.release(less)

    def release(self) -> None:
        """Give all of it back."""
        self.shrink(self.size)

    def __del__(self) -> None:
        self.release()


def allocate(services: PluginServices, owner: str) -> Allocation:
    """Begin to count what a plugin keeps."""
    return Allocation(plugin_memory(services), owner)


def plugin_memory(services: PluginServices) -> MemoryBudget:
    """Return the memory of the worker; it lives as long as some plugin holds it."""
    return services.shared.get(("memory",), plugin_budget)
