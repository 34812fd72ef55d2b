"""A cluster of three servers: every stream on all of them, and one that is lost costs a retry and no commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.stores.nats_cluster import NatsCluster, nats_cluster
from fakes.stores.nats_servers import NatsServer
from headgate.common.bus.connection import Bus
from headgate.common.deltas import Delta, Operation
from headgate.common.errors import Conflict, StoreUnavailable
from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pointer, Version, digest_of
from headgate.common.stores import LogReplay
from headgate.common.stores.nats import FOR_GATEWAYS, NatsStores, Upkeep

pytestmark = pytest.mark.slow
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOUND_S = 40.0
"""A lost leader is replaced in four to nine seconds, which is the servers' own measure."""
STREAMS = ("HEADGATE_DELTAS", "HEADGATE_STATUS", "KV_HEADGATE_TABLES", "KV_HEADGATE_GATEWAYS")


def delta(number: int) -> Delta:
    return Delta(
        ref=ObjectRef("local", "", "services", "default", f"n{number}"),
        operation=Operation.APPLY,
        uid=f"uid-{number}",
        resource_version="1",
        observed_at=NOW,
        object={"metadata": {"name": f"n{number}"}},
    )


class Writers:
    """Commits tables and appends deltas all the time, as a translator and a watcher do, and repeats what fails."""

    def __init__(self, tables: NatsStores, log: NatsStores) -> None:
        self._tables, self._log = tables, log
        self.committed: list[Version] = []
        self.appended: list[str] = []
        self.errors: list[Exception] = []
        self._moved = asyncio.Condition()

    async def commit_for_ever(self) -> None:
        before: Pointer | None = None
        while True:
            version = Version(1, before.version.revision + 1 if before else 1)
            content = f'["{version}"]'.encode()
            chunk = Chunk("hosts", "", digest_of(content), content)
            name = ChunkName(kind=chunk.kind, prefix="", digest=chunk.digest)
            try:
                await self._tables.snapshots.put_chunks([chunk])
                before = await self._tables.snapshots.commit(
                    Manifest(table="default", version=version, created_at=NOW, chunks=(name,)), before
                )
            except StoreUnavailable as error:
                self.errors.append(error)
                await asyncio.sleep(0.1)
            except Conflict:  # it was made, and not confirmed
                before = await self._tables.snapshots.read_pointer("default")
            else:
                self.committed.append(version)
                await self._tell()
                await asyncio.sleep(0.02)

    async def append_for_ever(self) -> None:
        number = 0
        while True:
            try:
                await self._log.log_writer.append(delta(number), 0)
            except StoreUnavailable as error:
                self.errors.append(error)
                await asyncio.sleep(0.1)
            except Conflict:
                number += 1
            else:
                self.appended.append(f"n{number}")
                number += 1
                await self._tell()
                await asyncio.sleep(0.02)

    async def _tell(self) -> None:
        async with self._moved:
            self._moved.notify_all()

    async def go_on(self, count: int = 10) -> None:
        """Wait until so many more commits and deltas were confirmed."""
        committed, appended = len(self.committed) + count, len(self.appended) + count
        async with asyncio.timeout(BOUND_S), self._moved:
            await self._moved.wait_for(lambda: len(self.committed) >= committed and len(self.appended) >= appended)


class Readers:
    """Follows tables and log, as a gateway and a translator do."""

    def __init__(self, tables: NatsStores, log: NatsStores) -> None:
        self._tables, self._log = tables, log
        self.seen: list[Version] = []
        self.names: set[str] = set()
        self.replays = 0

    async def follow_tables(self) -> None:
        async with aclosing(self._tables.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
            async for pointer in pointers:
                self.seen.append(pointer.version)

    async def follow_log(self) -> None:
        async with aclosing(self._log.log_reader.follow()) as log:  # type: ignore[type-var]
            async for item in log:
                if isinstance(item, LogReplay):
                    self.replays += 1
                else:
                    self.names.update(message.ref.name for message in item if isinstance(message, Delta))

    async def catch_up(self, writers: Writers) -> None:
        """Wait until everything was seen that is confirmed."""
        version, names = writers.committed[-1], set(writers.appended)
        async with asyncio.timeout(BOUND_S):
            while not (self.seen and self.seen[-1] >= version and names <= self.names):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.02)


@asynccontextmanager
async def busy(cluster: NatsCluster) -> AsyncIterator[tuple[NatsStores, Writers, Readers]]:
    async with (
        cluster.connect("translator") as translating,
        cluster.connect("watcher-local") as watching,
        cluster.connect("gateway") as serving,
    ):
        tables = await NatsStores.open(translating)
        replica = await NatsStores.open(serving, upkeep=Upkeep(makes_streams=False), needs=FOR_GATEWAYS)
        writers = Writers(tables, NatsStores(watching, upkeep=Upkeep(makes_streams=False)))
        readers = Readers(replica, tables)
        work = (
            *(writers.commit_for_ever(), writers.append_for_ever()),
            *(readers.follow_tables(), readers.follow_log()),
        )
        tasks = [asyncio.create_task(one) for one in work]
        try:
            await writers.go_on()
            yield tables, writers, readers
            for task in tasks:
                assert not task.done(), task.result()
        finally:
            await cancel(*tasks)


async def leader_of(cluster: NatsCluster, bus: Bus, stream: str) -> NatsServer:
    info = await bus.js.stream_info(stream)
    assert info.cluster is not None
    [server] = [server for server in cluster.servers if server.name == info.cluster.leader]
    return server


async def replicas(bus: Bus) -> set[int | None]:
    return {(await bus.js.stream_info(stream)).config.num_replicas for stream in STREAMS}


async def test_every_stream_is_on_three_servers_unless_the_settings_say_another_number(tmp_path: Path) -> None:
    async with (
        nats_cluster(tmp_path) as cluster,
        cluster.connect("admin") as admin,
        cluster.connect("translator") as bus,
        asyncio.timeout(BOUND_S),
    ):
        await NatsStores.open(bus, upkeep=Upkeep(replicas=1))
        assert await replicas(admin) == {1}
        await NatsStores.open(bus)
        assert await replicas(admin) == {3}
        await NatsStores.open(bus, upkeep=Upkeep(replicas=1))
        assert await replicas(admin) == {1}


async def test_a_killed_leader_costs_a_retry_and_nothing_that_was_confirmed(tmp_path: Path) -> None:
    async with (
        nats_cluster(tmp_path) as cluster,
        cluster.connect("admin") as admin,
        busy(cluster) as (tables, writers, readers),
    ):
        lost = await leader_of(cluster, admin, "KV_HEADGATE_TABLES")
        await lost.kill()
        await writers.go_on()
        await lost.start()
        await writers.go_on()
        await readers.catch_up(writers)
        committed, appended = list(writers.committed), set(writers.appended)
        kept = await tables.snapshots.versions("default")
        state = await tables.log_writer.read_state("local")
    assert committed == sorted(set(committed))
    assert set(committed) <= set(kept)
    assert appended <= {ref.name for ref in state}
    assert readers.seen == sorted(readers.seen)
    assert readers.replays == 1


async def test_servers_that_are_restarted_one_by_one_cost_no_more_than_a_retry_each(tmp_path: Path) -> None:
    async with nats_cluster(tmp_path) as cluster, busy(cluster) as (tables, writers, readers):
        for server in cluster.servers:
            await server.stop()
            await writers.go_on()
            await server.start()
            await writers.go_on()
        await readers.catch_up(writers)
        committed = set(writers.committed)
        kept = await tables.snapshots.versions("default")
    assert committed <= set(kept)
    assert readers.seen == sorted(readers.seen)
