"""Memory that plugins take beside requests: log entries and copies that wait, answers that are collected.

Each use of a plugin has a bound of its own; this one is for all of a worker together, so that many routes with many
loggers cannot fill it. Bodies of requests that wait count elsewhere (`proxy.buffers`), where a client gets an error;
here the plugin gives up the entry, the copy or the answer that finds no room.
"""

import logging
import time
from typing import Final

from headgate.gateway.plugins.interface import PluginServices

MAX_KEPT: Final = 128 << 20
"""Bytes in one worker."""
_REPEAT_S: Final = 60.0

_log = logging.getLogger(__name__)


class PluginMemory:
    """What all plugins of a worker take, in bytes."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self.limit = limit
        self.used = 0
        self._told_at = -_REPEAT_S

    def tell(self, owner: str) -> None:
        """Log that there was no room, once in a while."""
        now = time.monotonic()
        if now - self._told_at >= _REPEAT_S:
            self._told_at = now
            _log.warning(
                "plugins keep as many bytes as they may, so entries, copies or answers are dropped: "
                "look whether the services of loggers and mirrors answer",
                extra={"plugin": owner, "held": self.used, "limit": self.limit},
            )


class Allocation:
    """What one holder takes. It is given back by `release`, or with the last reference to this object."""

    __slots__ = ("_memory", "_owner", "size")

    def __init__(self, memory: PluginMemory, owner: str) -> None:
        """Begin with nothing; `owner` is the plugin's name, for the log."""
        self._memory = memory
        self._owner = owner
        self.size = 0

    def grow(self, more: int) -> bool:
        """Take more bytes; False: there is no room. One holder gets no more than what stays free beside it."""
        if self.size + 2 * more > self._memory.limit - self._memory.used:
            self._memory.tell(self._owner)
            return False
        self.size += more
        self._memory.used += more
        return True

    def shrink(self, less: int) -> None:
        """Give some of it back."""
        self.size -= less
        self._memory.used -= less

    def release(self) -> None:
        """Give all of it back."""
        self.shrink(self.size)

    def __del__(self) -> None:
        self.release()


def allocate(services: PluginServices, owner: str) -> Allocation:
    """Begin to count what a plugin keeps."""
    return Allocation(plugin_memory(services), owner)


def plugin_memory(services: PluginServices) -> PluginMemory:
    """Return the memory of the worker; it lives as long as some plugin holds it."""
    return services.shared.get(("memory",), PluginMemory)
