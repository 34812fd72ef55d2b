"""What the console knows, followed in the background.

What the stores do not answer stays as it was last, and is told to be old: a console without NATS is still a picture of
what was.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from headgate.common.errors import HeadgateError, NotPermitted, StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem
from headgate.common.snapshot import Version, decode_chunk
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_chunks
from headgate.common.table import Provenance, TableEntry
from headgate.common.traffic import TappedRequest, TrafficSummary
from headgate.console.commands import Commands
from headgate.console.live.gateway_site import GatewaySite
from headgate.console.live.served_table import ServedTable, read_table
from headgate.console.live.tapping import Taps
from headgate.operations.errors import InvalidRequest
from headgate.operations.status.report import Report, read_report
from headgate.operations.tables.revisions import current_manifest
from headgate.operations.traffic.history import TrafficHistory
from headgate.operations.traffic.window import TrafficWindow

_log = logging.getLogger(__name__)
WINDOW_S: Final = 10.0
"""Over which rates and percentiles of now are taken."""
_REPORT_S: Final = 2.0
"""Between two readings of who serves what, and of what is wrong."""
AGAIN_S: Final = 2.0
_KEPT_EVENTS: Final = 1000
"""Of what happened, for those who lost their connection and come back."""
KEPT_FAILED: Final = 2000
"""Requests that failed, and as many that were refused, that can be looked up."""
MAX_LISTENING: Final = 200
"""Who may listen at once: each page that is open does."""
_UNFIT_S: Final = 15.0
"""For which a worker's word about its endpoints counts."""


class Happening(NamedTuple):
    """Something that has changed."""

    number: int
    """Counts up."""
    kind: str
    """`revision`, `traffic` or `report`."""
    data: dict[str, Any]


