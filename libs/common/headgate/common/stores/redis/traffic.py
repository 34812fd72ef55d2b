"""What gateways say of their traffic, by Redis' publish and subscribe: nothing of it is kept."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress

import msgspec
from redis.exceptions import RedisError, ResponseError

from headgate.common.deltas import escape_token
from headgate.common.errors import DecodeError, StoreError, StoreUnavailable
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.wire import Wire, Word, hang_up, refusal
from headgate.common.traffic import TAP_S, Tap, TrafficSummary, decode_summary, decode_tap

CHANNELS = "{headgate}:traffic:"
"""With the table behind it."""
TAPS = "{headgate}:taps:"
"""With the table behind it; a stream that is gone when nobody asks."""
_KEPT = 64
_AGAIN_S = 1.0
_LOOK_S = 1.0

_log = logging.getLogger(__name__)


class RedisTrafficBoard:
    """`TrafficBoard` on Redis."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def tell(self, summary: TrafficSummary) -> None:
        """Say what one worker's traffic was."""
        await self._link.ask("PUBLISH", CHANNELS + escape_token(summary.table), summary.encode())

    async def tap(self, table: str, tap: Tap) -> None:
        """Ask the workers of a table to tell finished requests."""
        key = TAPS + escape_token(table)
        await self._link.ask("XADD", key, "MAXLEN", "~", _KEPT, "*", "tap", msgspec.msgpack.encode(tap))
        await self._link.ask("PEXPIRE", key, int(TAP_S * 1000))

    async def taps(self, table: str) -> AsyncGenerator[Tap]:
        """Yield what is asked of the workers of a table, for ever. It is looked for: a connection for it is dearer."""
        last: Word = "0"
        while True:
            with suppress(StoreError):
                for _, messages in await self._link.ask("XREAD", "STREAMS", TAPS + escape_token(table), last) or ():
                    for place, (_, told) in messages:
                        last = place
                        with suppress(DecodeError):
                            yield decode_tap(told)
            await asyncio.sleep(_LOOK_S)

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
