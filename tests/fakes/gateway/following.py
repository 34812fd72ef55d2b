"""The table's half of a worker, before a store that can be shaken."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from nacl.public import PrivateKey
from prometheus_client import CollectorRegistry

from fakes.gateway.requests import PLAIN
from fakes.gateway.table import FakePools, endpoint, host, publish, route, upstream
from headgate.common.errors import StoreUnavailable
from headgate.common.sealing import Unsealer
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import ChunkName, Manifest, Pointer, Version
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.common.table.shards import Shard
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.following.apply import TableApplier
from headgate.gateway.following.follower import Follower
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.table.certificates import OpenedCertificate
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.listener_ports import OWN_HTTP
from headgate.gateway.table.port_routers import PortRouters
from headgate.gateway.table.shards.part import ShardPart

KEY = PrivateKey.generate()


class Shakable(MemorySnapshotStore):
    """A store that can be away, can keep its changes to itself, and can hold damaged bytes."""

    def __init__(self) -> None:
        self.is_away = self.is_silent = False
        self.fetched: list[ChunkName] = []
        self.refused_fetches = 0
        super().__init__()

    def _check(self) -> None:
        if self.is_away:
            raise StoreUnavailable("away")

    async def read_pointer(self, table: str) -> Pointer | None:
        self._check()
        return await super().read_pointer(table)

    async def get_manifest(self, table: str, version: Version) -> Manifest:
        self._check()
        return await super().get_manifest(table, version)

    async def get_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        self._check()
        self.fetched.extend(names)
        return await super().get_chunks(names)

    async def follow(self, table: str) -> AsyncIterator[Pointer]:
        async for pointer in super().follow(table):
            if not self.is_silent:
                yield pointer

    def damage(self, digest: str) -> None:
        self.chunks[digest] = self.chunks[digest][:-3] + b"xyz"


class Gateway:
    """The table's half of a worker."""

    def __init__(self, store: MemorySnapshotStore, replica: str = "", shard: Shard | None = None) -> None:
        self.registry = CollectorRegistry()
        routers = PortRouters()
        self.holder = routers.holder(OWN_HTTP)
        self.certificates: list[OpenedCertificate] = []
        self.slices: list[int] = []
        directory = EndpointDirectory(FakePools())
        metrics = TableMetrics(self.registry)
        part = ShardPart(shard) if shard is not None else None
        compiler = TableCompiler(directory, Unsealer([KEY]).open, part=part)
        self.applier = TableApplier(compiler, routers.swap, metrics, self._present, replica=replica)
        self.told_behind = 0
        self.follower = Follower(
            store, "default", self.applier, metrics, poll_s=0.02, first_retry_s=0.01, on_trouble=self._note_behind
        )

    def _note_behind(self) -> None:
        self.told_behind += 1

    def _present(self, arrived: Sequence[OpenedCertificate], gone: Collection[str]) -> None:
        self.slices.append(len(arrived) + len(gone))
        replaced = {*gone, *(certificate.key for certificate in arrived)}
        self.certificates = [other for other in self.certificates if other.key not in replaced] + list(arrived)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.follower.run())
        try:
            yield
        finally:
            await cancel(task)

    def served(self) -> str | None:
        return self.holder.router.version_label if self.holder.router else None

    def reaches(self, host_name: bytes = b"foo.com") -> str | None:
        assert self.holder.router is not None
        found = self.holder.router.match(host_name, b"/", PLAIN)
        return str(found.choose((), PLAIN)) if found else None

    def metric(self, name: str) -> float | None:
        return self.registry.get_sample_value(name)


async def commit(store: MemorySnapshotStore, image: TableImage, version: tuple[int, int]) -> None:
    manifest, chunks = publish(image, version)
    await store.put_chunks(chunks)
    await store.commit(manifest, await MemorySnapshotStore.read_pointer(store, "default"))


def small_image(number: int = 1) -> TableImage:
    return TableImage([host("foo.com", route("/", "prefix", "up")), upstream("up", endpoint(number))])
