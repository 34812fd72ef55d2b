"""The translator's loop: the only place where the pure core meets time and the bus.

It says when something happens. `leading.handlers` has what each arrival changes, `leading.inputs` knows what was read
and what must still be waited for, `leading.build` makes revisions of it, and `leading.output` knows where they go.
"""

import asyncio
import logging
import time

from headgate.common.errors import Conflict, StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.leadership.leadership import Leadership, Sole
from headgate.common.service.tasks import run_together
from headgate.translator import metrics
from headgate.translator.composition import DIALECTS
from headgate.translator.leading.build import Build
from headgate.translator.leading.feeds import Feeds
from headgate.translator.leading.handlers import Handlers
from headgate.translator.leading.inputs import Inputs
from headgate.translator.leading.leadership import Turns
from headgate.translator.leading.output import Output
from headgate.translator.leading.schedule import Schedule
from headgate.translator.leading.stores import Stores
from headgate.translator.settings import TranslatorSettings
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)


class TranslatorLoop:
    """Follows the log and keeps one table up to date, and while it leads the stored table and the statuses too."""

    def __init__(self, stores: Stores, settings: TranslatorSettings, leadership: Leadership | None = None) -> None:
        """Prepare; without a leadership this translator is the only one."""
        self._settings = settings
        leadership = leadership or Sole()
        self._turns = turns = Turns(leadership)
        translation = self._new_translation()
        self.inputs = Inputs(stores.log, stores.log_writer, stores.ask_watchers, settings, translation)
        self._feeds = Feeds(stores.log, stores.snapshots, settings.table, leadership)
        self.output = Output(
            *(stores.snapshots, stores.heartbeats, stores.statuses, stores.last_good, settings),
            may_write=lambda: turns.is_given,
            on_board=self._feeds.take_board,
        )
        self._build = Build(self._new_translation, translation, self.inputs, self.output, lambda: turns.leads)
        self.schedule = Schedule(settings.debounce_ms / 1000)
        self._handlers = Handlers(self.inputs, self._build, self.output, self.schedule, turns)
        metrics.OLDEST_UNCOMMITTED.set_function(lambda: self.inputs.uncommitted_s)

    def _new_translation(self) -> Translation:
        settings = self._settings
        return Translation(
            DIALECTS,
            settings.translation,
            settings.selection,
            settings.table,
            settings.boundaries,
            is_for_shards=settings.sharded,
        )

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
        return self._turns.leads

    @property
    def is_idle(self) -> bool:
        """Whether all that was read is published or, by a translator that follows, ready to be."""
        if not self.schedule.is_empty or self.inputs.causes.count or not self._build.is_current:
            return False
        if not self._turns.is_given:
            return True
        return self.leads and self._build.is_settled and not self.output.statuses.pending

    def knows(self, cluster: str) -> bool:
        """Whether everything of a cluster has been translated once."""
        return cluster in self._build.known

    def has_read(self, incarnation: str, sequence: int) -> bool:
        """Whether everything of a log was read, up to a sequence."""
        intake = self.inputs.intake
        return intake.incarnation == incarnation and intake.sequence >= sequence

    @property
    def is_quiet(self) -> bool:
        """Whether no revision is due."""
        return self.schedule.is_empty

    @property
    def may_order(self) -> bool:
        """Whether certificates may be ordered: we lead, know all that is wanted, and what we commit is served."""
        return self.leads and self._build.is_settled and self.output.serving.pin is None

    async def is_served(self) -> bool:
        """Tell whether all that was read is committed, and every live gateway serves it."""
        version = self.output.publisher.version
        if not self.is_idle or version is None or self.output.serving.is_stepping:
            return False
        beats = await self._live_gateways()
        return bool(beats) and all(beat.version is not None and beat.version >= version for beat in beats)

    async def serving_gateways(self) -> frozenset[str]:
        """Return the gateways that serve the table, each worker by itself."""
        beats = await self._live_gateways()
        return frozenset(f"{beat.replica}/{beat.worker}" for beat in beats if beat.version is not None)

    async def _live_gateways(self) -> tuple[Heartbeat, ...]:
        try:
            return await self.output.lookout.gateways()
        except StoreError:
            return ()

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
                self._handlers.take_surroundings(surroundings)
                self.inputs.require(publisher.clusters)
                return

    async def _work(self) -> None:
        """Handle what arrives, one after the other, publish whenever that is due, and report in between."""
        while True:
            if self._build.has_unposted and self._feeds.inbox.empty() and not self.schedule.is_due:
                self._build.post_some()
                await asyncio.sleep(0)
                continue
            item = await self.schedule.next_of(self._feeds.inbox)
            if item is None:
                self.output.calm.clear()
                try:
                    await self._publish_if_possible()
                finally:
                    self.output.calm.set()
            else:
                self._handlers.handle(item)

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
            self._handlers.stand_back()
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
            self._handlers.stand_back()
