"""The translator's loop: the only place where the pure core meets time and the bus."""

import asyncio
import logging
import random
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from headgate.common.errors import Conflict, StoreError
from headgate.common.heartbeats import COUNTING_INTERVAL_S
from headgate.common.leadership import Leadership, Sole, run_while_leading
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Pointer
from headgate.common.stores import (
    DeltaLogReader,
    DeltaLogWriter,
    HeartbeatBoard,
    LastGoodLog,
    LogBatch,
    LogPosition,
    LogReplay,
    SnapshotStore,
    StatusBoard,
)
from headgate.common.tasks import run_together
from headgate.common.telemetry import current_traceparent, span_from, tracer
from headgate.translator import metrics
from headgate.translator.composition import DIALECTS
from headgate.translator.leading.decisions import Decisions
from headgate.translator.leading.intake import Causes, Intake
from headgate.translator.leading.last_good_recorder import LastGoodKeeper
from headgate.translator.leading.leadership import CatchUp, Turn
from headgate.translator.leading.log_confirmation import AskWatchers, Doubt
from headgate.translator.leading.surroundings import Lookout, Surroundings
from headgate.translator.serving.fleet import Fleet
from headgate.translator.serving.publisher import Draft, Publisher
from headgate.translator.serving.serving import Serving, Sight, show
from headgate.translator.settings import TranslatorSettings
from headgate.translator.status.statuses import Published, Statuses
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)

