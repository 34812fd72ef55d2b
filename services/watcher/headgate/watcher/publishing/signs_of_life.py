"""What a watcher says of itself again and again, for `headgate status` and `headgate clusters` anywhere.

One watcher speaks for its cluster: the one that publishes. While an API server is away no watcher holds the Lease in
it; then any watcher says so, once the one that spoke last is silent.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from headgate.common.deltas import ClusterAnnouncement
from headgate.common.errors import StoreError
from headgate.common.leadership.leadership import Leadership
from headgate.common.stores import DeltaLogReader, DeltaLogWriter

SIGN_OF_LIFE_S = 30.0
"""Between two announcements."""
LOOK_S = 3.0
"""Between two looks at whether there is news, which is announced at once."""


class SignsOfLife:
    """Announces one cluster for ever."""

    def __init__(
        self,
        log_writer: DeltaLogWriter,
        log_reader: DeltaLogReader | None,
        leadership: Leadership,
        describe: Callable[[], ClusterAnnouncement],
        is_begun: Callable[[], bool],
    ) -> None:
        """Prepare.

        Args:
            log_writer: where it is said.
            log_reader: asked who spoke last; without it only the one that publishes speaks.
            leadership: whether this watcher publishes.
            describe: makes an announcement of now.
            is_begun: whether the one that publishes has announced the cluster itself, which comes first.
        """
        self._log_writer, self._log_reader = log_writer, log_reader
        self._leadership = leadership
        self._describe, self._is_begun = describe, is_begun
        self._said: ClusterAnnouncement | None = None

    async def run(self) -> None:
        """Speak for ever."""
        while True:
            await asyncio.sleep(LOOK_S * random.uniform(0.9, 1.0))  # noqa: S311 - not a secret
            news = self._describe()
            with suppress(StoreError):  # who sends deltas hears of it too, and says so
                if self._is_due(news) and await self._may_speak(news):
                    await self._log_writer.announce(news)
                    self._said = news

    def _is_due(self, news: ClusterAnnouncement) -> bool:
        said = self._said
        if said is None or (news.troubles, news.away_since) != (said.troubles, said.away_since):
            return True
        return _is_old(said, news)

    async def _may_speak(self, news: ClusterAnnouncement) -> bool:
        if self._leadership.is_leader:
            return self._is_begun()
        if news.away_since is None or self._log_reader is None:
            return False
        last = await self._log_reader.announcement(news.cluster)
        return last is not None and (last.instance == news.instance or _is_old(last, news))


def _is_old(said: ClusterAnnouncement, news: ClusterAnnouncement) -> bool:
    return news.announced_at - said.announced_at > timedelta(seconds=max(0.0, SIGN_OF_LIFE_S - LOOK_S))
