"""The translator's loop: the only place where the pure core meets time and the bus.

It says when something happens. `leading.inputs` knows what was read and what must still be waited for, `leading.build`
makes revisions of it, and `leading.output` knows where they go.
"""

import asyncio
import logging
import time
from typing import NamedTuple

from headgate.common.errors import Conflict, StoreError
from headgate.common.leadership.leadership import Leadership, Sole
from headgate.common.service.tasks import run_together
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
from headgate.translator.leading.build import Build
from headgate.translator.leading.feeds import Feeds, Remembered
from headgate.translator.leading.inputs import Inputs
from headgate.translator.leading.leadership import Turn
from headgate.translator.leading.log_confirmation import AskWatchers
from headgate.translator.leading.output import Output
from headgate.translator.leading.schedule import Schedule
from headgate.translator.leading.surroundings import Surroundings
from headgate.translator.settings import TranslatorSettings
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)


class Stores(NamedTuple):
    """What the loop needs of the stores."""

    log: DeltaLogReader
    last_good: LastGoodLog
    snapshots: SnapshotStore
    statuses: StatusBoard
    heartbeats: HeartbeatBoard
    ask_watchers: AskWatchers | None = None
    """None where no watcher can be asked, and where the log never is an older copy."""
    log_writer: DeltaLogWriter | None = None
    """For decisions about clusters that the log lost; None: nothing is ever written back."""


