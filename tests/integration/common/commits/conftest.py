"""What tests of commits begin with."""

from collections.abc import AsyncIterator

import pytest

from fakes.stores.nats import real_bus
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.snapshots import NatsSnapshotStore


@pytest.fixture
async def started() -> AsyncIterator[tuple[EmbeddedNats, Bus, NatsSnapshotStore]]:
    """A server, a bus, and a store of which nothing is known."""
    async with real_bus() as (server, bus):
        yield server, bus, (await NatsStores.open(bus)).snapshots
