"""Commits revisions of a table at a steady rate: `python -m bench.recording.swapper NATS_URL TABLE RATE FILE SPEC`.

SPEC is JSON: for each service its ports and whether it speaks HTTP/2. Every revision changes all routes and the
endpoints of one service: the first port always stays, the second one comes and goes. The first revision is committed
before it says that it is ready; others follow from SIGUSR1 on. On SIGTERM writes a line with the time and the version
of each commit to FILE.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from bench.recording.recorder import READY, Recorder
from bench.setup.workload import DOMAIN
from headgate.common.bus.connection import Bus
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pointer, Version
from headgate.common.stores import SnapshotStore
from headgate.common.stores.nats import NatsStores
from headgate.common.table import (
    Backend,
    BackendProtocol,
    Endpoint,
    PathMatch,
    PathType,
    Provenance,
    Route,
    Timeouts,
    Upstream,
    VirtualHost,
)
from headgate.common.table_image import TableImage

_EPOCH = 1


@dataclass(frozen=True)
class Swapped:
    """A service of the table."""

    name: str
    ports: tuple[int, int]
    """Of its endpoints. The second one is in every second revision only; it may equal the first."""
    speaks_http2: bool = False

    @property
    def host(self) -> str:
        """Its host."""
        return f"{self.name}.{DOMAIN}"


class Swapper(Recorder):
    """Has committed the first revision when the context begins; `begin` starts the others."""

    def __init__(
        self, folder: Path, nats_url: str, table: str, services: Iterable[Swapped], *, rate: int, core: int
    ) -> None:
        spec = json.dumps([asdict(service) for service in services])
        super().__init__("swapper", folder, [nats_url, table, str(rate)], [spec], core=core)

    def begin(self) -> None:
        """Commit revisions from now on."""
        self._process.signal(signal.SIGUSR1)

    @property
    def committed(self) -> list[float]:
        """Monotonic time of each commit, the first apart."""
        return [float(line.split()[0]) for line in self.lines]


def entries(services: Iterable[Swapped], revision: int) -> Iterable[VirtualHost | Upstream]:
    """The table of one revision."""
    for index, service in enumerate(services):
        first, second = service.ports
        ports = {first, second} if (revision + index) % 2 else {first}
        origin = Provenance(cluster="bench", kind="Ingress", namespace="bench", name=service.name, rule="rules[0]")
        yield Upstream(
            key=service.name,
            protocol=BackendProtocol.H2C if service.speaks_http2 else BackendProtocol.HTTP,
            endpoints=tuple(Endpoint(address="127.0.0.1", port=port) for port in sorted(ports)),
            provenance=origin,
        )
        route = Route(
            name="all",
            path=PathMatch(type=PathType.PREFIX, value="/"),
            backends=(Backend(upstream=service.name),),
            timeouts=Timeouts(read_s=600 + revision / 1000),
            provenance=origin,
        )
        yield VirtualHost(host=service.host, routes=(route,))


class _Publisher:
    """Commits one revision after the other, storing only chunks that are new."""

    def __init__(self, store: SnapshotStore, table: str, services: list[Swapped]) -> None:
        self._store = store
        self._table = table
        self._services = services
        self._image = TableImage()
        self._stored: set[str] = set()
        self._revision = 0
        self._pointer: Pointer | None = None

    async def publish(self) -> str:
        """Commit the next revision; return its version."""
        self._revision += 1
        for entry in entries(self._services, self._revision):
            self._image.put(entry)
        chunks = self._image.chunks()
        fresh: list[Chunk] = [chunk for chunk in chunks if chunk.digest not in self._stored]
        await self._store.put_chunks(fresh)
        self._stored.update(chunk.digest for chunk in fresh)
        manifest = Manifest(
            table=self._table,
            version=Version(_EPOCH, self._revision),
            created_at=datetime.now(UTC),
            chunks=tuple(ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest) for chunk in chunks),
        )
        self._pointer = await self._store.commit(manifest, self._pointer)
        return str(manifest.version)


def read_spec(text: str) -> list[Swapped]:
    """Services from what the command line says of them."""
    return [Swapped(said["name"], tuple(said["ports"]), said["speaks_http2"]) for said in json.loads(text)]


async def _run(nats_url: str, table: str, rate: int, services: list[Swapped]) -> list[str]:
    loop = asyncio.get_running_loop()
    beginning, stopping = asyncio.Event(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, beginning.set)

    def stop() -> None:
        stopping.set()
        beginning.set()

    loop.add_signal_handler(signal.SIGTERM, stop)
    bus = await Bus.connect(nats_url, name="bench swapper")
    lines = []
    try:
        stores = await NatsStores.open(bus)
        publisher = _Publisher(stores.snapshots, table, services)
        await publisher.publish()
        print(READY, flush=True)
        await beginning.wait()
        due = time.monotonic()
        while not stopping.is_set():
            version = await publisher.publish()
            lines.append(f"{time.monotonic():.6f} {version}")
            due = max(due + 1 / rate, time.monotonic() - 1.0)  # makes up for at most a second
            await asyncio.sleep(max(0.0, due - time.monotonic()))
    finally:
        await bus.close()
    return lines


if __name__ == "__main__":
    words = sys.argv[1:]
    written = uvloop.run(_run(words[0], words[1], int(words[2]), read_spec(words[4])))
    Path(words[3]).write_text("\n".join(written))
