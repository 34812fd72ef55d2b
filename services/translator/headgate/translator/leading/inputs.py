"""What a table is made of, as far as it was read: the log, and what must happen before a table may be published."""

import logging
import sys
import time
from collections.abc import Collection
from datetime import UTC, datetime

from headgate.common.snapshot import Manifest
from headgate.common.stores import DeltaLogReader, DeltaLogWriter, LogBatch, LogPosition, LogReplay
from headgate.operations.committing.publisher import TablePublisher
from headgate.translator.leading.decisions import Decisions
from headgate.translator.leading.intake import Causes, Intake
from headgate.translator.leading.leadership import CatchUp
from headgate.translator.leading.log_confirmation import AskWatchers, LogConfirmation
from headgate.translator.leading.surroundings import Surroundings
from headgate.translator.settings import TranslatorSettings
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)

_NOT_READ = LogPosition("", sys.maxsize)
"""Before the log was heard of: not replayed."""


class Inputs:
    """The log as it comes in, the changes since the last revision, and the doubts about both."""

    def __init__(
        self,
        log: DeltaLogReader,
        log_writer: DeltaLogWriter | None,
        ask_watchers: AskWatchers | None,
        settings: TranslatorSettings,
        translation: Translation,
    ) -> None:
        """Prepare for a log that was not read yet.

        Args:
            log: the log.
            log_writer: for decisions about clusters that the log lost; None: nothing is written back.
            ask_watchers: has watchers confirm the log; None where no watcher can be asked.
            settings: of the translator.
            translation: what messages are taken into.
        """
        self._settings = settings
        self.intake = Intake(_NOT_READ, translation, settings.table)
        self.causes = Causes()
        self.catch_up = CatchUp(log)
        self.confirmation = LogConfirmation(log, ask_watchers)
        self.decisions = Decisions(log_writer)
        self._translation = translation
        self._required: frozenset[str] = frozenset()
        """Clusters of the published table that have to be listed again before another one may be published."""
        self._recovering_since: float | None = None

    @property
    def uncommitted_since(self) -> datetime | None:
        """When the oldest change was made that was read and is in no revision; None: all are."""
        return self.causes.since

    @property
    def uncommitted_s(self) -> float:
        """Age of that change in seconds; 0 if there is none."""
        since = self.uncommitted_since
        return max(0.0, (datetime.now(UTC) - since).total_seconds()) if since else 0.0

    @property
    def clusters(self) -> frozenset[str]:
        """Clusters that the table is, or was, built from."""
        return self._translation.active_clusters | self.intake.removed

    def require(self, clusters: Collection[str]) -> None:
        """Publish no table before these clusters are listed, unless they are removed or forgotten."""
        self._required |= frozenset(filter(self._settings.selection.has_cluster, clusters))

    def is_another_log(self, replay: LogReplay) -> bool:
        """Whether a log that begins is another one than what was read before, or an older copy of it."""
        known = (_NOT_READ.incarnation, replay.position.incarnation)
        return replay.went_back or self.intake.incarnation not in known

    def begin(self, replay: LogReplay, translation: Translation, current: Manifest | None, *, is_current: bool) -> None:
        """Read a log from its beginning, into another translation.

        Args:
            replay: what is known of the log.
            translation: what messages are taken into from now on.
            current: manifest of the current revision.
            is_current: whether the translation before was published; its clusters are waited for then.
        """
        if replay.went_back:
            self.confirmation.went_back()
        if is_current:
            self._required |= self._translation.active_clusters
            logger.warning("the log begins again; the published table stays until its clusters are listed again")
        self._translation = translation
        self.intake = Intake(replay.position, translation, self._settings.table)
        self.begin_causes(current)
        self.catch_up.end()

    def begin_causes(self, current: Manifest | None) -> None:
        """Count changes from the current revision on."""
        if current is not None and current.log == self.intake.incarnation:
            self.causes = Causes(current.inputs)
        else:
            self.causes = Causes(began_at=datetime.now(UTC))

    def receive(self, batch: LogBatch) -> bool:
        """Take messages in; return whether there may be something to publish by it."""
        is_awaited = self.catch_up.is_waiting or self.confirmation.is_open
        return self.intake.receive(batch, self.causes) or is_awaited

    def compare(self, found: Surroundings) -> None:
        """Compare what the store has with what gateways serve: a store that went back casts doubt on the log."""
        self.confirmation.saw(found.pointer.version if found.pointer else None)
        self.confirmation.heard(found.served)

    def obstacle(self, *, leads: bool) -> str | None:
        """Say what must happen before a table may be published; None: nothing."""
        if not self.intake.is_replayed:
            return "the log is being read"
        active = self._translation.active_clusters
        if missing := self._required - active - self.intake.removed - set(self._settings.forget_clusters):
            return f"the published table has clusters that are not listed yet: {', '.join(sorted(missing))}"
        if not active:
            waiting = "; ".join(f"{cluster}: {', '.join(kinds)}" for cluster, kinds in self.intake.incomplete().items())
            return f"no cluster is completely listed yet ({waiting or 'none is announced'})"
        if leads and not self.catch_up.is_done(self.intake.sequence):
            return "another translator has read more of the log"
        return self.confirmation.obstacle()

    def recovery_wait_s(self, publisher: TablePublisher, *, is_current: bool) -> float:
        """Return seconds to wait for clusters that may exist besides, while nothing is known of what gateways serve."""
        is_lost = not is_current and publisher.version is None and publisher.served is not None
        if not is_lost and not self.confirmation.is_blind:
            return 0.0
        if self._recovering_since is None:
            self._recovering_since = time.monotonic()
            logger.warning("gateways serve a table that the store does not have: waiting for all of its clusters")
        return self._recovering_since + self._settings.recovery_wait_s - time.monotonic()

    async def look_for_confirmation(self) -> None:
        """Ask watchers if it is time to, and see which clusters they have confirmed.

        Raises:
            StoreUnavailable: not now.
        """
        if self.confirmation.must_ask:
            await self.confirmation.ask()
        self.confirmation.look(self.intake, self._settings.forget_clusters)

    async def write_back_decisions(self, current: Manifest | None, *, leads: bool) -> bool:
        """Keep what people decided of clusters; return whether the log just got some of it again."""
        self.decisions.learn(self.intake.decided, current.decisions if current else {})
        return leads and await self.decisions.write_back(self.intake.incarnation, self.intake.decided)

    def end_recovery(self, publisher: TablePublisher) -> None:
        """Note that a table was published, or found to be so: nothing is waited for any more."""
        self.confirmation.saw(publisher.version)
        self.confirmation.end()
        self._required = frozenset()
        self._recovering_since = None
