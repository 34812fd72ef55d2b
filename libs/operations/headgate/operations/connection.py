"""Connecting to the stores of a running Headgate, for as long as a question takes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from headgate.common.errors import StoreUnavailable
from headgate.common.stores.opening import Stores, combine, open_tables
from headgate.common.stores.settings import StoreSettings
from headgate.operations.errors import StoresUnreachable

CONNECT_S = 3.0
"""A server that is there answers in milliseconds, and a person waits for the answer."""
ANSWER_S = 30.0


@asynccontextmanager
async def connected(
    settings: StoreSettings, nats_url: str, *, name: str = "headgate", answer_s: float | None = ANSWER_S
) -> AsyncIterator[Stores]:
    """Open all stores; they are closed on exit.

    Args:
        settings: everything about NATS and the store of tables but the address of NATS.
        nats_url: that address.
        name: of this process, as the servers' lists of clients show it.
        answer_s: seconds that all of it may take; None: for ever.

    Raises:
        StoresUnreachable: no server is there, or the stores did not answer in time.
    """
    # The client brings aiohttp along: hundreds of modules, which answers from files do without.
    from headgate.common.bus.connection import Bus
    from headgate.common.stores.nats import NatsStores, Upkeep

    bus = await Bus.connect(replace(settings.nats, url=nats_url), name=name, wait_s=CONNECT_S)
    try:
        if not bus.is_connected:
            raise StoresUnreachable(f"no NATS server answers at {bus.address}: start it, or give --nats-url URL")
        async with asyncio.timeout(answer_s):
            stores = NatsStores(bus, upkeep=Upkeep(makes_streams=False))
            await stores.ensure()
            async with open_tables(settings, stores, name, wait_s=CONNECT_S) as tables:
                yield combine(stores, tables)
    except (StoreUnavailable, TimeoutError) as error:
        raise StoresUnreachable(f"no answer from the stores (NATS at {bus.address}): {error or 'timeout'}") from error
    finally:
        await bus.close()