class TranslatorLoop:
    """Follows the log and keeps one table up to date, and while it leads the stored table and the statuses too."""

    def __init__(self, stores: Stores, settings: TranslatorSettings, leadership: Leadership | None = None) -> None:
        """Prepare; without a leadership this translator is the only one."""
        self._stores = stores
        self._settings = settings
        self._leadership = leadership = leadership or Sole()
        self._term = leadership.term if leadership.is_leader else 0
        """Term of the last turn that was taken."""
        translation = self._new_translation()
        self.inputs = Inputs(stores.log, stores.log_writer, stores.ask_watchers, settings, translation)
        self._feeds = Feeds(stores.log, stores.snapshots, settings.table, leadership)
        self.output = Output(
            *(stores.snapshots, stores.heartbeats, stores.statuses, stores.last_good, settings),
            may_write=lambda: leadership.is_leader,
            on_board=self._feeds.take_board,
        )
        self._build = Build(self._new_translation, translation, self.inputs, self.output, lambda: self.leads)
        self.schedule = Schedule(settings.debounce_ms / 1000)
        metrics.OLDEST_UNCOMMITTED.set_function(lambda: self.inputs.uncommitted_s)

    def _new_translation(self) -> Translation:
        settings = self._settings
        return Translation(DIALECTS, settings.translation, settings.selection, settings.table, settings.boundaries)

    # What others ask

    def readiness(self) -> str | None:
        """Readiness check: None once a table was published, found to be current already, or would be if we led."""
        return None if self._build.is_current else self.inputs.obstacle(leads=self.leads) or "no table is published yet"

    @property
    def awaits_first_cluster(self) -> bool:
        """Whether no cluster is announced, and neither store nor gateways have a table: all is done that can be."""
        publisher, intake = self.output.publisher, self.inputs.intake
        is_new = publisher.version is None and publisher.served is None
        return is_new and intake.is_replayed and not (self.translation.active_clusters or intake.incomplete())

    @property
    def translation(self) -> Translation:
        """The translation of now; another one after the log began again."""
        return self._build.translation

    @property
    def leads(self) -> bool:
        """Whether it is our turn now, and we have begun it."""
        return self._leadership.is_leader and self._term == self._leadership.term

    @property
    def is_idle(self) -> bool:
        """Whether all that was read is published or, by a translator that follows, ready to be."""
        if not self.schedule.is_empty or self.inputs.causes.count or not self._build.is_current:
            return False
        if not self._leadership.is_leader:
            return True
        return self.leads and self._build.is_settled and not self.output.statuses.pending

    def knows(self, cluster: str) -> bool:
        """Whether everything of a cluster has been translated once."""
        return cluster in self._build.known

    # What runs

    async def run(self) -> None:
        """Run until cancelled."""
        await self._read_store()
        feeds = self._feeds.run(self.output, lambda: self.output.begin_term(self.translation))
        await run_together(feeds, self._work())

    async def _read_store(self) -> None:
        publisher = self.output.publisher
        while True:
            try:
                surroundings = await self.output.lookout.look()
                await publisher.read()
            except StoreError as error:
                logger.warning("waiting for the snapshot store", extra={"reason": str(error)})
                await asyncio.sleep(self.schedule.next_pause())
            else:
                self._take_surroundings(surroundings)
                self.inputs.require(publisher.clusters)
                return

    async def _work(self) -> None:
        # What can happen, one at a time:
        #   1. the log begins again (at the start, or because it was lost): a new world, the published table stays;
        #   2. messages of the log: into the world; the first change is due at once, further ones after a rest;
        #   3. news of gateways and store: addresses for statuses; a store that was lost or went back is due at once;
        #   4. somebody else moved the pointer: another translator, or a person who pins or unpins the table;
        #   5. it is our turn to commit and to post: nothing that was known of the store counts any more;
        #   6. something is due: translate and, if we lead, commit, then post; what fails is due again after a pause.
        while True:
            item = await self.schedule.next_of(self._feeds.inbox)
            match item:
                case None:
                    await self._publish_if_possible()
                case LogReplay():
                    self._build.begin(item)
                    self.schedule.clear()
                case Surroundings():
                    self._take_surroundings(item)
                    await self._build.post_again()
                case Remembered():
                    self.output.statuses.touch(item.refs)
                    await self._build.post_again()
                case Pointer():
                    self._take_pointer(item)
                case Turn():
                    self._take_turn()
                    await self._build.post_again()
                case LogBatch():
                    if self.inputs.receive(item):
                        self._build.is_settled = False
                        self.schedule.add()

    # What happens

    def _take_surroundings(self, found: Surroundings) -> None:
        inputs, output = self.inputs, self.output
        known, seen = output.publisher.version, found.pointer.version if found.pointer else None
        inputs.compare(found)
        output.observe(found)
        if self.leads and known is not None and seen is not None and seen > known:
            self._stand_back()  # the watch says nothing of a pointer that is known from here already
        if inputs.catch_up.is_waiting:
            inputs.catch_up.look()
            self.schedule.add()
        if inputs.confirmation.is_open or output.publisher.is_behind or output.serving.is_stepping or not self.leads:
            self.schedule.add()

    def _take_pointer(self, pointer: Pointer) -> None:
        publisher = self.output.publisher
        self.inputs.confirmation.saw(pointer.version)
        # A translator that follows looks at the pointer now and then, and again when its turn comes.
        if self.leads and pointer.version != publisher.version:
            publisher.observe(pointer, None)
            self._stand_back()

    def _take_turn(self) -> None:
        if self._term == self._leadership.term:
            return
        self._term = self._leadership.term
        self._build.is_settled = False
        self.output.publisher.distrust()
        self.output.serving.begin_turn()
        self.inputs.catch_up.begin()
        self.schedule.add_at_once()

    def _stand_back(self) -> None:
        """Another one committed: go on only when we have read of the log what it may have read."""
        self.inputs.catch_up.begin()
        self.schedule.stand_back()

    # What is due

    async def _publish_if_possible(self) -> None:
        self.schedule.clear()
        inputs = self.inputs
        try:
            if self.leads and inputs.catch_up.must_ask:
                found = await self.output.lookout.look()
                inputs.compare(found)
                self.output.publisher.observe(found.pointer, found.served)
                await inputs.catch_up.ask(inputs.intake.incarnation)
            await inputs.look_for_confirmation()
            wait_s = inputs.recovery_wait_s(self.output.publisher, is_current=self._build.is_current)
            if (obstacle := inputs.obstacle(leads=self.leads)) is not None:
                logger.debug("not published", extra={"reason": obstacle})
            elif wait_s > 0:
                self.schedule.add(after_s=wait_s)
            else:
                await self._publish()
        except Conflict:
            metrics.CONFLICTS.inc()
            self._stand_back()
        except StoreError as error:
            metrics.STORE_FAILURES.inc()
            logger.warning("a revision waits for the store", extra={"reason": str(error)})
            self.schedule.add_again()

    async def _publish(self) -> None:
        self.schedule.begin()
        worked_s = time.process_time()
        if await self._build.publish():
            self.schedule.succeeded()
            self.schedule.rest(time.process_time() - worked_s)
        else:
            self._stand_back()
