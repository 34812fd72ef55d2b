"""The translator's loop: the only place where the pure core meets time and the bus.

It says when something happens; `leading.inputs` knows what was read and what must still be waited for, and
`leading.output` what is made of it.
"""

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from typing import NamedTuple

from headgate.common.errors import Conflict, StoreError
from headgate.common.heartbeats import COUNTING_INTERVAL_S
from headgate.common.leadership.leadership import Leadership, Sole, run_while_leading
from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import run_together
from headgate.common.service.telemetry import span_from
from headgate.common.snapshot import Pointer
from headgate.common.stores import (
    DeltaLogReader,
    DeltaLogWriter,
    HeartbeatBoard,
    LastGoodLog,
    LogBatch,
    LogReplay,
    SnapshotStore,
    StatusBoard,
)
from headgate.translator import metrics
from headgate.translator.composition import DIALECTS
from headgate.translator.leading.inputs import Inputs
from headgate.translator.leading.leadership import Turn
from headgate.translator.leading.log_confirmation import AskWatchers
from headgate.translator.leading.output import SLICE_S, Output
from headgate.translator.leading.surroundings import Surroundings
from headgate.translator.settings import TranslatorSettings
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)

LOOK_AROUND_S = 5.0
FIRST_LOOK_S = 0.1
"""After a revision, for how far gateways have got with it; each further look takes twice as long to come."""
LONGEST_REST_S = 0.1
"""After a revision we rest as long as it was work, at most this long: churn of small changes never takes more than half
of a core, and a change that comes after a large one need not wait for long."""
INBOX = 16
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 5.0


class Remembered(NamedTuple):
    """Objects of one cluster that have a status from before: some may be no longer ours, or have changed since."""

    refs: tuple[ObjectRef, ...]


class Stores(NamedTuple):
    """What the loop needs of the stores."""

    log: DeltaLogReader
    last_good: LastGoodLog
    snapshots: SnapshotStore
    statuses: StatusBoard
    heartbeats: HeartbeatBoard
    ask_watchers: AskWatchers | None = None
    """None where nobody can be asked, and where the log never is an older copy."""
    log_writer: DeltaLogWriter | None = None
    """For decisions about clusters that the log lost; None: nothing is ever written back."""


Item = LogReplay | LogBatch | Surroundings | Remembered | Pointer | Turn


