"""What a translator makes of its inputs while it leads: revisions, statuses, and records of last good versions."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime

from headgate.common.errors import StoreError
from headgate.common.resources import ObjectRef
from headgate.common.service.telemetry import current_traceparent, tracer
from headgate.common.snapshot import Version
from headgate.common.stores import HeartbeatBoard, LastGoodLog, SnapshotStore, StatusBoard
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.translator import metrics
from headgate.translator.leading.inputs import Inputs
from headgate.translator.leading.last_good_recorder import LastGoodRecorder
from headgate.translator.leading.surroundings import Lookout, Surroundings
from headgate.translator.serving.fleet import Fleet
from headgate.translator.serving.serving import FleetView, Serving, show
from headgate.translator.settings import TranslatorSettings
from headgate.translator.status.statuses import Published, Statuses
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)

GARBAGE_INTERVAL_S = 30.0
"""Between two collections of old revisions: each lists all chunks, of which churn leaves thousands a minute."""
MANY = 5_000
"""Objects of which statuses are to be said at once, as after a start: gateways get their table first."""
GATEWAYS_FIRST_S = 60.0
"""Statuses wait so long at most for gateways to have it: to judge and to write them takes whole cores for a while."""
SLICE_S = 0.01
"""Work at most this long before other tasks get their turn: the log's heartbeats must not be missed."""


