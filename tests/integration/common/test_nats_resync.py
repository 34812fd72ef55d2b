"""Watchers hear that they are asked to compare, on every client that the bus comes to have."""

import asyncio
from contextlib import suppress

from fakes.stores.nats import real_bus
from headgate.common.bus.connection import Bus
from headgate.common.bus.resync import ask_for_resync, heed_resync
from headgate.common.errors import StoreUnavailable
from headgate.common.service.tasks import cancel

BOUND_S = 30.0


async def ask_until(asking: Bus, asked: asyncio.Event) -> None:
    """Ask again and again, as a translator does."""
    async with asyncio.timeout(BOUND_S):
        while not asked.is_set():
            with suppress(StoreUnavailable):  # it is reconnecting
                await ask_for_resync(asking)
            await asyncio.sleep(0.05)
    asked.clear()


async def test_a_watcher_hears_over_restarts_and_on_new_clients() -> None:
    asked = asyncio.Event()
    async with real_bus() as (server, bus):
        asking = await Bus.connect(server.url, name="asking")
        heeding = asyncio.create_task(heed_resync(bus, asked.set))
        try:
            await ask_until(asking, asked)
            await server.kill()
            await server.start()
            await ask_until(asking, asked)
            await bus.nc.close()  # for good: the bus makes another one
            await ask_until(asking, asked)
        finally:
            await cancel(heeding)
            await asking.close()
