"""A real NATS server for a test.

    async with real_nats() as (server, url): ...
    async with real_bus() as (server, bus): ...

Nothing is faked: a server of its own on a free port, a few hundredths of a second to start. `server.kill()` and
`server.start()` crash and revive it on the same port and store; `lose_store(server)` forgets everything in between.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.stores.nats import NatsStores


@asynccontextmanager
async def real_nats(store_dir: Path | None = None) -> AsyncIterator[tuple[EmbeddedNats, str]]:
    """Run a server; its folder is removed afterwards unless it was given."""
    folder = store_dir or Path(tempfile.mkdtemp(prefix="headgate-nats-"))
    server = EmbeddedNats(folder)
    try:
        await server.start()
        yield server, server.url
    finally:
        await server.kill()
        if store_dir is None:
            shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def real_bus(name: str = "test") -> AsyncIterator[tuple[EmbeddedNats, Bus]]:
    """Run a server and a bus connected to it."""
    async with real_nats() as (server, url):
        bus = await Bus.connect(url, name=name)
        try:
            yield server, bus
        finally:
            await bus.close()


@asynccontextmanager
async def real_stores(chunk_grace_s: float = 0.0) -> AsyncIterator[NatsStores]:
    """Run a server and open all stores on it."""
    async with real_bus() as (_, bus):
        yield await NatsStores.open(bus, chunk_grace_s=chunk_grace_s)


async def lose_store(server: EmbeddedNats) -> None:
    """Crash the server and start it with an empty store on the same port."""
    await server.kill()
    shutil.rmtree(server.store_dir / "jetstream", ignore_errors=True)
    await server.start()
