"""Opening the stores of tables, however long that takes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from headgate.common.bus import Bus
from headgate.common.stores.nats import FOR_GATEWAYS, NatsStores, Upkeep
from headgate.common.stores.tables import TableStores
from headgate.gateway.settings import GatewaySettings

OpenStores = Callable[[], AbstractAsyncContextManager[TableStores]]
"""Opens the stores, however long that takes, and closes them on exit."""


def choose_stores(settings: GatewaySettings, name: str) -> OpenStores:
    """Return what opens the stores that the settings name. With Redis, a gateway needs no NATS."""
    target = settings.redis
    if target is None:
        return lambda: _open_nats_tables(settings, name)
    # Imported for those who need it, as it costs 24 MB, and before there is traffic, as it takes 0.15 s.
    from headgate.common.stores.redis.stores import open_tables

    return lambda: open_tables(target, name)


@asynccontextmanager
async def _open_nats_tables(settings: GatewaySettings, name: str) -> AsyncIterator[TableStores]:
    """Connect and make sure of the streams."""
    bus = await Bus.connect(settings.nats, name=name)
    try:
        stores = await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_GATEWAYS)
        yield TableStores(stores.snapshots, stores.heartbeats, stores.leases)
    finally:
        await bus.close()
