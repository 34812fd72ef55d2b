"""Opening the stores of tables, however long that takes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headgate.common.bus.connection import Bus
from headgate.common.stores.nats import FOR_GATEWAYS, NatsStores, Upkeep
from headgate.common.stores.opening import OpenTables, choose_redis, tables_of
from headgate.common.stores.tables import TableStores
from headgate.gateway.settings import GatewaySettings


def choose_stores(settings: GatewaySettings, name: str) -> OpenTables:
    """Return what opens the stores that the settings name. With Redis, a gateway needs no NATS."""
    return choose_redis(settings, name) or (lambda: _open_nats_tables(settings, name))


@asynccontextmanager
async def _open_nats_tables(settings: GatewaySettings, name: str) -> AsyncIterator[TableStores]:
    """Connect and make sure of the streams."""
    bus = await Bus.connect(settings.nats, name=name)
    try:
        stores = await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_GATEWAYS)
        yield tables_of(stores)
    finally:
        await bus.close()
