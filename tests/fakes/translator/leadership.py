"""A leadership that a test gives and takes away."""

import asyncio


class Seat:
    """`Leadership` by hand; nobody leads at first."""

    def __init__(self, *, is_leader: bool = False) -> None:
        self.is_leader = False
        self.term = 0
        self._leading, self._following = asyncio.Event(), asyncio.Event()
        self._following.set()
        if is_leader:
            self.take()

    def take(self) -> None:
        """Lead from now on."""
        self.is_leader = True
        self.term += 1
        self._leading.set()
        self._following.clear()

    def lose(self) -> None:
        """Follow from now on, and know it."""
        self.is_leader = False
        self._following.set()
        self._leading.clear()

    def expire(self) -> None:
        """Lead no more without having noticed: nobody is told, as in a process that stood still and goes on."""
        self.is_leader = False

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None:
        self.lose()

    async def until_leading(self) -> None:
        await self._leading.wait()

    async def until_following(self) -> None:
        await self._following.wait()
