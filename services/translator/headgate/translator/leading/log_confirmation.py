"""Whether the log may be an older copy of what it was, and who has to confirm that it is not.

A table that is built from a restored backup would send traffic to where endpoints were then. So a log that went back,
or one beside a store that lacks what gateways serve, is not published before every cluster in it was confirmed: its
watchers compare it with the cluster, write what differs, and mark each kind again.

Rejected: waiting for some seconds. A watcher that is away would make no difference then, and its cluster's part of the
table would be that of the backup.
"""

import logging
from collections.abc import Awaitable, Callable, Collection

from headgate.common.deltas import LogPlace
from headgate.common.errors import StoreUnavailable
from headgate.common.snapshot import Version
from headgate.common.stores import DeltaLogReader
from headgate.translator.leading.intake import Intake

AskWatchers = Callable[[], Awaitable[None]]
"""Has watchers compare the log with their clusters and mark it again; may be lost on the way."""

logger = logging.getLogger(__name__)


class LogConfirmation:
    """What is known against the log."""

    def __init__(self, log: DeltaLogReader, ask_watchers: AskWatchers | None) -> None:
        """Begin with none; without a way to ask watchers none is ever had."""
        self._log, self._ask_watchers = log, ask_watchers
        self._proven: Version | None = None
        """Greatest version that the store had while this process followed the log, so that the log is not older."""
        self._served: Version | None = None
        self._threshold: int | None = None
        """Sequence after which markers count; None until the log was asked where it ends."""
        self._waiting: frozenset[str] = frozenset()
        self._is_open = False
        self.must_ask = False
        """Whether watchers are to be asked, for the first time or again."""
        self.is_blind = False
        """Whether gateways serve a table of which nothing is known, not even its clusters."""

    @property
    def is_open(self) -> bool:
        """Whether confirmation is waited for."""
        return self._is_open

    def saw(self, version: Version | None) -> None:
        """Note what the store's pointer names."""
        self._proven = max(filter(None, (self._proven, version)), default=None)

    def heard(self, served: Version | None) -> None:
        """Note what gateways serve. It was read before the pointer, so it is greater only if the store went back."""
        if self._is_open:
            self.must_ask = True  # some seconds have passed, and the request may have been lost
        if served is not None and (self._proven is None or served > self._proven):
            self._served = max(filter(None, (self._served, served)))
            self.is_blind = self._ask_watchers is not None
            self._open(f"gateways serve {served}, which the store does not have")

    def went_back(self) -> None:
        """Note that the log itself went back: whatever was confirmed of it counts no more."""
        self._is_open = False
        self._open("the log went back")

    async def check(self, last_read: LogPlace | None) -> None:
        """Make sure of the log before a store that went back is mended: if the log did too, it is the sign of that.

        Without the sign, a translator that starts before the log is confirmed would take it for what it was.

        Args:
            last_read: the message that was read last.

        Raises:
            StoreUnavailable: not now, or not before the log was read again.
        """
        if self._ask_watchers is not None and last_read is not None and await self._log.went_back(last_read):
            raise StoreUnavailable("the log went back with the store, and is read again first")

    def _open(self, reason: str) -> None:
        if self._ask_watchers is None or self._is_open:
            return
        logger.warning("the log may be an older copy: its watchers are asked", extra={"reason": reason})
        self._is_open = self.must_ask = True
        self._threshold = None

    async def ask(self) -> None:
        """Ask the watchers.

        Raises:
            StoreUnavailable: not now.
        """
        if self._ask_watchers is None:
            return
        if self._threshold is None:
            self._threshold = (await self._log.position()).last_sequence
        await self._ask_watchers()
        self.must_ask = False

    def look(self, intake: Intake, forgotten: Collection[str]) -> None:
        """Look which clusters were confirmed; the doubt ends with the last of them.

        Args:
            intake: the log as far as it was read.
            forgotten: clusters that are not waited for.
        """
        if not self._is_open or self._threshold is None or not intake.is_replayed:
            return
        before = self._waiting
        self._waiting = frozenset(intake.not_marked_after(self._threshold)) - frozenset(forgotten)
        if self._waiting - before:
            logger.info("waiting for watchers", extra={"clusters": ", ".join(sorted(self._waiting))})
        if not self._waiting:
            self._is_open = self.must_ask = False
            self.saw(self._served)
            logger.info("the log is confirmed by its watchers")

    def obstacle(self) -> str | None:
        """Say who is waited for."""
        if not self._is_open:
            return None
        who = ", ".join(sorted(self._waiting)) or "all clusters"
        return f"the log may be an older copy, and has not been confirmed by the watchers of {who}"

    def end(self) -> None:
        """Note that a table was published, or found to be so: what is served next is known."""
        self.is_blind = False
