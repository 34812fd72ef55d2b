"""Making a revision the one that is served: fetch what is missing, compile in slices, swap.

Between any two chunks the event loop gets to run traffic; the swap itself is one synchronous step. Whatever goes wrong
before it leaves the last good table as it was.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, nullcontext

from headgate.common.errors import HeadgateError
from headgate.common.service.tasks import cancel
from headgate.common.service.telemetry import span_from
from headgate.common.service.uncollected import uncollected
from headgate.common.snapshot import ChunkName, Manifest, Version, open_chunk
from headgate.gateway.errors import TableRefused
from headgate.gateway.following.last_good import StoredTable
from headgate.gateway.model.steps import Steps
from headgate.gateway.observability.metrics import Stopwatch, TableMetrics
from headgate.gateway.table.certificates import OpenedCertificate
from headgate.gateway.table.compiled_table import CompiledTable
from headgate.gateway.table.compiler import TableCompiler, TableUpdate

_log = logging.getLogger(__name__)

FETCHES_AT_ONCE = 32
"""Chunks asked for at a time. While they are compiled the next ones come, so twice as many are held, compressed."""
CERTIFICATES_AT_ONCE = 100
"""Presented between two turns of the event loop: about a millisecond."""
Fetch = Callable[[Sequence[ChunkName]], Awaitable[Sequence[bytes]]]
"""Returns chunks as they are stored; raises a HeadgateError."""
Open = Callable[[ChunkName, bytes], bytes]
"""Returns the verified content of a chunk that was fetched; raises a HeadgateError."""


class TableApplier:
    """Applies manifests one after the other.

    Args:
        compiler: compiled state of the table.
        swap: has all ports ask a table from now on.
        metrics: what to tell about it.
        on_certificates: takes the certificates that are new or changed, and the keys of those that are gone.
        on_applied: called after each swap.
        on_ports: called whenever the table may ask for other ports, or for others' use of them.
        replica: name of this one; those that a rollout names get another table.
    """

    def __init__(
        self,
        compiler: TableCompiler,
        swap: Callable[[CompiledTable], None],
        metrics: TableMetrics,
        on_certificates: Callable[[Sequence[OpenedCertificate], Collection[str]], None],
        on_applied: Iterable[Callable[[Manifest], None]] = (),
        on_ports: Callable[[], None] = lambda: None,
        replica: str = "",
    ) -> None:
        self._compiler = compiler
        self._swap_routers = swap
        self._metrics = metrics
        self._on_certificates = on_certificates
        self._on_applied = tuple(on_applied)
        self._on_ports = on_ports
        self._replica = replica
        self._refused: set[str] = set()
        """Certificates whose newest version cannot be used."""
        self.manifest: Manifest | None = None
        """Of the table that is served."""

    @property
    def version(self) -> Version | None:
        """Version that is served; None before the first table."""
        return self.manifest.version if self.manifest else None

    @property
    def pinned(self) -> Version | None:
        """Old revision that the table is pinned to."""
        return self.manifest.pin.version if self.manifest and self.manifest.pin else None

    @property
    def routes(self) -> Version | None:
        """While the table is rolled out, the revision whose routes are served."""
        return self.manifest.routes_of(self._replica) if self.manifest and self.manifest.rollout else None

    def stored_table(self) -> StoredTable | None:
        """Return what is served in the form for the disk."""
        if self.manifest is None:
            return None
        stored = {name.digest: content for name, content in self._compiler.stored_chunks()}
        is_part = self._compiler.part is not None
        return StoredTable(self.manifest, stored, self.manifest.served_by(self._replica), is_part)

    async def apply(self, manifest: Manifest, fetch: Fetch, opened: Open = open_chunk) -> None:
        """Serve a revision from now on.

        Args:
            manifest: of the revision.
            fetch: gives the chunks that are missing.
            opened: gives the content of one of them.

        Raises:
            HeadgateError: it cannot be fetched or compiled; what was served still is.
        """
        with uncollected() if self.manifest is None else nullcontext():
            await self._apply(manifest, fetch, opened)

    async def _apply(self, manifest: Manifest, fetch: Fetch, opened: Open) -> None:
        started = time.perf_counter()
        watch = Stopwatch()
        with span_from(manifest.traceparent, "gateway.apply_table"):
            try:
                update = self._compiler.stage(manifest.version, manifest.served_by(self._replica))
                await _fill(update, fetch, opened, watch)
                table = self._swap(update, manifest, watch)
            except HeadgateError:
                self._metrics.refusals.inc()
                raise
            await self._settle(update, watch)
            took_s = time.perf_counter() - started
            self._show(manifest, table, took_s, watch.longest_s)
            # Within the span, so that the line has the trace of the change that led to it.
            _log.info(
                "table applied",
                extra={
                    "table": manifest.table,
                    "version": str(manifest.version),
                    "chunks": len(update.needed),
                    "ms": round(took_s * 1000, 1),
                    "longest_step_ms": round(watch.longest_s * 1000, 1),
                },
            )
        for notify in self._on_applied:
            notify(manifest)

    def _swap(self, update: TableUpdate, manifest: Manifest, watch: Stopwatch) -> CompiledTable:
        watch.begin()
        table = update.commit()
        self._swap_routers(table)
        self.manifest = manifest
        watch.end()
        if update.changes_ports:
            watch.begin()
            self._on_ports()
            watch.end()
        return table

    async def _settle(self, update: TableUpdate, watch: Stopwatch) -> None:
        """Do what need not be in the same instant as the swap, letting traffic run after each step.

        It begins with the swap, and nothing of it is left out if the gateway is told to stop meanwhile.
        """
        steps = itertools.chain(self._present_certificates(*update.certificates), update.settling)
        try:
            watch.begin()
            for _ in steps:
                watch.end()
                await asyncio.sleep(0)
                watch.begin()
            watch.end()
        finally:
            for _ in steps:
                pass

    def _present_certificates(self, arrived: Mapping[str, OpenedCertificate], gone: Collection[str]) -> Steps[None]:
        self._refused.difference_update(gone, arrived)
        for key, opened in arrived.items():
            if opened.problem:
                self._refused.add(key)
                _log.error("certificate refused", extra={"certificate": key, "problem": opened.problem})
        self._metrics.refused_certificates.set(len(self._refused))
        certificates, keys = list(arrived.values()), list(gone)
        for start in range(0, len(certificates), CERTIFICATES_AT_ONCE):
            self._on_certificates(certificates[start : start + CERTIFICATES_AT_ONCE], ())
            yield
        # Last, so that a name that goes from one to another always has one.
        for start in range(0, len(keys), CERTIFICATES_AT_ONCE):
            self._on_certificates((), keys[start : start + CERTIFICATES_AT_ONCE])
            yield

    def _show(self, manifest: Manifest, table: CompiledTable, took_s: float, longest_step_s: float) -> None:
        metrics = self._metrics
        metrics.show_version(manifest.version)
        metrics.swaps.inc()
        metrics.apply_s.observe(took_s)
        metrics.longest_step_s.set(longest_step_s)
        metrics.hosts.set(len(table.hosts))
        metrics.endpoints.set(self._compiler.endpoint_count)
        metrics.consumers.set(self._compiler.consumer_directory.count)


async def _fill(update: TableUpdate, fetch: Fetch, opened: Open, watch: Stopwatch) -> None:
    """Add every chunk that is needed, letting traffic run after each step."""
    for names in update.rounds():
        async with aclosing(_fetch_ahead(names, fetch)) as fetched:
            async for name, stored in fetched:
                await _in_slices(_add(update, name, stored, opened), watch)
                await asyncio.sleep(0)
    await _in_slices(_prepare(update), watch)


async def _fetch_ahead(names: Sequence[ChunkName], fetch: Fetch) -> AsyncGenerator[tuple[ChunkName, bytes]]:
    """Yield chunks as they are stored; while the caller has some of them, the next ones are under way."""
    groups = [names[start : start + FETCHES_AT_ONCE] for start in range(0, len(names), FETCHES_AT_ONCE)]
    coming: asyncio.Future[Sequence[bytes]] | None = None
    try:
        for number, group in enumerate(groups):
            fetched = await (coming or fetch(group))
            rest = groups[number + 1 : number + 2]
            coming = asyncio.ensure_future(fetch(rest[0])) if rest else None
            for each in zip(group, fetched, strict=True):
                yield each
    finally:
        if coming is not None:
            await cancel(coming)


async def _in_slices(steps: Iterator[None], watch: Stopwatch) -> None:
    """Take steps, letting traffic run after each."""
    watch.begin()
    for _ in steps:
        watch.end()
        await asyncio.sleep(0)
        watch.begin()
    watch.end()


def _add(update: TableUpdate, name: ChunkName, stored: bytes, opened: Open) -> Iterator[None]:
    try:
        yield from update.add(name, opened(name, stored), stored)
    except HeadgateError:
        raise
    except Exception as error:
        # Whatever an entry makes the compiler trip over must cost this revision only, never the gateway.
        raise TableRefused(f"chunk {name.digest[:12]} of {name.kind} cannot be compiled: {error!r}") from error


def _prepare(update: TableUpdate) -> Iterator[None]:
    try:
        yield from update.prepare()
    except Exception as error:
        raise TableRefused(f"the hosts of the listeners cannot be brought together: {error!r}") from error
