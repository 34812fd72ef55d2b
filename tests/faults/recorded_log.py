"""The delta log as it was over time, so that every table can be compared with the prefix of the log that it names."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress

from headgate.common.bus.access import NatsAccess
from headgate.common.bus.connection import Bus
from headgate.common.deltas import Delta, Operation
from headgate.common.errors import StoreError
from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import ChunkName
from headgate.common.stores import DeltaSelection
from headgate.common.stores.nats import NatsStores, Upkeep
from headgate.translator.offline import translate_all

READ_S = 2.0

Inputs = Mapping[str, int]
"""Cluster to the sequence of its last delta."""


def digest_of(chunks: Iterable[ChunkName]) -> str:
    """One digest for all chunks of a table."""
    names = sorted((chunk.kind, chunk.prefix, chunk.digest) for chunk in chunks)
    return hashlib.sha256(repr([tuple(map(str, name)) for name in names]).encode()).hexdigest()[:16]


class Line:
    """What one log said, for as long as it did not go back."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []

    @property
    def last_sequence(self) -> int:
        return self.deltas[-1].sequence if self.deltas else 0

    def until(self, inputs: Inputs) -> list[Delta]:
        """The objects as they were when these were the last deltas of the clusters."""
        last: dict[ObjectRef, Delta] = {}
        for delta in self.deltas:
            if delta.sequence <= inputs.get(delta.ref.cluster, 0):
                last[delta.ref] = delta
        return [delta for delta in last.values() if delta.operation is Operation.APPLY]


class RecordedLog:
    """Every delta that was logged; a log that was lost or restored begins a line of its own."""

    def __init__(self) -> None:
        self.lines = [Line()]
        self._digests: dict[tuple[int, tuple[tuple[str, int], ...]], str] = {}
        self._recording: asyncio.Task[None] | None = None
        self._stores: NatsStores | None = None

    def has(self, inputs: Inputs) -> bool:
        """Whether the present line goes as far."""
        return self.lines[-1].last_sequence >= max(inputs.values(), default=0)

    def take(self, deltas: Iterable[Delta]) -> None:
        """Go on with the present line."""
        self.lines[-1].deltas += deltas

    def digests(self, inputs: Inputs) -> Iterator[str]:
        """The digests of the tables that these inputs make, on every line that goes so far."""
        for number, line in enumerate(self.lines):
            if line.last_sequence >= max(inputs.values(), default=0):
                key = (number, tuple(sorted(inputs.items())))
                if key not in self._digests:
                    chunks = translate_all(line.until(inputs)).image.chunks()
                    self._digests[key] = digest_of(
                        ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest) for chunk in chunks
                    )
                yield self._digests[key]

    def forget(self) -> None:
        """Keep the present line only, and of that the last delta of each object."""
        last = {delta.ref: delta for delta in self.lines[-1].deltas}
        self.lines, self._digests = [Line()], {}
        self.lines[-1].deltas = sorted(last.values(), key=lambda delta: delta.sequence)

    @asynccontextmanager
    async def recording(self, access: NatsAccess) -> AsyncIterator[None]:
        """Record for as long as this lasts."""
        bus = await Bus.connect(access, name="recorder")
        try:
            self._stores = await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False))
            self._recording = asyncio.create_task(self._record(self._stores))
            yield
        finally:
            await self.pause()
            await bus.close()

    async def pause(self) -> None:
        """Stop before the log is lost or restored, so that two lines are never taken for one."""
        if self._stores is not None:
            with suppress(TimeoutError, StoreError):  # a log that cannot be read tells translators nothing either
                async with asyncio.timeout(READ_S):
                    await self._read_to_the_end(self._stores)
        if self._recording is not None:
            await cancel(self._recording)
            self._recording = None

    def begin_anew(self) -> None:
        """Go on with another log."""
        assert self._stores is not None
        self.lines.append(Line())
        self._recording = asyncio.create_task(self._record(self._stores))

    async def _read_to_the_end(self, stores: NatsStores) -> None:
        known = self.lines[-1].last_sequence
        async for batch in stores.log_reader.read_after(DeltaSelection(), known):
            last = batch[-1].delta.sequence
            while self.lines[-1].last_sequence < last:  # noqa: ASYNC110 - the recording has no event
                await asyncio.sleep(0.01)

    async def _record(self, stores: NatsStores) -> None:
        async for batch in stores.log_reader.tail(DeltaSelection(), 0):
            self.take(logged.delta for logged in batch)
