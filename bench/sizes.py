"""What NATS and Redis need for so many routes, in memory and on disk: `python -m bench.sizes --sites 1000 10000`.

Each site is an Ingress with a host, a Service and an EndpointSlice of its own. Headgate is started on them as a user
starts it, with a NATS server of its own, which is looked at when all is served. Then that server alone gets what a
long life brings: each object's history is filled, and as many revisions are committed as are kept, each with one
chunk changed. The same table with the same revisions goes into a Redis server. One server each; of three, each keeps
all of it.
"""

import argparse
import asyncio
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.reporting.machine import describe_machine, load_average
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.manifests import site_host, write_sites
from bench.setup.processes import free_ports, need_program, rss_mb
from bench.setup.stack import Stack
from bench.stores import run_redis
from headgate.cli.up.data_dir import NATS_FOLDER
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.deltas import STREAM
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pointer, Version, compress
from headgate.common.stores import DeltaSelection, SnapshotStore
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.log import HISTORY
from headgate.common.stores.reading import read_chunks
from headgate.common.stores.redis.stores import open_tables
from headgate.common.stores.redis.target import parse_redis_url
from headgate.common.stores.redis.wire import ask_alone, dial, hang_up

TABLE = "default"
READY_S = 600.0
SETTLE_S = 5.0
DOCUMENTS_PER_FILE = 99
PORTS = 8
HEADS = ("sites", "one table", "NATS, started", "NATS, full", "its log", "Redis, full")


class Size(NamedTuple):
    """Of a server."""

    memory_mb: float
    disk_mb: float

    def __str__(self) -> str:
        """Both, as in a table."""
        return f"{self.memory_mb:,.0f} / {self.disk_mb:,.0f}"


class Sizes(NamedTuple):
    """What was found for so many sites."""

    sites: int
    table_mb: float
    """Chunks of one revision, compressed."""
    started: Size
    """NATS when all was served; memory is the most that it ever had."""
    full: Size
    """NATS with full histories and all kept revisions."""
    log_mb: float
    """Of that, the log."""
    redis: Size
    """Redis with the same revisions."""


def measure(sites: int, revisions: int, folder: Path) -> Sizes:
    """Start Headgate on so many sites, fill NATS and Redis, and look at both."""
    ports = free_ports(PORTS)
    write_sites(folder / "manifests", sites, ports, DOCUMENTS_PER_FILE)
    with start_origin(folder / "origin", [], named_ports=ports), Stack(folder / "manifests", folder) as stack:
        stack.wait_until_serving(site_host(sites - 1), str(ports[(sites - 1) % PORTS]), READY_S)
        time.sleep(SETTLE_S)
        store = stack.data_dir / NATS_FOLDER
        started = Size(stack.peak_mb()["nats"], _disk_mb(store))
    redis = folder / "redis"
    redis.mkdir()
    return asyncio.run(_fill(sites, revisions, store, started, redis))


async def _fill(sites: int, revisions: int, store: Path, started: Size, redis_folder: Path) -> Sizes:
    server = EmbeddedNats(store)
    await server.start()
    try:
        bus = await Bus.connect(server.url, name="bench")
        stores = await NatsStores.open(bus)
        pointer = await stores.snapshots.read_pointer(TABLE)
        assert pointer is not None
        manifest = await stores.snapshots.get_manifest(TABLE, pointer.version)
        chunks = await read_chunks(stores.snapshots, manifest.chunks)
        redis = await _fill_redis(redis_folder, manifest, chunks, revisions)
        await _live(stores.snapshots, manifest, chunks, pointer, revisions)
        await _age(stores)
        await asyncio.sleep(SETTLE_S)
        log = await bus.js.stream_info(STREAM)
        full = Size(rss_mb([server.process.pid]), _disk_mb(store))
        await bus.close()
    finally:
        await server.stop()
    table_mb = sum(len(compress(chunk.content)) for chunk in chunks) / 1e6
    return Sizes(sites, table_mb, started, full, log.state.bytes / 1e6, redis)


async def _fill_redis(folder: Path, manifest: Manifest, chunks: Sequence[Chunk], revisions: int) -> Size:
    async with run_redis(folder, fsync="everysec") as url:
        target = parse_redis_url(url)
        async with open_tables(target, "bench") as tables:
            await tables.snapshots.put_chunks(chunks)
            await _live(tables.snapshots, manifest, chunks, await tables.snapshots.commit(manifest, None), revisions)
        await asyncio.sleep(SETTLE_S)
        wire = await dial(target, target.servers[0], target.login)
        try:
            said = (await ask_alone(wire, SETTLE_S, "INFO", "memory")).decode()
        finally:
            await hang_up(wire)
        return Size(int(said.split("used_memory_rss:")[1].split()[0]) / 1e6, _disk_mb(folder))


async def _live(
    store: SnapshotStore, manifest: Manifest, chunks: Sequence[Chunk], before: Pointer, revisions: int
) -> None:
    """Commit so many revisions, each with another chunk in the place of one, as large when compressed."""
    names = list(manifest.chunks)
    for number in range(revisions):
        place = number * 37 % len(chunks)
        old = chunks[place]
        content = hashlib.shake_256(f"{number}".encode()).digest(len(compress(old.content)))
        new = Chunk(old.kind, old.prefix, hashlib.sha256(content).hexdigest(), content)
        names[place] = ChunkName(kind=new.kind, prefix=new.prefix, digest=new.digest)
        version = Version(before.version.epoch, before.version.revision + 1)
        await store.put_chunks([new])
        before = await store.commit(manifest.model_copy(update={"version": version, "chunks": tuple(names)}), before)


async def _age(stores: NatsStores) -> None:
    """Append each object as often as its history takes."""
    past = stores.log_reader.read_after(DeltaSelection(), 0)
    deltas = {logged.delta.ref: logged.delta async for batch in past for logged in batch}
    for age in range(1, HISTORY):
        older = [
            delta.model_copy(update={"resource_version": f"{delta.resource_version}-{age}"})
            for delta in deltas.values()
        ]
        await stores.log_writer.append_all(older)


def _disk_mb(folder: Path) -> float:
    """What the files of a folder take, in MB of 10^6 bytes."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.sizes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sites", type=int, nargs="+", default=[1000, 10_000], help="sites of each row")
    parser.add_argument("--revisions", type=int, default=100, help="that are kept")
    chosen = parser.parse_args()
    if missing := need_program("redis-server", "redis-server"):
        print(missing, file=sys.stderr)
        return 1
    machine = describe_machine()
    print(f"{machine.processor}, {machine.cores} cores, Linux {machine.kernel}, {datetime.now(UTC):%Y-%m-%d}")
    print(f"load before {load_average():.1f}; memory / disk in MB\n", flush=True)
    rows = []
    for sites in chosen.sites:
        folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
        try:
            found = measure(sites, chosen.revisions, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        rows.append([f"{sites:,}", f"{found.table_mb:.2f}", *map(str, (found.started, found.full))])
        rows[-1] += [f"{found.log_mb:,.0f}", str(found.redis)]
        print(table(HEADS, rows), flush=True)
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
