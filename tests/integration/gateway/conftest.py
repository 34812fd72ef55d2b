"""A NATS server, and the stores on it, for gateways as processes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes.gateway.process import open_stores
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    server = EmbeddedNats(tmp_path / "nats")
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def stores(broker: EmbeddedNats) -> AsyncIterator[NatsStores]:
    bus, opened = await open_stores(broker.url)
    yield opened
    await bus.close()