class Output:
    """One table as it is translated, committed, served and reported."""

    def __init__(
        self,
        snapshots: SnapshotStore,
        heartbeats: HeartbeatBoard,
        statuses: StatusBoard,
        last_good: LastGoodLog,
        settings: TranslatorSettings,
        *,
        may_write: Callable[[], bool],
        on_board: Callable[[Iterable[ObjectRef]], Awaitable[None]],
    ) -> None:
        """Prepare.

        Args:
            snapshots: where revisions are committed.
            heartbeats: what gateways say.
            statuses: where statuses are posted.
            last_good: where records of last good versions are written.
            settings: of the translator.
            may_write: whether it is our turn; asked before everything that is written.
            on_board: takes the objects that have a status from before.
        """
        self._settings = settings
        self._board, self._may_write, self._on_board = statuses, may_write, on_board
        self.publisher = TablePublisher(snapshots, settings.table, settings.retention, may_commit=may_write)
        self.serving = Serving(snapshots, settings.table, settings.rollout_policy, f"translator {settings.instance}")
        self.lookout = Lookout(heartbeats, snapshots, settings.table)
        self.recorder = LastGoodRecorder(last_good, settings.table)
        self.calm = asyncio.Event()
        """Set while no revision is being made."""
        self.calm.set()
        self.statuses = self._new_statuses()
        self.surroundings: Surroundings | None = None
        """What gateways and the store looked like when they were looked at last."""
        self._awaited: Version | None = None
        """What gateways get before the statuses of many objects are judged."""
        self._awaited_until = 0.0

    def _new_statuses(self) -> Statuses:
        return Statuses(self._board, self._settings.table, self._on_board, may_post=self._may_write, calm=self.calm)

    def begin_term(self, translation: Translation) -> None:
        """Begin to post: what another translator posted meanwhile is read from the board."""
        self.statuses = self._new_statuses()
        self.statuses.touch(translation.assembly.fragments)
        self._tell_surroundings()

    def begin_translation(self, *, is_board_lost: bool) -> None:
        """Have another translation from now on."""
        self.recorder.rest()
        self.serving.begin_translation()
        self.statuses.begin(is_board_lost=is_board_lost)

    async def collect_garbage(self) -> None:
        """Drop old revisions for ever."""
        while True:
            await asyncio.sleep(GARBAGE_INTERVAL_S)
            try:
                await self.publisher.collect_garbage()
            except StoreError as error:
                logger.info("old revisions are not collected now", extra={"reason": str(error)})

    def observe(self, found: Surroundings) -> None:
        """Take in what gateways and the store look like."""
        self.publisher.observe(found.pointer, found.served)
        self.surroundings = found
        self._tell_surroundings()

    def _tell_surroundings(self) -> None:
        if (found := self.surroundings) is not None:
            fleet = Fleet.of(found.heartbeats, self._settings.table)
            self.statuses.observe(fleet, self._settings.fixed_addresses or found.addresses)

    async def translate(self, translation: Translation) -> None:
        """Bring the translation and all tables that follow it up to date, giving other tasks their turn."""
        started = breath = time.perf_counter()
        runs = translation.graph.runs
        for _ in self.serving.settle(translation):
            if time.perf_counter() - breath > SLICE_S:
                await asyncio.sleep(0)
                breath = time.perf_counter()
        assembly = translation.assembly
        self.statuses.touch(assembly.touched)
        metrics.ENTRIES_CHANGED.inc(len(assembly.changed))
        assembly.touched.clear()
        assembly.changed.clear()
        metrics.NODES_RUN.inc(translation.graph.runs - runs)
        metrics.TRANSLATE_SECONDS.observe(time.perf_counter() - started)

    def draft(self, translation: Translation, inputs: Inputs) -> Draft:
        """Return the live table: what is served unless it is pinned or rolled out."""
        return Draft(
            chunks=translation.assembly.image.chunks(),
            causes=tuple(inputs.causes.named),
            cause_count=inputs.causes.count,
            inputs=dict(inputs.intake.inputs),
            log=inputs.intake.incarnation,
            last_read=inputs.intake.last_read,
            decisions=inputs.decisions.known,
            selection=self._settings.selection,
            traceparent=current_traceparent(),
        )

    async def commit(self, translation: Translation, inputs: Inputs) -> None:
        """Commit what is to be served, unless it is already.

        Raises:
            Conflict: another one committed.
            StoreError: not now.
        """
        started = time.perf_counter()
        causes, draft = inputs.causes, self.draft(translation, inputs)
        beats = self.surroundings.heartbeats if self.surroundings else ()
        if self.serving.may_begin(draft):
            beats = await self.lookout.gateways()
        sight = FleetView(beats, datetime.now(UTC), time.monotonic())
        plan = self.serving.plan(draft, translation.assembly.image, sight)
        with tracer(__name__).start_as_current_span("commit"):
            version = await self.publisher.publish(plan.draft)
        self.serving.committed(plan, self.publisher.manifest)
        if version is not None:
            if self.serving.is_stepping:
                self.lookout.look_soon()
            metrics.REVISIONS.inc()
            metrics.COMMIT_SECONDS.observe(time.perf_counter() - started)
            first = causes.named[0] if causes.named else None
            why = f"{first.operation} {first.kind} {first.namespace}/{first.name}" if first else ""
            logger.info("revision published", extra={"version": str(version), "changes": causes.count, "first": why})

    def stay_warm(self, translation: Translation, inputs: Inputs) -> None:
        """Have the table encoded, and know what is new in it, for when our turn comes."""
        current = self.publisher.manifest
        if self.publisher.has_live(self.draft(translation, inputs).chunks):
            inputs.begin_causes(current)
        elif current is not None and current.log == inputs.intake.incarnation:
            inputs.causes.forget(current.inputs)
        self.statuses.forget_touched()

    def measure(self, translation: Translation) -> None:
        """Have the metrics say what the current revision is and is made of."""
        show(self.publisher.manifest)
        version = self.publisher.version
        if version is not None:
            metrics.EPOCH.set(version.epoch)
            metrics.REVISION.set(version.revision)
        for resource, count in translation.world.counts.items():
            metrics.OBJECTS.labels(resource).set(count)

    def post(self, translation: Translation, traceparent: str | None) -> None:
        """Say what is to say of what was published last."""
        published = Published.of(self.publisher.version, self.publisher.manifest)
        before = self.statuses.unjudged
        self.statuses.post(translation, published, traceparent)
        if before < MANY <= self.statuses.unjudged:
            self._awaited, self._awaited_until = self.publisher.version, time.monotonic() + GATEWAYS_FIRST_S
            self.lookout.look_soon()
        self._follow_statuses()

    @property
    def may_judge(self) -> bool:
        """Whether statuses that `post` left for later may be judged now: there are some, and gateways do without us."""
        left = self.statuses.unjudged
        return left > 0 and not (left >= MANY and self._awaited is not None and self._is_awaited(self._awaited))

    def _is_awaited(self, version: Version) -> bool:
        """Whether a gateway that lives has not got a revision yet, and may be waited for."""
        beats = self.surroundings.heartbeats if self.surroundings else ()
        is_lacking = any(beat.version is None or beat.version < version for beat in beats)
        return is_lacking and time.monotonic() < self._awaited_until

    def post_some(self, translation: Translation) -> None:
        """Go on with what `post` left for later, for some milliseconds."""
        self.statuses.judge_some(translation)
        if not self.statuses.unjudged:
            self._follow_statuses()

    def _follow_statuses(self) -> None:
        if self.statuses.is_awaiting:
            self.lookout.look_soon()
        for severity, count in self.statuses.counts().items():
            metrics.PROBLEMS.labels(severity).set(count)
