"""Waking what waits for changes of a store in this process."""

import asyncio


class Changes:
    """Wakes every waiter at every change."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Event] = set()

    def tell(self) -> None:
        """Wake them all."""
        for waiter in self._waiters:
            waiter.set()

    def listen(self) -> asyncio.Event:
        """Return an event that is set at every change, until it is forgotten."""
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        return waiter

    def forget(self, waiter: asyncio.Event) -> None:
        """Set an event no more."""
        self._waiters.discard(waiter)
