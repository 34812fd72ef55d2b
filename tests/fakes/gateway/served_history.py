"""A table with a history: a real NATS server, a translator on it, and the `headgate` command asking about it.

async with served_history() as history:
    await history.say(ingress("web", host="a.example"))
    answer = await history.ask("history")
"""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

from fakes.command import Answer
from fakes.stores.nats import real_bus
from fakes.translator.deltas import applied, deleted, ref_of
from fakes.translator.loop import fill, running
from headgate.cli.__main__ import main
from headgate.common.bus.connection import Bus
from headgate.common.bus.planning import PlanAnswering, Planner
from headgate.common.deltas import Author, Delta, last_good_subject
from headgate.common.errors import StoreUnavailable
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.log import delta_stream
from headgate.common.stores.reading import read_entries
from headgate.common.table import TableEntry, entry_key
from headgate.common.traffic import TrafficSummary
from headgate.translator.planning.desk import PlanningDesk

BOUND_S = 60.0


class History:
    """The server's stores, and everything that a test does with them."""

    def __init__(self, stores: NatsStores, url: str) -> None:
        self.stores = stores
        self.url = url

    async def ask(self, *arguments: str, code: int | None = 0) -> Answer:
        """Run the command in a thread, as it has an event loop of its own; `code` None takes any exit code."""
        out, err = io.StringIO(), io.StringIO()

        def run() -> int:
            with redirect_stdout(out), redirect_stderr(err):
                return main([arguments[0], f"--nats-url={self.url}", *arguments[1:]])

        answer = Answer(await asyncio.to_thread(run), out.getvalue(), err.getvalue())
        assert code in (None, answer.code), answer
        return answer

    async def say(self, *manifests: Any, author: str = "", gone: Sequence[Any] = ()) -> Version:
        """Append to the log, as a watcher does; return the revision that all of it is in."""
        deltas = [applied(manifest) for manifest in manifests] + [deleted(manifest) for manifest in gone]
        last = 0
        for delta in deltas:
            by = Author(author) if author and delta.object is not None else None
            last = await self.stores.log_writer.append(delta.model_copy(update={"author": by}))
        return (await self.until(lambda manifest: manifest.inputs.get("a", 0) >= last)).version

    async def append(self, delta: Delta) -> int:
        """Append one delta without waiting for a revision."""
        return await self.stores.log_writer.append(delta)

    async def insist(self, ask: Callable[[], Awaitable[Any]]) -> None:
        """Do something that the server may not be ready for yet."""
        async with asyncio.timeout(BOUND_S):
            while True:
                try:
                    await ask()
                except StoreUnavailable:
                    await asyncio.sleep(0.05)
                else:
                    return

    async def manifest(self) -> Manifest | None:
        """Return the current revision."""
        pointer = await self.stores.snapshots.read_pointer("default")
        return await self.stores.snapshots.get_manifest("default", pointer.version) if pointer else None

    async def until(self, is_reached: Any) -> Manifest:
        """Return the first current revision that satisfies a condition."""
        async with asyncio.timeout(BOUND_S):
            while True:
                with suppress(StoreUnavailable):  # a server that a test restarts
                    manifest = await self.manifest()
                    if manifest is not None and is_reached(manifest):
                        return manifest
                await asyncio.sleep(0.02)

    async def until_written(self, manifest: Any) -> None:
        """Wait until the log has a record of the last good version of an object."""
        log, subject = delta_stream(self.stores.bus), last_good_subject(ref_of(manifest), "default")
        async with asyncio.timeout(BOUND_S):
            while await log.last(subject) is None:  # noqa: ASYNC110 - the log has no event for one subject
                await asyncio.sleep(0.02)

    async def until_served(self) -> None:
        """Wait until a gateway has said that it is there."""
        async with asyncio.timeout(BOUND_S):
            while not await self.stores.heartbeats.live():  # noqa: ASYNC110 - the board has no event
                await asyncio.sleep(0.02)

    async def until_heard_of(self, *replicas: str) -> None:
        """Wait until gateways have said that they serve the current revision."""
        async with asyncio.timeout(BOUND_S):
            while True:
                manifest, beats = await self.manifest(), await self.stores.heartbeats.live()
                serving = {beat.replica for beat in beats if manifest and beat.version == manifest.version}
                if serving >= set(replicas):
                    return
                await asyncio.sleep(0.02)

    async def until_counted(self, replica: str) -> None:
        """Wait until a gateway has said how it does with what is rolled out."""
        async with asyncio.timeout(BOUND_S):
            while True:
                for beat in await self.stores.heartbeats.live():
                    if beat.replica == replica and beat.rollout and beat.rollout.all.requests:
                        return
                await asyncio.sleep(0.02)

    async def until_status(self, name: str, reason: str) -> str:
        """Wait until an object's status has a reason; return what the command says of it."""
        async with asyncio.timeout(BOUND_S):
            while reason not in (answer := await self.ask("status", name, code=None)).out:  # noqa: ASYNC110 - a command
                await asyncio.sleep(0.05)
        return answer.out

    async def table(self) -> dict[str, TableEntry]:
        """Return the entries that are served."""
        manifest = await self.manifest()
        assert manifest is not None
        return {entry_key(entry): entry for entry in await read_entries(self.stores.snapshots, manifest.chunks)}


@asynccontextmanager
async def served_history(*manifests: Any, plans: bool = False, **settings: Any) -> AsyncIterator[History]:
    """Serve the table that some objects of cluster `a` make; `plans`: by a translator that answers about plans."""
    async with empty_history() as history:
        await fill(history.stores, *manifests)
        async with running(history.stores, **settings) as translator, AsyncExitStack() as stacked:
            if plans:
                await stacked.enter_async_context(planning(history.stores.bus, PlanningDesk(translator).plan))
            await history.until(lambda _: True)
            yield history


@asynccontextmanager
async def planning(bus: Bus, plan: Planner) -> AsyncIterator[None]:
    """Answer questions about plans of the table `default`."""
    answering = asyncio.create_task(PlanAnswering(bus, "default", plan).run())
    try:
        await asyncio.sleep(0)  # in which it subscribes
        await bus.nc.flush()
        yield
    finally:
        await cancel(answering)


@asynccontextmanager
async def empty_history() -> AsyncIterator[History]:
    """Run a server on which nobody has said anything, without a translator."""
    async with real_bus() as (server, bus):
        yield History(await NatsStores.open(bus), server.url)


@asynccontextmanager
async def told(*summaries: TrafficSummary) -> AsyncIterator[History]:
    """Run a server on which this is told of traffic again and again, as a command listens at some time."""

    async def tell(history: History) -> None:
        while True:
            for each in summaries:
                await history.stores.traffic.tell(each)
            await asyncio.sleep(0.1)

    async with empty_history() as history:
        telling = asyncio.create_task(tell(history))
        try:
            yield history
        finally:
            await cancel(telling)
