"""What a follower of a table's pointer does with announcements that come late or from an older copy of the store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime

from fakes.virtual_time import in_virtual_time
from headgate.common.snapshot import Pointer, Version
from headgate.common.stores.pointers import Tell, follow_pointer

COMMITTED_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
WITHOUT_DISTURBANCES: Callable[[Callable[[], None]], Callable[[], None]] = lambda _: lambda: None  # noqa: E731


def pointer(revision: int, digest: str = "d") -> Pointer:
    return Pointer(table="default", version=Version(1, revision), manifest_digest=digest, committed_at=COMMITTED_AT)


class Store:
    """Holds one pointer; announces only what the test says."""

    def __init__(self, stored: Pointer) -> None:
        self.stored = stored
        self.reads = 0
        self._tell: asyncio.Future[Tell] = asyncio.get_running_loop().create_future()

    async def read(self, _table: str) -> Pointer:
        self.reads += 1
        return self.stored

    async def watch(self, _table: str, tell: Tell) -> None:
        self._tell.set_result(tell)
        await asyncio.Event().wait()

    async def announce(self, announced: Pointer) -> None:
        (await self._tell)(announced)

    def follow(self) -> AsyncIterator[Pointer]:
        return follow_pointer("default", self.read, self.watch, WITHOUT_DISTURBANCES)


@in_virtual_time
async def test_an_announcement_that_comes_late_takes_nobody_back() -> None:
    store = Store(pointer(59))
    async with aclosing(store.follow()) as pointers, asyncio.timeout(5):  # type: ignore[type-var]
        assert (await anext(pointers)).version == Version(1, 59)
        following = asyncio.ensure_future(anext(pointers))
        await store.announce(pointer(58))
        await asyncio.sleep(0.01)
        await store.announce(pointer(60))
        assert (await following).version == Version(1, 60)


async def test_a_store_that_went_back_to_an_older_copy_is_followed() -> None:
    store = Store(pointer(59))
    async with aclosing(store.follow()) as pointers, asyncio.timeout(5):  # type: ignore[type-var]
        await anext(pointers)
        store.stored = pointer(40)
        await store.announce(pointer(40))
        assert (await anext(pointers)).version == Version(1, 40)


async def test_the_same_version_of_another_content_is_followed() -> None:
    store = Store(pointer(59))
    async with aclosing(store.follow()) as pointers, asyncio.timeout(5):  # type: ignore[type-var]
        await anext(pointers)
        store.stored = pointer(59, "other")
        await store.announce(pointer(59, "other"))
        assert (await anext(pointers)).manifest_digest == "other"


async def test_news_and_echoes_need_no_reading() -> None:
    store = Store(pointer(59))
    async with aclosing(store.follow()) as pointers, asyncio.timeout(5):  # type: ignore[type-var]
        await anext(pointers)
        await store.announce(pointer(59))
        await store.announce(pointer(60))
        await anext(pointers)
    assert store.reads == 1