LOOK_AROUND_S = 5.0
FIRST_LOOK_S = 0.1
"""After a revision, for how far gateways have got with it; each further look takes twice as long to come."""
LONGEST_REST_S = 0.1
"""After a revision we rest as long as it was work, at most this long: churn of small changes never takes more than half
of a core, and a change that comes after a large one need not wait for long."""
GARBAGE_INTERVAL_S = 30.0
"""Between two collections of old revisions: each lists all chunks, of which churn leaves thousands a minute."""
SLICE_S = 0.01
"""Work at most this long before other tasks get their turn: the log's heartbeats must not be missed."""
INBOX = 16
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 5.0
_NEVER = LogPosition("", sys.maxsize)
"""Before the log was heard of: not replayed."""


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
        """Of the last turn that was taken."""
        self._publisher = Publisher(
            stores.snapshots, settings.table, settings.retention, may_commit=lambda: leadership.is_leader
        )
        self._serving = Serving(
            stores.snapshots, settings.table, settings.rollout_policy, f"translator {settings.instance}"
        )
        self._statuses = self._new_statuses()
        self._surroundings: Surroundings | None = None
        self._lookout = Lookout(stores.heartbeats, stores.snapshots, settings.table)
        self._keeper = LastGoodKeeper(stores.last_good, settings.table)
        self._inbox: asyncio.Queue[Item] = asyncio.Queue(INBOX)
        self._required: frozenset[str] = frozenset()
        self._catch_up = CatchUp(stores.log)
        self._doubt = Doubt(stores.log, stores.ask_watchers)
        self._decisions = Decisions(stores.log_writer)
        self._due: float | None = None
        self._next_at = float("-inf")
        """When the next revision may be, at the earliest."""
        self._recovering_since: float | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._is_current = False
        self._is_settled = False
        """Whether what was translated last is what was published last."""
        self._translation = self._new_translation()
        self._intake = Intake(_NEVER, self._translation, settings.table)
        self._causes = Causes()
        metrics.OLDEST_UNCOMMITTED.set_function(self._oldest_uncommitted_s)
        self._known: frozenset[str] = frozenset()

    def readiness(self) -> str | None:
        """Readiness check: None once a table was published, found to be current already, or would be if we led."""
        return None if self._is_current else self._obstacle() or "no table is published yet"

    @property
    def uncommitted_since(self) -> datetime | None:
        """When the oldest change was made that was read and is in no revision; None: all are."""
        return self._causes.since

    def _oldest_uncommitted_s(self) -> float:
        since = self.uncommitted_since
        return max(0.0, (datetime.now(UTC) - since).total_seconds()) if since else 0.0

    @property
    def awaits_first_cluster(self) -> bool:
        """Whether no cluster is announced, and neither store nor gateways have a table: all is done that can be."""
        is_new = self._publisher.version is None and self._publisher.served is None
        has_cluster = bool(self._translation.active_clusters or self._intake.incomplete())
        return is_new and self._intake.is_replayed and not has_cluster

    def clusters(self) -> frozenset[str]:
        """Return the clusters that the table is, or was, built from."""
        return self._translation.active_clusters | self._intake.removed

    @property
    def translation(self) -> Translation:
        """The translation of now; another one after the log began anew."""
        return self._translation

    def knows(self, cluster: str) -> bool:
        """Whether everything of a cluster has been translated once."""
        return cluster in self._known

    async def run(self) -> None:
        """Run until cancelled."""
        await self._read_store()
        await run_together(
            self._follow_log(),
            self._follow_pointer(),
            self._lookout.run(self._look, lambda: FIRST_LOOK_S, self._longest_pause),
            run_while_leading(self._leadership, self._lead),
            self._work(),
        )

    async def _lead(self) -> None:
        self._statuses = self._new_statuses()  # what another posted meanwhile is read from the board
        self._statuses.touch(self._translation.assembly.fragments)
        self._tell_surroundings()
        await self._inbox.put(Turn())
        await run_together(self._statuses.run(), self._keeper.run(), self._collect_garbage())

    async def _collect_garbage(self) -> None:
        while True:
            await asyncio.sleep(GARBAGE_INTERVAL_S)
            try:
                await self._publisher.collect_garbage()
            except StoreError as error:
                logger.info("old revisions are not collected now", extra={"reason": str(error)})

    def _new_statuses(self) -> Statuses:
        return Statuses(
            self._stores.statuses,
            self._settings.table,
            self._take_board,
            may_post=lambda: self._leadership.is_leader,
        )

    def _new_translation(self) -> Translation:
        settings = self._settings
        return Translation(DIALECTS, settings.translation, settings.selection, settings.table, settings.boundaries)

    async def _read_store(self) -> None:
        while True:
            try:
                surroundings = await self._lookout.look()
                await self._publisher.read()
            except StoreError as error:
                logger.warning("waiting for the snapshot store", extra={"reason": str(error)})
                await asyncio.sleep(self._next_pause())
            else:
                self._take_surroundings(surroundings)
                self._required = frozenset(filter(self._settings.selection.has_cluster, self._publisher.clusters))
                return

    async def _follow_log(self) -> None:
        current = self._publisher.manifest
        async for item in self._stores.log.follow(current.last_read if current else None):
            await self._inbox.put(item)

    async def _follow_pointer(self) -> None:
        async for pointer in self._stores.snapshots.follow(self._settings.table):
            if pointer.version != self._publisher.version:
                await self._inbox.put(pointer)

    async def _look(self) -> None:
        try:
            await self._inbox.put(await self._lookout.look())
        except StoreError as error:
            logger.debug("gateways and store cannot be seen", extra={"reason": str(error)})

    def _longest_pause(self) -> float:
        """Seconds between two looks around."""
        return min(COUNTING_INTERVAL_S, LOOK_AROUND_S) if self._serving.is_stepping else LOOK_AROUND_S

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
                    self._statuses.touch(item.refs)
                    await self._post_again()
                case Pointer():
                    self._take_pointer(item)
                case Turn():
                    self._take_turn()
                    await self._post_again()
                case LogBatch():
                    is_awaited = self._catch_up.is_waiting or self._doubt.is_open
                    if self._intake.receive(item, self._causes) or is_awaited:
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

    def _begin(self, replay: LogReplay) -> None:
        is_another = self._intake.incarnation not in (_NEVER.incarnation, replay.position.incarnation)
        if replay.went_back:
            self._doubt.went_back()
            self._publisher.outdate()
        if is_another or replay.went_back:
            self._publisher.distrust()  # tables are lost with the log more often than not
        if self._is_current:
            self._required |= self._translation.active_clusters
            logger.warning("the log begins anew; the published table stays until its clusters are listed again")
        self._keeper.rest()
        self._translation = self._new_translation()
        self._serving.begin_translation()
        self._intake = Intake(replay.position, self._translation, self._settings.table)
        self._causes = self._new_causes()
        self._catch_up.end()
        self._due = None
        self._known = frozenset()
        self._statuses.begin(is_board_lost=is_another or replay.went_back)

    def _new_causes(self) -> Causes:
        current = self._publisher.manifest
        if current is not None and current.log == self._intake.incarnation:
            return Causes(current.inputs)
        return Causes(began_at=datetime.now(UTC))

    def _schedule(self, not_before: float = 0.0) -> None:
        due = max(time.monotonic(), self._next_at, not_before)
        self._due = due if self._due is None else min(self._due, due)

    def _compare_store(self, found: Surroundings) -> None:
        """Look whether the store has what gateways serve."""
        self._doubt.saw(found.pointer.version if found.pointer else None)
        self._doubt.heard(found.served)
        self._publisher.observe(found.pointer, found.served)

    def _take_surroundings(self, found: Surroundings) -> None:
        self._compare_store(found)
        self._surroundings = found
        self._tell_surroundings()
        if self._catch_up.is_waiting:
            self._catch_up.look()
            self._schedule()
        if self._doubt.is_open:
            self._schedule()
        if self._publisher.is_behind or self._serving.is_stepping or not self._leads:
            self._schedule()

    def _tell_surroundings(self) -> None:
        if (found := self._surroundings) is not None:
            fleet = Fleet.of(found.heartbeats, self._settings.table)
            self._statuses.observe(fleet, self._settings.fixed_addresses or found.addresses)

    def _take_pointer(self, pointer: Pointer) -> None:
        self._doubt.saw(pointer.version)
        # Who follows looks at the pointer now and then, and anew when its turn comes.
        if self._leads and pointer.version != self._publisher.version:
            self._publisher.observe(pointer, None)
            self._stand_back()

    @property
    def _leads(self) -> bool:
        """Whether it is our turn now, and we have begun it."""
        return self._leadership.is_leader and self._term == self._leadership.term

    def _take_turn(self) -> None:
        if self._term == self._leadership.term:
            return
        self._term = self._leadership.term
        self._publisher.distrust()
        self._serving.begin_turn()
        self._catch_up.begin()
        self._due = time.monotonic()

    def _obstacle(self) -> str | None:
        """Say what must happen before a table may be published."""
        if not self._intake.is_replayed:
            return "the log is being read"
        active = self._translation.active_clusters
        if missing := self._required - active - self._intake.removed - set(self._settings.forget_clusters):
            return f"the published table has clusters that are not listed yet: {', '.join(sorted(missing))}"
        if not active:
            waiting = "; ".join(
                f"{cluster}: {', '.join(kinds)}" for cluster, kinds in self._intake.incomplete().items()
            )
            return f"no cluster is completely listed yet ({waiting or 'none is announced'})"
        if self._leads and not self._catch_up.is_done(self._intake.sequence):
            return "another translator has read more of the log"
        return self._doubt.obstacle()

    async def _publish_if_possible(self) -> None:
        self._due = None
        try:
            if self._leads and self._catch_up.must_ask:
                self._compare_store(await self._lookout.look())
                await self._catch_up.ask(self._intake.incarnation)
            if self._doubt.must_ask:
                await self._doubt.ask()
            self._doubt.look(self._intake, self._settings.forget_clusters)
            wait_s = self._recovery_wait()
            if (obstacle := self._obstacle()) is not None:
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
        self._next_at = time.monotonic() + self._settings.debounce_ms / 1000
        worked_s = time.process_time()
        with span_from(self._causes.traceparent, "translate"):
            await self._keeper.recall(self._translation)
            await self._serving.adopt(self._publisher, is_current=self._is_current, leads=self._leads)
            if self._leads and self._publisher.is_behind:
                await self._doubt.check(self._intake.last_read)
            if await self._decisions_are_awaited():
                self._stand_back()
                return
            self._is_settled = False
            await self._translate()
            if self._leads:
                self._catch_up.end()
                await self._commit()
                await self._settled()
            else:
                self._stay_warm()
        worked_s = time.process_time() - worked_s
        self._next_at = max(self._next_at, time.monotonic() + min(worked_s, LONGEST_REST_S))

    async def _decisions_are_awaited(self) -> bool:
        """Keep what people decided of clusters; return whether the log just got some of it again."""
        current = self._publisher.manifest
        self._decisions.learn(self._intake.decided, current.decisions if current else {})
        return self._leads and await self._decisions.write_back(self._intake.incarnation, self._intake.decided)

    def _recovery_wait(self) -> float:
        """Seconds to wait for clusters that may be there besides: nothing is known of the table that gateways serve."""
        is_lost = not self._is_current and self._publisher.version is None and self._publisher.served is not None
        if not is_lost and not self._doubt.is_blind:
            return 0.0
        if self._recovering_since is None:
            self._recovering_since = time.monotonic()
            logger.warning("gateways serve a table that the store does not have: waiting for all of its clusters")
        return self._recovering_since + self._settings.recovery_wait_s - time.monotonic()

    async def _translate(self) -> None:
        started = breath = time.perf_counter()
        runs = self._translation.graph.runs
        for _ in self._serving.settle(self._translation):
            if time.perf_counter() - breath > SLICE_S:
                await asyncio.sleep(0)
                breath = time.perf_counter()
        assembly = self._translation.assembly
        self._known = self._translation.active_clusters
        self._statuses.touch(assembly.touched)
        metrics.ENTRIES_CHANGED.inc(len(assembly.changed))
        assembly.touched.clear()
        assembly.changed.clear()
        metrics.NODES_RUN.inc(self._translation.graph.runs - runs)
        metrics.TRANSLATE_SECONDS.observe(time.perf_counter() - started)

    async def _commit(self) -> None:
        started = time.perf_counter()
        causes, draft = self._causes, self._draft()
        beats = self._surroundings.heartbeats if self._surroundings else ()
        if self._serving.may_begin(draft):
            beats = await self._lookout.gateways()
        sight = Sight(beats, datetime.now(UTC), time.monotonic())
        plan = self._serving.plan(draft, self._translation.assembly.image, sight)
        with tracer(__name__).start_as_current_span("commit"):
            version = await self._publisher.publish(plan.draft)
        self._serving.committed(plan, self._publisher.manifest)
        self._pause_s = _FIRST_PAUSE_S
        if version is not None:
            if self._serving.is_stepping:
                self._lookout.look_soon()
            metrics.REVISIONS.inc()
            metrics.COMMIT_SECONDS.observe(time.perf_counter() - started)
            first = causes.named[0] if causes.named else None
            why = f"{first.operation} {first.kind} {first.namespace}/{first.name}" if first else ""
            logger.info("revision published", extra={"version": str(version), "changes": causes.count, "first": why})

    def _draft(self) -> Draft:
        """Return the live table: what is served unless it is pinned or rolled out."""
        return Draft(
            chunks=self._translation.assembly.image.chunks(),
            causes=tuple(self._causes.named),
            cause_count=self._causes.count,
            inputs=dict(self._intake.inputs),
            log=self._intake.incarnation,
            last_read=self._intake.last_read,
            decisions=self._decisions.known,
            selection=self._settings.selection,
            traceparent=current_traceparent(),
        )

    def _stand_back(self) -> None:
        """Somebody else committed: go on only when we have read of the log what they may have read."""
        self._catch_up.begin()
        self._schedule(not_before=time.monotonic() + random.uniform(0.0, 0.05))  # noqa: S311 - not a secret

    def _stay_warm(self) -> None:
        """Have the table encoded, and know what is new in it, for when our turn comes."""
        current = self._publisher.manifest
        if self._publisher.has_live(self._draft().chunks):
            self._causes = self._new_causes()
        elif current is not None and current.log == self._intake.incarnation:
            self._causes.forget(current.inputs)
        self._statuses.forget_touched()
        self._pause_s = _FIRST_PAUSE_S
        self._note_current()

    def _note_current(self) -> None:
        self._doubt.saw(self._publisher.version)
        self._doubt.end()
        self._is_current = True
        self._required = frozenset()
        self._recovering_since = None
        show(self._publisher.manifest)
        self._measure()

    async def _settled(self) -> None:
        self._is_settled = True
        self._note_current()
        traceparent, self._causes = self._causes.traceparent, self._new_causes()
        self._keeper.look_after(self._translation.world)
        await self._post(traceparent)

    def _measure(self) -> None:
        version = self._publisher.version
        if version is not None:
            metrics.EPOCH.set(version.epoch)
            metrics.REVISION.set(version.revision)
        for resource, count in self._translation.world.counts.items():
            metrics.OBJECTS.labels(resource).set(count)

    async def _take_board(self, refs: Iterable[ObjectRef]) -> None:
        await self._inbox.put(Remembered(tuple(refs)))

    async def _post_again(self) -> None:
        """Say what is to say of what was published last; what is not published yet is told of when it is."""
        if self._leads and self._is_settled:
            await self._post(None)

    async def _post(self, traceparent: str | None) -> None:
        published = Published.of(self._publisher.version, self._publisher.manifest)
        await self._statuses.post(self._translation, published, traceparent)
        if self._statuses.is_awaiting:
            self._lookout.look_soon()
        for severity, count in self._statuses.counts().items():
            metrics.PROBLEMS.labels(severity).set(count)

    def _next_pause(self) -> float:
        pause_s, self._pause_s = self._pause_s, min(_LAST_PAUSE_S, self._pause_s * 2)
        return pause_s * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