class LiveView:
    """The table, its traffic, and what is known of those who serve it.

    Args:
        stores: to read from.
        table: its name.
        gateway: that is asked about requests.
        commands: that are asked about manifests, and about tables of the past.
    """

    def __init__(self, stores: Stores, table: str, gateway: GatewaySite, commands: Commands) -> None:
        self.stores, self.table, self.gateway, self.commands = stores, table, gateway, commands
        self.taps = Taps(stores.traffic, table)
        self.served: ServedTable | None = None
        """None: never published, or not read yet."""
        self.report: Report | None = None
        self.window = TrafficWindow(WINDOW_S)
        self.history = TrafficHistory()
        self.trouble = ""
        """Why what is shown may be old; empty if it is not."""
        self.traffic_trouble = ""
        """Why nothing is heard of traffic."""
        self.failed: deque[TappedRequest] = deque(maxlen=KEPT_FAILED)
        """The last requests that were answered with 500 and above, the newest last."""
        self.refused: deque[TappedRequest] = deque(maxlen=KEPT_FAILED)
        """The last that gateways refused; not all of them, where there are many."""
        self._told: dict[tuple[str, int], TrafficSummary] = {}
        self._entries: dict[str, tuple[TableEntry, ...]] = {}
        self._happenings: deque[Happening] = deque(maxlen=_KEPT_EVENTS)
        self._number = 0
        self._listening = 0
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        """Follow everything, until cancelled."""
        await asyncio.gather(self._follow_table(), self._hear(), self._look(), self._beat())

    # Happenings

    async def happen(self, kind: str, **data: Any) -> None:
        """Tell those who listen that something has changed."""
        self._number += 1
        self._happenings.append(Happening(self._number, kind, data))
        async with self._changed:
            self._changed.notify_all()

    async def happenings(self, after: int | None = None) -> AsyncGenerator[Happening]:
        """Yield what happens from now on, for ever.

        Args:
            after: number of the last one that is known: what is kept of those since comes first.

        Raises:
            InvalidRequest: as many listen already as may.
        """
        last = self._number if after is None or after > self._number else after
        if self._listening >= MAX_LISTENING:
            raise InvalidRequest(f"{MAX_LISTENING} listen already")
        self._listening += 1
        try:
            async with aclosing(self._since(last)) as happenings:
                async for one in happenings:
                    yield one
        finally:
            self._listening -= 1

    async def _since(self, last: int) -> AsyncGenerator[Happening]:
        while True:
            for one in [each for each in self._happenings if each.number > last]:
                last = one.number
                yield one
            async with self._changed:
                if self._number == last:
                    await self._changed.wait()

    # Following

    async def _follow_table(self) -> None:
        async for pointer in self.stores.snapshots.follow(self.table):
            if self.served is not None and pointer.version == self.served.manifest.version:
                continue
            # Or a later one; this one is not told again.
            while not await self._has_read(pointer.version):  # noqa: ASYNC110 - stores do not say when they are back
                await asyncio.sleep(AGAIN_S)

    async def _has_read(self, version: Version) -> bool:
        try:
            await self._read_table()
        except HeadgateError as error:
            trouble = f"revision {version} cannot be read: {error}"
            if trouble != self.trouble:
                _log.warning(trouble)
            self.trouble = trouble
            return False
        return True

    async def _read_table(self) -> None:
        _, manifest = await current_manifest(self.stores.snapshots, self.table)
        known = {digest: entries for digest, entries in self._entries.items()}
        missing = [name for name in manifest.chunks if name.digest not in known]
        read = await read_chunks(self.stores.snapshots, missing)
        for chunk in read:
            known[chunk.digest] = await asyncio.to_thread(decode_chunk, chunk.kind, chunk.content)
        self._entries = {name.digest: known[name.digest] for name in manifest.chunks}
        entries = [entry for name in manifest.chunks for entry in self._entries[name.digest]]
        self.served = await asyncio.to_thread(read_table, manifest, entries)
        self.trouble = ""
        await self.happen("revision", revision=self.served.version, at=manifest.created_at.isoformat())

    async def _hear(self) -> None:
        while True:
            try:
                async for summary in self.stores.traffic.listen(self.table):
                    self.traffic_trouble = ""
                    self.window.note(summary)
                    self.history.note(summary)
                    self.taps.take(summary)
                    self.failed.extend(one for one in summary.failed if one.status >= 500)
                    self.refused.extend(one for one in summary.failed if one.status < 500)
                    self._told[summary.replica, summary.worker] = summary
            except NotPermitted as error:
                self.traffic_trouble = str(error)
            except StoreError as error:
                self.traffic_trouble = str(error)
            await asyncio.sleep(AGAIN_S)

    async def _look(self) -> None:
        while True:
            try:
                self.report = await read_report(self.stores, self.table)
                self.trouble = "" if self.trouble.startswith("no answer") else self.trouble
            except HeadgateError as error:
                self.trouble = f"no answer from the stores: {error}"
            else:
                await self.happen("report", problems=len(self.report.problems), workers=len(self.report.heartbeats))
            await asyncio.sleep(_REPORT_S)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.history.roll()
            await self.happen("traffic")

    # Answers

    @property
    def told(self) -> Sequence[TrafficSummary]:
        """What each worker said last, as far as that is not long ago."""
        since = time.time() - _UNFIT_S
        self._told = {key: summary for key, summary in self._told.items() if summary.at >= since}
        return list(self._told.values())

    def problems_of(self, source: Provenance) -> Sequence[Problem]:
        """Return what is wrong with the object that an entry comes from."""
        updates = self.report.updates if self.report is not None else ()
        name = (source.cluster, source.namespace, source.name)
        return [
            problem
            for update in updates
            if update.kind == source.kind and (update.ref.cluster, update.ref.namespace, update.ref.name) == name
            for problem in update.problems
        ]

    @property
    def heartbeats(self) -> Sequence[Heartbeat]:
        """Workers that serve the table."""
        return self.report.heartbeats if self.report is not None else ()
