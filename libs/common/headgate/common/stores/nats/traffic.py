"""What gateways say of their traffic, as plain messages: no stream takes them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

import msgspec
import nats.errors
from nats.aio.msg import Msg

from headgate.common.bus.connection import Bus
from headgate.common.deltas import escape_token
from headgate.common.errors import DecodeError, StoreUnavailable
from headgate.common.service.tasks import cancel
from headgate.common.traffic import (
    TAP_PREFIX,
    TRAFFIC_PREFIX,
    Tap,
    TrafficSummary,
    decode_summary,
    decode_tap,
    traffic_subject,
)

_WAITING, _WAITING_BYTES = 1024, 64 << 20
"""Of messages that a slow reader has not taken yet; what exceeds this is dropped."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class NatsTrafficBoard:
    """`TrafficBoard` on NATS."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def tell(self, summary: TrafficSummary) -> None:
        """Say what one worker's traffic was."""
        await self._say(traffic_subject(summary.table, summary.replica, summary.worker), summary.encode())

    async def tap(self, table: str, tap: Tap) -> None:
        """Ask the workers of a table to tell finished requests."""
        await self._say(f"{TAP_PREFIX}.{escape_token(table)}", msgspec.msgpack.encode(tap))

    async def _say(self, subject: str, payload: bytes) -> None:
        if not self._bus.is_connected:
            raise StoreUnavailable(f"not connected to NATS at {self._bus.address}")
        try:
            await self._bus.publish(subject, payload)
        except nats.errors.Error as error:
            raise StoreUnavailable(f"NATS takes no message: {error}") from error

    async def listen(self, table: str) -> AsyncGenerator[TrafficSummary]:
        """Yield what is said of a table's traffic from now on, for ever."""
        async with aclosing(self._heard(f"{TRAFFIC_PREFIX}.{escape_token(table)}.*.*", decode_summary)) as heard:
            async for subject, summary in heard:
                # A right to speak for one worker is none to speak for another.
                if subject == traffic_subject(summary.table, summary.replica, summary.worker):
                    yield summary

    async def taps(self, table: str) -> AsyncGenerator[Tap]:
        """Yield what is asked of the workers of a table, for ever."""
        async with aclosing(self._heard(f"{TAP_PREFIX}.{escape_token(table)}", decode_tap)) as heard:
            async for _, tap in heard:
                yield tap

    async def _heard(self, subject: str, decode: Callable[[bytes], T]) -> AsyncGenerator[tuple[str, T]]:
        waiting: asyncio.Queue[Msg] = asyncio.Queue(_WAITING)
        listening = asyncio.create_task(
            self._bus.listen(subject, waiting.put, messages=_WAITING, size=_WAITING_BYTES),
            name=f"listening to {subject}",
        )
        try:
            while True:
                message = await waiting.get()
                try:
                    yield message.subject, decode(message.data)
                except DecodeError as error:
                    _log.debug("a message is passed over", extra={"subject": message.subject, "reason": str(error)})
        finally:
            await cancel(listening)
