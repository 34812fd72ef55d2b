"""What gateways say of their traffic, as plain messages: no stream takes them."""

import asyncio
import logging
from collections.abc import AsyncGenerator

import nats.errors
from nats.aio.msg import Msg

from headgate.common.bus.connection import Bus
from headgate.common.deltas import escape_token
from headgate.common.errors import DecodeError, StoreUnavailable
from headgate.common.service.tasks import cancel
from headgate.common.traffic import TRAFFIC_PREFIX, TrafficSummary, decode_summary, traffic_subject

_WAITING, _WAITING_BYTES = 1024, 64 << 20
"""Of summaries that a slow reader has not taken yet; what exceeds this is dropped."""

_log = logging.getLogger(__name__)


class NatsTrafficBoard:
    """`TrafficBoard` on NATS."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def tell(self, summary: TrafficSummary) -> None:
        """Say what one worker's traffic was."""
        if not self._bus.is_connected:
            raise StoreUnavailable(f"not connected to NATS at {self._bus.address}")
        subject = traffic_subject(summary.table, summary.replica, summary.worker)
        try:
            await self._bus.publish(subject, summary.encode())
        except nats.errors.Error as error:
            raise StoreUnavailable(f"NATS takes no message: {error}") from error

    async def listen(self, table: str) -> AsyncGenerator[TrafficSummary]:
        """Yield what is said of a table's traffic from now on, for ever."""
        waiting: asyncio.Queue[Msg] = asyncio.Queue(_WAITING)
        subject = f"{TRAFFIC_PREFIX}.{escape_token(table)}.*.*"
        listening = asyncio.create_task(
            self._bus.listen(subject, waiting.put, messages=_WAITING, size=_WAITING_BYTES), name="listening to traffic"
        )
        try:
            while True:
                message = await waiting.get()
                summary = _read(message)
                if summary is not None:
                    yield summary
        finally:
            await cancel(listening)


def _read(message: Msg) -> TrafficSummary | None:
    try:
        summary = decode_summary(message.data)
    except DecodeError as error:
        _log.debug("a message is passed over", extra={"subject": message.subject, "reason": str(error)})
        return None
    # A right to speak for one worker is none to speak for another.
    is_theirs = message.subject == traffic_subject(summary.table, summary.replica, summary.worker)
    return summary if is_theirs else None