class TranslatorLoop:
    """Follows the log and keeps one table up to date, and while it leads the stored table and the statuses too."""

    def __init__(self, stores: Stores, settings: TranslatorSettings, leadership: Leadership | None = None) -> None:
        """Prepare; without a leadership this translator is the only one."""
        self._stores = stores
        self._settings = settings
        self._leadership = leadership = leadership or Sole()
        self._term = leadership.term if leadership.is_leader else 0
        """Term of the last turn that was taken."""
        self._translation = self._new_translation()
        self.inputs = Inputs(stores.log, stores.log_writer, stores.ask_watchers, settings, self._translation)
        self.output = Output(
            *(stores.snapshots, stores.heartbeats, stores.statuses, stores.last_good, settings),
            may_write=lambda: leadership.is_leader,
            on_board=self._take_board,
        )
        self._inbox: asyncio.Queue[Item] = asyncio.Queue(INBOX)
        self._due: float | None = None
        self._next_at = float("-inf")
        """When the next revision may be, at the earliest."""
        self._pause_s = _FIRST_PAUSE_S
        self._is_current = False
        self._is_settled = False
        """Whether what was translated last is what was published last."""
        self._known: frozenset[str] = frozenset()
        metrics.OLDEST_UNCOMMITTED.set_function(lambda: self.inputs.uncommitted_s)

    def _new_translation(self) -> Translation:
        settings = self._settings
        return Translation(DIALECTS, settings.translation, settings.selection, settings.table, settings.boundaries)

    # What others ask

    def readiness(self) -> str | None:
        """Readiness check: None once a table was published, found to be current already, or would be if we led."""
        return None if self._is_current else self.inputs.obstacle(leads=self.leads) or "no table is published yet"

    @property
    def awaits_first_cluster(self) -> bool:
        """Whether no cluster is announced, and neither store nor gateways have a table: all is done that can be."""
        publisher, intake = self.output.publisher, self.inputs.intake
        is_new = publisher.version is None and publisher.served is None
        return is_new and intake.is_replayed and not (self._translation.active_clusters or intake.incomplete())

    @property
    def translation(self) -> Translation:
        """The translation of now; another one after the log began anew."""
        return self._translation

    @property
    def leads(self) -> bool:
        """Whether it is our turn now, and we have begun it."""
        return self._leadership.is_leader and self._term == self._leadership.term

    @property
    def is_idle(self) -> bool:
        """Whether all that was read is published or, by a translator that follows, ready to be."""
        if self._due is not None or self.inputs.causes.count or not self._is_current:
            return False
        if not self._leadership.is_leader:
            return True
        return self.leads and self._is_settled and not self.output.statuses.pending

    def knows(self, cluster: str) -> bool:
        """Whether everything of a cluster has been translated once."""
        return cluster in self._known

    # What runs

    async def run(self) -> None:
        """Run until cancelled."""
        await self._read_store()
        await run_together(
            self._follow_log(),
            self._follow_pointer(),
            self.output.lookout.run(self._look, lambda: FIRST_LOOK_S, self._longest_pause),
            run_while_leading(self._leadership, self._lead),
            self._work(),
        )

    async def _read_store(self) -> None:
        publisher = self.output.publisher
        while True:
            try:
                surroundings = await self.output.lookout.look()
                await publisher.read()
            except StoreError as error:
                logger.warning("waiting for the snapshot store", extra={"reason": str(error)})
                await asyncio.sleep(self._next_pause())
            else:
                self._take_surroundings(surroundings)
                self.inputs.require(publisher.clusters)
                return

    async def _follow_log(self) -> None:
        current = self.output.publisher.manifest
        async for item in self._stores.log.follow(current.last_read if current else None):
            await self._inbox.put(item)

    async def _follow_pointer(self) -> None:
        async for pointer in self._stores.snapshots.follow(self._settings.table):
            if pointer.version != self.output.publisher.version:
                await self._inbox.put(pointer)

    async def _look(self) -> None:
        try:
            await self._inbox.put(await self.output.lookout.look())
        except StoreError as error:
            logger.debug("gateways and store cannot be seen", extra={"reason": str(error)})

    def _longest_pause(self) -> float:
        """Seconds between two looks around."""
        return min(COUNTING_INTERVAL_S, LOOK_AROUND_S) if self.output.serving.is_stepping else LOOK_AROUND_S

    async def _lead(self) -> None:
        output = self.output
        output.begin_term(self._translation)
        await self._inbox.put(Turn())
        await run_together(output.statuses.run(), output.recorder.run(), output.collect_garbage())

    async def _take_board(self, refs: Iterable[ObjectRef]) -> None:
        await self._inbox.put(Remembered(tuple(refs)))

    async def _work(self) -> None:
        # What can happen, one at a time:
        #   1. the log begins anew (at the start, or because it was lost): a new world, the published table stays;
        #   2. messages of the log: into the world; the first change is due at once, further ones after a rest;
        #   3. news of gateways and store: addresses for statuses; a store that was lost or went back is due at once;
        #   4. somebody else moved the pointer: another translator, or a person who pins or unpins the table;
        #   5. it is our turn to commit and to post: nothing that was known of the store counts any more;
        #   6. something is due: translate and, if we lead, commit, then post; what fails is due again after a pause.
        while True:
            item = await self._next_item()
            match item:
                case None:
                    await self._publish_if_possible()
                case LogReplay():
                    self._begin(item)
                case Surroundings():
                    self._take_surroundings(item)
                    await self._post_again()
                case Remembered():
                    self.output.statuses.touch(item.refs)
                    await self._post_again()
                case Pointer():
                    self._take_pointer(item)
                case Turn():
                    self._take_turn()
                    await self._post_again()
                case LogBatch():
                    if self.inputs.receive(item):
                        self._schedule()

    async def _next_item(self) -> Item | None:
        """Return the next item; None when something is due. Due work does not wait for a log that never pauses."""
        now = time.monotonic()
        if self._due is not None and self._due <= now and (self._inbox.empty() or self._due < now - SLICE_S):
            return None
        try:
            async with asyncio.timeout(None if self._due is None else max(0.0, self._due - now)):
                return await self._inbox.get()
        except TimeoutError:
            return None

    # What happens

    def _begin(self, replay: LogReplay) -> None:
        publisher, is_another = self.output.publisher, self.inputs.is_another_log(replay)
        if replay.went_back:
            publisher.outdate()
        if is_another:
            publisher.distrust()  # tables are lost with the log more often than not
        self._translation = self._new_translation()
        self.inputs.begin(replay, self._translation, publisher.manifest, is_current=self._is_current)
        self.output.begin_translation(is_board_lost=is_another)
        self._due = None
        self._known = frozenset()

    def _schedule(self, not_before: float = 0.0) -> None:
        due = max(time.monotonic(), self._next_at, not_before)
        self._due = due if self._due is None else min(self._due, due)

    def _take_surroundings(self, found: Surroundings) -> None:
        inputs, output = self.inputs, self.output
        known, seen = output.publisher.version, found.pointer.version if found.pointer else None
        inputs.compare(found)
        output.observe(found)
        if self.leads and known is not None and seen is not None and seen > known:
            self._stand_back()  # the watch says nothing of a pointer that is known from here already
        if inputs.catch_up.is_waiting:
            inputs.catch_up.look()
            self._schedule()
        if inputs.confirmation.is_open or output.publisher.is_behind or output.serving.is_stepping or not self.leads:
            self._schedule()

    def _take_pointer(self, pointer: Pointer) -> None:
        publisher = self.output.publisher
        self.inputs.confirmation.saw(pointer.version)
        # Who follows looks at the pointer now and then, and again when its turn comes.
        if self.leads and pointer.version != publisher.version:
            publisher.observe(pointer, None)
            self._stand_back()

    def _take_turn(self) -> None:
        if self._term == self._leadership.term:
            return
        self._term = self._leadership.term
        self.output.publisher.distrust()
        self.output.serving.begin_turn()
        self.inputs.catch_up.begin()
        self._due = time.monotonic()

    def _stand_back(self) -> None:
        """Somebody else committed: go on only when we have read of the log what they may have read."""
        self.inputs.catch_up.begin()
        self._schedule(not_before=time.monotonic() + random.uniform(0.0, 0.05))  # noqa: S311 - not a secret

    # What is due

    async def _publish_if_possible(self) -> None:
        self._due = None
        inputs = self.inputs
        try:
            if self.leads and inputs.catch_up.must_ask:
                found = await self.output.lookout.look()
                inputs.compare(found)
                self.output.publisher.observe(found.pointer, found.served)
                await inputs.catch_up.ask(inputs.intake.incarnation)
            await inputs.look_for_confirmation()
            wait_s = inputs.recovery_wait_s(self.output.publisher, is_current=self._is_current)
            if (obstacle := inputs.obstacle(leads=self.leads)) is not None:
                logger.debug("not published", extra={"reason": obstacle})
            elif wait_s > 0:
                self._schedule(not_before=time.monotonic() + wait_s)
            else:
                await self._publish()
        except Conflict:
            metrics.CONFLICTS.inc()
            self._stand_back()
        except StoreError as error:
            metrics.STORE_FAILURES.inc()
            logger.warning("a revision waits for the store", extra={"reason": str(error)})
            self._schedule(not_before=time.monotonic() + self._next_pause())

    async def _publish(self) -> None:
        inputs, output, translation = self.inputs, self.output, self._translation
        self._next_at = time.monotonic() + self._settings.debounce_ms / 1000
        worked_s = time.process_time()
        with span_from(inputs.causes.traceparent, "translate"):
            await output.recorder.recall(translation)
            await output.serving.adopt(output.publisher, is_current=self._is_current, leads=self.leads)
            if self.leads and output.publisher.is_behind:
                await inputs.confirmation.check(inputs.intake.last_read)
            if await inputs.write_back_decisions(output.publisher.manifest, leads=self.leads):
                self._stand_back()
                return
            self._is_settled = False
            await output.translate(translation)
            self._known = translation.active_clusters
            if self.leads:
                inputs.catch_up.end()
                await output.commit(translation, inputs)
                await self._settle()
            else:
                output.stay_warm(translation, inputs)
                self._note_current()
        worked_s = time.process_time() - worked_s
        self._next_at = max(self._next_at, time.monotonic() + min(worked_s, LONGEST_REST_S))

    async def _settle(self) -> None:
        """Say what is to say of a revision that is committed."""
        self._is_settled = True
        self._note_current()
        traceparent = self.inputs.causes.traceparent
        self.inputs.begin_causes(self.output.publisher.manifest)
        self.output.recorder.look_after(self._translation.world)
        await self.output.post(self._translation, traceparent)

    def _note_current(self) -> None:
        self._pause_s = _FIRST_PAUSE_S
        self._is_current = True
        self.inputs.end_recovery(self.output.publisher)
        self.output.measure(self._translation)

    async def _post_again(self) -> None:
        """Say what is to say of what was published last; what is not published yet is reported when it is."""
        if self.leads and self._is_settled:
            await self.output.post(self._translation, None)

    def _next_pause(self) -> float:
        pause_s, self._pause_s = self._pause_s, min(_LAST_PAUSE_S, self._pause_s * 2)
        return pause_s * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
