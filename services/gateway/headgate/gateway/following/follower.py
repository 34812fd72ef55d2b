"""Following the store's pointer: every newer revision is applied, nothing older ever is.

Watching is for latency, reading is for correctness: besides the store's own notifications the pointer is read every
few seconds. Only a greater (epoch, revision) is accepted, so neither a stale replica nor a restored backup moves a
gateway back; the translator sees in the heartbeats that the gateways are ahead of the store and mints a new epoch.
An equal version is believed by the digest of its manifest only: a store that came back from a backup while this gateway
was down may have given a number again, and then what the store has is served.
Whatever cannot be applied is tried again, while the last good table goes on serving.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable

from headgate.common.errors import HeadgateError, NotFound, StoreUnavailable
from headgate.common.heartbeats import Refusal
from headgate.common.service.tasks import run_together
from headgate.common.snapshot import Manifest, Pointer
from headgate.common.stores import SnapshotStore
from headgate.gateway.errors import TableRefused
from headgate.gateway.following.apply import TableApplier
from headgate.gateway.observability.metrics import TableMetrics

_log = logging.getLogger(__name__)

POLL_S = 5.0
"""Between two reads of the pointer: one small message a worker, and the bound of what a blind watch can cost."""
SYNC_TIMEOUT_S = 15.0
"""Without a word from the store for this long the gateway says that it may be behind."""
FIRST_RETRY_S = 0.2
LAST_RETRY_S = 5.0


class Follower:
    """Keeps a `TableApplier` at the newest revision of one table."""

    def __init__(
        self,
        store: SnapshotStore,
        table: str,
        applier: TableApplier,
        metrics: TableMetrics,
        *,
        poll_s: float = POLL_S,
        first_retry_s: float = FIRST_RETRY_S,
        clock: Callable[[], float] = time.monotonic,
        on_trouble: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; `on_trouble` is called when there is another `refusal`, or the store is behind what is served."""
        self._store = store
        self._table = table
        self._applier = applier
        self._metrics = metrics
        self._poll_s = poll_s
        self._first_retry_s = first_retry_s
        self._clock = clock
        self._on_trouble = on_trouble
        self._wanted: Pointer | None = None
        self._news = asyncio.Event()
        self._heard_at: float | None = None
        self._confirmed_at: float | None = None
        self._behind: Pointer | None = None
        self._lagging_since: float | None = None
        """When the store first named a revision newer than the served one; None: it named none."""
        self._digest = ""
        """Of the manifest that is served, as the store names it; empty while the store has not named it yet."""
        self.refusal: Refusal | None = None
        """Why the newest revision is not served, where waiting does not help."""
        metrics.age_s.set_function(self.age_s)
        metrics.in_sync.set_function(self.is_in_sync)
        metrics.behind_s.set_function(self.behind_s)

    async def run(self) -> None:
        """Follow for ever."""
        await run_together(self._listen(), self._poll(), self._apply_news())

    def age_s(self) -> float:
        """Return the seconds since the store last named the table that is served; NaN if it never did."""
        return float("nan") if self._confirmed_at is None else self._clock() - self._confirmed_at

    def behind_s(self) -> float:
        """Return the seconds since a revision is known that is newer than the served one; 0: none is."""
        return 0.0 if self._lagging_since is None else self._clock() - self._lagging_since

    def is_in_sync(self) -> bool:
        """Whether the store was heard of lately and names what is served."""
        heard = self._heard_at is not None and self._clock() - self._heard_at < SYNC_TIMEOUT_S
        return heard and self._wanted is None and self._behind is None and self._applier.version is not None

    async def _listen(self) -> None:
        async for pointer in self._store.follow(self._table):
            self._consider(pointer)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            pointer = await self._read_pointer()
            if pointer is not None:
                self._consider(pointer)

    async def _read_pointer(self) -> Pointer | None:
        try:
            return await self._store.read_pointer(self._table)
        except StoreUnavailable:
            return None  # The bus logs that it is away; the table's age shows it.
        except HeadgateError as error:
            _log.error("the pointer cannot be read", extra={"table": self._table, "error": str(error)})
            return None

    def _consider(self, pointer: Pointer) -> None:
        """Accept only what is greater than the served version, or is that one with a manifest that we do not know."""
        self._heard_at = self._clock()
        served = self._applier.version
        if pointer.version == served and pointer.manifest_digest == self._digest:
            self._behind = self._lagging_since = None
            self._confirmed_at = self._heard_at
        elif served is None or pointer.version >= served:
            self._behind = None
            self._wanted = pointer
            self._lagging_since = self._heard_at if self._lagging_since is None else self._lagging_since
            self._news.set()
        elif self._wanted is None:
            self._note_older(pointer)

    def _note_older(self, pointer: Pointer) -> None:
        if self._behind != pointer:
            _log.warning(
                "the store is behind this gateway and is not followed until it has a newer epoch",
                extra={"table": self._table, "store": str(pointer.version), "served": str(self._applier.version)},
            )
            self._on_trouble()
        self._behind, self._lagging_since = pointer, None

    async def _apply_news(self) -> None:
        retry_s = self._first_retry_s
        refused: tuple[Pointer, str] | None = None
        while True:
            await self._news.wait()
            self._news.clear()
            wanted = self._wanted
            if wanted is None:
                continue
            try:
                await self._apply(wanted)
            except HeadgateError as error:
                if refused != (wanted, str(error)):
                    self._note_refusal(wanted, error)
                refused = (wanted, str(error))
                await self._wait_for_news(retry_s)
                retry_s = min(retry_s * 2, LAST_RETRY_S)
            else:
                retry_s, refused, self.refusal = self._first_retry_s, None, None

    def _note_refusal(self, pointer: Pointer, error: HeadgateError) -> None:
        is_passing = isinstance(error, StoreUnavailable | NotFound)
        self.refusal = None if is_passing else Refusal(version=pointer.version, reason=str(error))
        self._on_trouble()
        _log.log(
            logging.WARNING if is_passing else logging.ERROR,
            "revision not applied, the last good table stays",
            extra={"table": pointer.table, "version": str(pointer.version), "error": str(error)},
            exc_info=error.__cause__ if isinstance(error, TableRefused) else None,
        )

    async def _apply(self, pointer: Pointer) -> None:
        served = self._applier.manifest
        if served is None or pointer.version >= served.version:
            manifest = await self._store.manifest_of(pointer)
            _check(manifest, pointer)
            if manifest != served:
                if served is not None and manifest.version == served.version:
                    _log_other_content(pointer)
                await self._applier.apply(manifest, self._store.get_chunks)
            self._digest = pointer.manifest_digest
        self._confirmed_at = self._clock()
        if self._wanted == pointer:
            self._wanted = self._lagging_since = None
        else:
            self._news.set()

    async def _wait_for_news(self, delay_s: float) -> None:
        """Wait before trying again, less if there is news; by then the store may want something else."""
        try:
            async with asyncio.timeout(delay_s * random.uniform(0.75, 1.25)):  # noqa: S311 - jitter
                await self._news.wait()
        except TimeoutError:
            self._news.set()
            pointer = await self._read_pointer()
            if pointer is not None:
                self._wanted = None
                self._consider(pointer)


def _check(manifest: Manifest, pointer: Pointer) -> None:
    if (manifest.table, manifest.version) != (pointer.table, pointer.version):
        raise TableRefused(
            f"the store gave manifest {manifest.table} {manifest.version} for {pointer.table} {pointer.version}"
        )


def _log_other_content(pointer: Pointer) -> None:
    _log.warning(
        "the store has other content under the version that is served here, and is followed",
        extra={"table": pointer.table, "version": str(pointer.version)},
    )
