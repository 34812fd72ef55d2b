"""Opening the stores over NATS, however long that takes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

from headgate.common.bus import Bus
from headgate.common.stores import HeartbeatBoard, SnapshotStore
from headgate.common.stores.nats import NatsStores
from headgate.gateway.settings import GatewaySettings


class Stores(NamedTuple):
    """What a gateway needs of the bus."""

    snapshots: SnapshotStore
    heartbeats: HeartbeatBoard


OpenStores = Callable[[], AbstractAsyncContextManager[Stores]]
"""Opens the stores, however long that takes, and closes them on exit."""


@asynccontextmanager
async def open_nats_stores(settings: GatewaySettings, name: str) -> AsyncIterator[Stores]:
    """Connect and make sure of the streams, for as long as that takes."""
    bus = await Bus.connect(settings.nats, name=name)
    try:
        stores = await NatsStores.open(bus)
        yield Stores(stores.snapshots, stores.heartbeats)
    finally:
        await bus.close()
