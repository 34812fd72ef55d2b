"""Values that several processes share and that end by themselves, such as sessions of browsers."""

import asyncio
from typing import Any

from headgate.common.errors import StoreUnavailable
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.target import Dial, RedisTarget
from headgate.common.stores.redis.wire import Word


class RedisValues:
    """Values in Redis. The connection is made with the first of them.

    All methods raise StoreError if Redis does not answer in time, or refuses.
    """

    def __init__(self, target: RedisTarget, timeout_s: float, dial_by: Dial | None = None) -> None:
        self._dial_by = dial_by
        self._target = target
        self._timeout_s = timeout_s
        self._link: asyncio.Future[RedisLink] | None = None

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key, None if there is none."""
        value: bytes | None = await self._ask("GET", key)
        return value

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Give a new key its value, for so many seconds."""
        await self._ask("SET", key, value, "PX", max(1, round(ttl_s * 1000)))

    async def replace(self, key: str, value: bytes, ttl_s: float) -> bool:
        """Give a key another value; False if it is gone, and then it stays so."""
        return await self._ask("SET", key, value, "XX", "PX", max(1, round(ttl_s * 1000))) is not None

    async def drop(self, key: str) -> None:
        """Remove a key."""
        await self._ask("DEL", key)

    async def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            await (await self._link).close()

    async def _ask(self, *words: Word) -> Any:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await (await self._linked()).ask(*words)
        except TimeoutError as error:
            raise StoreUnavailable(f"{self._target} did not answer in {self._timeout_s:g} s") from error

    async def _linked(self) -> RedisLink:
        if self._link is None:
            wait_s, dial_by = self._timeout_s, self._dial_by
            opening = RedisLink.connect(
                self._target, name="headgate-sessions", wait_s=wait_s, is_store=False, dial_by=dial_by
            )
            self._link = asyncio.ensure_future(opening)
        return await asyncio.shield(self._link)
