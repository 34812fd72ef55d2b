"""Deltas, recorded logs and commits on a NATS server that suffers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

from fakes.stores.nats import real_bus
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.deltas import Delta, LogMessage, Operation
from headgate.common.errors import StoreUnavailable
from headgate.common.resources import ObjectRef
from headgate.common.stores import LogReplay
from headgate.common.stores.nats import NatsStores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

BOUND_S = 30.0


def delta(name: str, version: str = "1", size: int = 0) -> Delta:
    return Delta(
        ref=ObjectRef("c1", "", "services", "default", name),
        operation=Operation.APPLY,
        uid=f"uid-{name}",
        resource_version=version,
        observed_at=NOW,
        object={"metadata": {"name": name}, "filler": "x" * size},
    )


async def insist(operation: Callable[[], Awaitable[object]]) -> None:
    """Repeat while the store is away, as services do."""
    async with asyncio.timeout(BOUND_S):
        while True:
            try:
                await operation()
            except StoreUnavailable:
                await asyncio.sleep(0.02)
            else:
                return


class LogRecorder:
    """Follows the log and keeps what a translator would know."""

    def __init__(self, stores: NatsStores) -> None:
        self._stores = stores
        self.replays: list[LogReplay] = []
        self.versions: dict[str, str] = {}
        self.sequences: list[int] = []
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        async with aclosing(self._stores.log_reader.follow()) as log:  # type: ignore[type-var]
            async for item in log:
                async with self._changed:
                    self._take(item)
                    self._changed.notify_all()

    def _take(self, item: Sequence[LogMessage] | LogReplay) -> None:
        if isinstance(item, LogReplay):
            self.replays.append(item)
            self.versions.clear()
            self.sequences.clear()
            return
        for message in item:
            assert isinstance(message, Delta)
            self.versions[message.ref.name] = message.resource_version
            self.sequences.append(message.sequence)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND_S), self._changed:
            await self._changed.wait_for(condition)


@asynccontextmanager
async def recorded() -> AsyncIterator[tuple[EmbeddedNats, NatsStores, LogRecorder]]:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        recorder = LogRecorder(stores)
        task = asyncio.create_task(recorder.run())
        try:
            await recorder.until(lambda: bool(recorder.replays))
            yield server, stores, recorder
        finally:
            task.cancel()
            await asyncio.wait([task])
