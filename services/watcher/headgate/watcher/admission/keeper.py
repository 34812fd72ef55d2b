"""Keeps the webhook's certificate: the first watcher makes one; the watcher that leads goes on from there.

It takes step after step, and says whom API servers trust.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from headgate.common.leadership.leadership import Leadership, run_while_leading
from headgate.watcher.admission.kept_secret import KeptSecret
from headgate.watcher.admission.rotation import DesiredCertificate, Kept, Step, advance
from headgate.watcher.admission.trusted_bundle import TrustedBundle
from headgate.watcher.errors import CertificateUnusable, Forbidden, WatcherError, WriteConflict

_log = logging.getLogger(__name__)

PAUSE_S = 10.0
"""Between two looks; API servers have heard of a changed configuration in far less."""
PATIENCE_S = 60.0
"""Where a right is missing."""


class CertificateKeeper:
    """Works while this watcher leads, for ever."""

    def __init__(
        self,
        secret: KeptSecret,
        bundle: TrustedBundle,
        wanted: DesiredCertificate,
        leadership: Leadership,
        *,
        pause_s: float = PAUSE_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare; `run` does the work.

        Args:
            secret: where the certificate is kept.
            bundle: where its authority goes.
            wanted: what it is to be.
            leadership: which one of several watchers keeps it.
            pause_s: between two looks.
            now: the wall clock.
        """
        self._secret, self._bundle, self._wanted = secret, bundle, wanted
        self._leadership = leadership
        self._pause_s = pause_s
        self._now = now
        self._troubles: dict[str, str] = {}

    @property
    def troubles(self) -> tuple[str, ...]:
        """What keeps the certificate from being kept, or trusted, now."""
        return tuple(self._troubles.values())

    async def run(self) -> None:
        """Keep it; errors of the API server are logged and outwaited."""
        while True:
            if self._leadership.is_leader or await self._has_first():
                break
            await asyncio.sleep(self._pause_s)
        await run_while_leading(self._leadership, self._keep_for_ever)

    async def _has_first(self) -> bool:
        """Make the first certificate, if there is none, and return whether there is one.

        Each watcher does so: the one that leads may be of before the webhook was wanted, and in a roll-out it goes
        only when its successor is ready, which takes a certificate.
        """
        try:
            kept, version = await self._secret.read()
            step = advance(kept, self._wanted, self._now(), is_trusted=False)
            if kept.present is None and step is not None:
                await self._write(step, version)
        except WatcherError as error:
            self._complain(str(self._secret), error)
            return False
        self._troubles.clear()
        return True

    async def _keep_for_ever(self) -> None:
        try:
            while True:
                pause_s = await self._look()
                await asyncio.sleep(pause_s)
        finally:
            self._troubles.clear()

    async def _look(self) -> float:
        """Take the next step, if there is one; return the seconds until the next look."""
        try:
            kept, version = await self._secret.read()
            is_trusted = await self._tell(kept)
            step = advance(kept, self._wanted, self._now(), is_trusted=is_trusted)
            if step is not None and self._leadership.is_leader:
                await self._write(step, version)
                await self._tell(step.kept)
        except WatcherError as error:
            return self._complain(str(self._secret), error)
        self._troubles.pop(str(self._secret), None)
        return self._pause_s

    async def _write(self, step: Step, version: str) -> None:
        await self._secret.write(step.kept, version)
        _log.info(step.reason, extra={"secret": str(self._secret)})

    async def _tell(self, kept: Kept) -> bool:
        """Have the authorities trusted; return whether they were before."""
        if not kept.authorities:
            return False
        try:
            was_trusted = await self._bundle.put(kept.bundle_pem)
        except WatcherError as error:
            self._complain(str(self._bundle), error)
            return False
        self._troubles.pop(str(self._bundle), None)
        return was_trusted

    def _complain(self, what: str, error: WatcherError) -> float:
        if isinstance(error, WriteConflict):
            _log.debug("%s was written by somebody else meanwhile; reading it again", what)
            return self._pause_s
        text = str(error) if isinstance(error, CertificateUnusable) else f"{what}: {error}"
        if self._troubles.get(what) != text:
            self._troubles[what] = text
            _log.warning("the webhook's certificate cannot be kept or trusted; trying on", extra={"reason": text})
        return PATIENCE_S if isinstance(error, Forbidden) else self._pause_s
