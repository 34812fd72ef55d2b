"""Connections of one worker that several plugins share, each open as long as one of them holds it."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar
from weakref import WeakValueDictionary, finalize


class Link(Protocol):
    """What can be closed."""

    async def close(self) -> None:
        """Close it for good."""


K = TypeVar("K", bound=Hashable)
L = TypeVar("L", bound=Link)


class HeldLink(Generic[L]):
    """What holds a link open."""

    __slots__ = ("__weakref__", "link")

    def __init__(self, link: L) -> None:
        self.link = link


class SharedLinks(Generic[K, L]):
    """Links by where they lead."""

    def __init__(self, make: Callable[[K], L]) -> None:
        self._make = make
        self._found: WeakValueDictionary[K, HeldLink[L]] = WeakValueDictionary()
        self._open: set[L] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def find(self, target: K) -> HeldLink[L]:
        """Return the link to somewhere, made if there is none."""
        held = self._found.get(target)
        if held is None:
            link = self._make(target)
            self._open.add(link)
            held = self._found[target] = HeldLink(link)
            finalize(held, self._retire, link).atexit = False
        return held

    @property
    def is_idle(self) -> bool:
        """Nothing is open or being closed."""
        return not self._open and not self._closing

    def _retire(self, link: L) -> None:
        """Close what nobody holds any more; at the end of the worker `close` has done so."""
        if link not in self._open:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._open.discard(link)
        task = loop.create_task(link.close(), name="closing a connection to Redis")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all."""
        links, self._open = self._open, set()
        await asyncio.gather(*(each.close() for each in links), *self._closing)
