"""What gateways say of their traffic, by Redis' publish and subscribe: nothing of it is kept."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress

from redis.exceptions import RedisError, ResponseError

from headgate.common.deltas import escape_token
from headgate.common.errors import DecodeError, StoreUnavailable
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.wire import Wire, hang_up, refusal
from headgate.common.traffic import TrafficSummary, decode_summary

CHANNELS = "{headgate}:traffic:"
"""With the table behind it."""
_AGAIN_S = 1.0

_log = logging.getLogger(__name__)


class RedisTrafficBoard:
    """`TrafficBoard` on Redis."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def tell(self, summary: TrafficSummary) -> None:
        """Say what one worker's traffic was."""
        await self._link.ask("PUBLISH", CHANNELS + escape_token(summary.table), summary.encode())

    async def listen(self, table: str) -> AsyncGenerator[TrafficSummary]:
        """Yield what is said of a table's traffic from now on, for ever."""
        while True:
            with suppress(StoreUnavailable, RedisError, OSError):
                wire = await self._link.dial()
                try:
                    async for summary in _heard(wire, CHANNELS + escape_token(table)):
                        yield summary
                finally:
                    await hang_up(wire)
            await asyncio.sleep(_AGAIN_S)


async def _heard(wire: Wire, channel: str) -> AsyncGenerator[TrafficSummary]:
    await wire.send_packed_command(wire.pack_command("SUBSCRIBE", channel))
    while True:
        try:
            kind, _, told = await wire.read_response(disable_decoding=True)
        except ResponseError as error:
            raise refusal(error) from error
        if kind != b"message":
            continue
        try:
            yield decode_summary(told)
        except DecodeError as error:
            _log.debug("a message is passed over", extra={"channel": channel, "reason": str(error)})
