"""What every place for leases does, on each of them."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.stores.nats import lose_store, real_bus, real_stores
from fakes.stores.redis import linked, real_redis, real_tables
from headgate.common.errors import Conflict, StoreUnavailable
from headgate.common.leadership.leases import NOBODYS, Lease
from headgate.common.stores import LeaseBoard
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.jetstream import Outgoing, Stream, Upkeep
from headgate.common.stores.nats.snapshots import tables_stream
from headgate.common.stores.redis.leases import RedisLeaseBoard
from headgate.watcher.api.lease import KubernetesLeaseBoard
from headgate.watcher.api.transport import KubernetesTransport

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)


@asynccontextmanager
async def memory() -> AsyncIterator[LeaseBoard]:
    yield MemoryStores().leases


@asynccontextmanager
async def nats() -> AsyncIterator[LeaseBoard]:
    async with real_stores() as stores:
        yield stores.leases


@asynccontextmanager
async def kubernetes() -> AsyncIterator[LeaseBoard]:
    with tempfile.TemporaryDirectory() as folder:
        async with FakeKubernetes() as api:
            transport = KubernetesTransport(api.write_kubeconfig(Path(folder) / "config"))
            try:
                yield KubernetesLeaseBoard(transport, "headgate")
            finally:
                await transport.close()


@asynccontextmanager
async def redis() -> AsyncIterator[LeaseBoard]:
    async with real_tables() as tables:
        yield tables.leases


PLACES: dict[str, Callable[[], AbstractAsyncContextManager[LeaseBoard]]] = {
    "memory": memory,
    "nats": nats,
    "redis": redis,
    "kubernetes": kubernetes,
}


@pytest.fixture(params=PLACES)
async def leases(request: pytest.FixtureRequest) -> AsyncIterator[LeaseBoard]:
    async with PLACES[request.param]() as opened:
        yield opened


def lease(holder: str = "one", seconds: float = 0, transitions: int = 0) -> Lease:
    renewed_at = NOW + timedelta(seconds=seconds)
    return Lease(holder=holder, duration_s=2.0, acquired_at=NOW, renewed_at=renewed_at, transitions=transitions)


async def test_there_is_no_lease_before_the_first_is_written(leases: LeaseBoard) -> None:
    assert await leases.read("translator.default") is None


async def test_a_lease_is_read_as_it_was_written(leases: LeaseBoard) -> None:
    written = await leases.write("translator.default", lease(transitions=3), None)
    assert written.lease == lease(transitions=3)
    assert await leases.read("translator.default") == written


async def test_a_lease_is_replaced_by_whoever_read_it_last(leases: LeaseBoard) -> None:
    first = await leases.write("l", lease(), None)
    second = await leases.write("l", lease(seconds=1), first.version)
    assert second.version != first.version
    assert await leases.write("l", lease("two", seconds=2), second.version) == await leases.read("l")


async def test_a_lease_that_another_wrote_meanwhile_is_left_as_it_is(leases: LeaseBoard) -> None:
    first = await leases.write("l", lease(), None)
    second = await leases.write("l", lease(seconds=1), first.version)
    with pytest.raises(Conflict):
        await leases.write("l", lease("two"), first.version)
    assert await leases.read("l") == second


async def test_a_first_lease_is_refused_where_there_is_one(leases: LeaseBoard) -> None:
    first = await leases.write("l", lease(), None)
    with pytest.raises(Conflict):
        await leases.write("l", lease("two"), None)
    assert await leases.read("l") == first


async def test_leases_of_different_names_do_not_meet(leases: LeaseBoard) -> None:
    await leases.write("translator.default", lease(), None)
    other = await leases.write("translator.default.b", lease("two"), None)
    assert await leases.read("translator.default.b") == other


async def test_a_lease_that_was_lost_with_the_server_cannot_be_renewed() -> None:
    async with real_bus() as (server, bus):
        leases = (await NatsStores.open(bus)).leases
        first = await leases.write("l", lease(), None)
        await lose_store(server)
        await bus_is_back(leases)
        with pytest.raises(Conflict):
            await leases.write("l", lease(seconds=1), first.version)
        assert await leases.read("l") is None
        assert (await leases.write("l", lease(seconds=2), None)).lease == lease(seconds=2)


async def bus_is_back(leases: LeaseBoard) -> None:
    while True:
        try:
            await leases.read("l")
        except StoreUnavailable:
            await asyncio.sleep(0.02)
        else:
            return


async def test_a_lease_that_cannot_be_read_is_nobodys() -> None:
    async with real_bus() as (_, bus):
        leases = (await NatsStores.open(bus)).leases
        tables: Stream = tables_stream(bus, Upkeep())
        await tables.publish(Outgoing("$KV.HEADGATE_TABLES.lease.l", b"not a lease"))
        found = await leases.read("l")
        assert found is not None
        assert found.lease == NOBODYS
        assert (await leases.write("l", lease(), found.version)).lease == lease()


async def test_a_lease_that_was_lost_with_redis_cannot_be_renewed() -> None:
    async with real_redis() as server, linked(server.target) as link:
        leases = RedisLeaseBoard(link)
        first = await leases.write("l", lease(), None)
        await server.ask("FLUSHALL")
        with pytest.raises(Conflict):
            await leases.write("l", lease(seconds=1), first.version)
        assert await leases.read("l") is None


async def test_a_lease_of_redis_that_cannot_be_read_is_nobodys() -> None:
    async with real_redis() as server, linked(server.target) as link:
        leases = RedisLeaseBoard(link)
        await leases.write("l", lease(), None)
        await server.ask("HSET", "{headgate}:lease:l", "json", "not a lease")
        found = await leases.read("l")
        assert found is not None
        assert found.lease == NOBODYS
        assert (await leases.write("l", lease("two"), found.version)).lease == lease("two")
