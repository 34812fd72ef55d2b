"""Finished requests that somebody wishes to see: `headgate tail`; and a few that failed or were refused, in any case.

While nobody does, a request costs a look at one attribute. Wishes are heard over the bus, hold for some seconds, and
what is told goes with the summaries of traffic: a bounded number of requests a second, and how many more there were.
A summary is told at once for the first request of a new wish: who has just begun to look does not wait for a second.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from headgate.common.stores import TrafficBoard
from headgate.common.traffic import MAX_FAILED, MAX_TAPPED, MAX_TAPS, TAP_S, Tap, TappedRequest
from headgate.gateway.proxy.reports import LogRecord
from headgate.gateway.proxy.stats import ProxyStats

_MAX_TEXT: Final = 1024
"""Bytes of a path, a reason and the like: a hundred requests have to fit into a message of NATS."""


class Tapping:
    """The wishes that one worker heeds, and what they have collected.

    Args:
        stats: of the proxy, which hands finished requests over while there are wishes.
        clock: monotonic seconds.
        draw: gives numbers from 0 to 1.
    """

    def __init__(
        self, stats: ProxyStats, clock: Callable[[], float] = time.monotonic, draw: Callable[[], float] = random.random
    ) -> None:
        self._stats, self._clock, self._draw = stats, clock, draw
        self._taps: dict[str, tuple[Tap, float]] = {}
        """By id, with the time until which they are heeded."""
        self._unanswered: set[str] = set()
        """Ids of wishes that no request was for yet."""
        self.found = asyncio.Event()
        """Set when a wish has its first request, until that is taken."""
        self._collected: list[TappedRequest] = []
        self._untold = 0
        self._failed: deque[TappedRequest] = deque(maxlen=MAX_FAILED)
        self._refused: list[TappedRequest] = []
        stats.failures = self.note_failure

    async def run(self, board: TrafficBoard, table: str) -> None:
        """Hear wishes until cancelled."""
        async for tap in board.taps(table):
            self.heed(tap)

    def heed(self, tap: Tap) -> None:
        """Heed a wish from now on, or for longer; one too many is passed over."""
        self._forget_old()
        if tap.id in self._taps or len(self._taps) < MAX_TAPS:
            if tap.id not in self._taps:
                self._unanswered.add(tap.id)
            self._taps[tap.id] = tap, self._clock() + TAP_S
            self._stats.tap = self.append

    def take(self) -> tuple[tuple[TappedRequest, ...], int]:
        """Return what was collected since this was asked last, and how many more requests there were."""
        collected, untold = tuple(self._collected), self._untold
        self._collected.clear()
        self._untold = 0
        self.found.clear()
        self._forget_old()
        return collected, untold

    def take_failed(self) -> tuple[TappedRequest, ...]:
        """Return the last requests that failed, and the first that were refused, since this was asked last."""
        failed = (*self._refused, *self._failed)
        self._failed.clear()
        self._refused.clear()
        return failed

    def note_failure(self, record: LogRecord, host: bytes) -> None:
        """Note a request that was answered with 500 or above, or that the gateway refused."""
        if record[5] >= 500:
            self._failed.append(_told(record, host, ()))
        elif len(self._refused) < MAX_FAILED:
            # The first ones: a flood of them costs nothing more, and hides no failure.
            self._refused.append(_told(record, host, ()))

    def _forget_old(self) -> None:
        now = self._clock()
        for old in [name for name, (_, until) in self._taps.items() if until < now]:
            del self._taps[old]
            self._unanswered.discard(old)
        if not self._taps:
            self._stats.tap = None

    def append(self, record: LogRecord, host: bytes) -> None:
        """Note a finished request, if a wish is for it."""
        taps = tuple(name for name, (tap, _) in self._taps.items() if self._is_meant(tap, record, host))
        if not taps:
            return
        if len(self._collected) >= MAX_TAPPED:
            self._untold += 1
            return
        self._collected.append(_told(record, host, taps))
        if not self._unanswered.isdisjoint(taps):
            self._unanswered.difference_update(taps)
            self.found.set()

    def _is_meant(self, tap: Tap, record: LogRecord, host: bytes) -> bool:
        _, client, _, target, _, status, _, seconds, _, request_id, route, *_ = record
        return (
            (not tap.statuses or status in tap.statuses or status // 100 in tap.statuses)
            and seconds >= tap.slower_than_s
            and (not tap.host or tap.host == _text(host))
            and (not tap.route or tap.route in route)
            and (not tap.path or _text(target).startswith(tap.path))
            and (not tap.client or tap.client == _text(client))
            and (not tap.request_id or tap.request_id == _text(request_id))
            and (tap.share >= 1 or self._draw() < tap.share)
        )


def _told(record: LogRecord, host: bytes, taps: tuple[str, ...]) -> TappedRequest:
    _, client, method, target, _, status, sent, seconds, _, request_id = record[:10]
    route, upstream, endpoint, notes, reason = record[10:]
    return TappedRequest(
        taps,
        time.time(),
        _text(method),
        _text(host),
        _text(target.partition(b"?")[0]),
        status,
        seconds,
        sent,
        _text(client),
        _text(request_id),
        route,
        upstream,
        endpoint,
        reason[:_MAX_TEXT],
        tuple(notes.attempts or ()),
        _text(notes.scheme),
    )


def _text(part: bytes) -> str:
    return part[:_MAX_TEXT].decode("utf-8", "replace")
