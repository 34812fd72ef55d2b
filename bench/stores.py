"""How long a commit takes to reach a reader, over NATS and over Redis: `python -m bench.stores`.

One process commits revisions of a table at a steady rate, another one follows the pointer as a gateway does, on uvloop.
Each revision brings one new chunk; its manifest names as many as asked for. Both stores run on this machine, one after
the other. NATS is the embedded server, which writes to disk before it confirms, and clusters of three that do so or
leave it to the system for two minutes, the server's default; Redis (`redis-server` on PATH) appends
to its file and syncs it every second, as its documentation advises, and once more before every confirmation.
"""

import argparse
import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import uvloop

from bench.nats_failover import start_servers
from bench.reporting.figures import percentile
from bench.reporting.machine import describe_machine, load_average
from bench.setup.processes import Process, free_ports, need_program, wait_for_port
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pointer, Version
from headgate.common.stores import SnapshotStore
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.redis.stores import open_tables
from headgate.common.stores.redis.target import parse_redis_url

TABLE = "bench"
CHUNK_BYTES = 4096
WARM_UP = 50
"""Revisions that are not counted."""


class Measured(NamedTuple):
    """Seconds, one for each revision."""

    commits: list[float]
    """From the call to its return, chunk included."""
    notices: list[float]
    """From the call to the moment when the other process has the pointer."""


@asynccontextmanager
async def open_store(url: str) -> AsyncIterator[SnapshotStore]:
    """Open the store at an address of either kind."""
    if url.startswith("nats:"):
        bus = await Bus.connect(url, name="bench")
        try:
            yield (await NatsStores.open(bus)).snapshots
        finally:
            await bus.close()
    else:
        async with open_tables(parse_redis_url(url), "bench") as tables:
            yield tables.snapshots


async def follow(url: str) -> None:
    """Print each version and when it was heard of (CLOCK_MONOTONIC), until killed."""
    async with open_store(url) as store:
        async for pointer in store.follow(TABLE):
            print(f"{pointer.version} {time.monotonic():.6f}", flush=True)


async def measure(url: str, revisions: int, chunks: int, pause_s: float) -> Measured:
    """Commit revisions while another process follows."""
    command = (sys.executable, "-m", "bench.stores", "--follow", url)
    follower = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert follower.stdout is not None
    try:
        async with open_store(url) as store:
            table = [_chunk(f"{number}") for number in range(chunks)]
            await store.put_chunks(table)
            pointer = await store.commit(_manifest(1, table), None)
            await _heard(follower.stdout, pointer)
            commits, notices = [], []
            for revision in range(2, revisions + WARM_UP + 2):
                table[revision % chunks] = changed = _chunk(f"revision {revision}")
                began = time.monotonic()
                await store.put_chunks([changed])
                pointer = await store.commit(_manifest(revision, table), pointer)
                commits.append(time.monotonic() - began)
                notices.append(await _heard(follower.stdout, pointer) - began)
                await asyncio.sleep(pause_s)
    finally:
        follower.kill()
        await follower.wait()
    return Measured(commits[WARM_UP:], notices[WARM_UP:])


async def _heard(lines: asyncio.StreamReader, pointer: Pointer) -> float:
    """Return when the follower had a pointer."""
    async with asyncio.timeout(30):
        while True:
            version, at = (await lines.readline()).decode().split()
            if version == str(pointer.version):
                return float(at)


def _chunk(seed: str) -> Chunk:
    # Hard to compress, so that its size on the way is the one that is meant.
    content = b"".join(hashlib.sha256(f"{seed}/{number}".encode()).digest() for number in range(CHUNK_BYTES // 32))
    return Chunk("hosts", "", hashlib.sha256(content).hexdigest(), content)


def _manifest(revision: int, table: Sequence[Chunk]) -> Manifest:
    names = tuple(ChunkName(kind=each.kind, prefix=each.prefix, digest=each.digest) for each in table)
    return Manifest(table=TABLE, version=Version(1, revision), created_at=datetime.now(UTC), chunks=names)


@asynccontextmanager
async def run_nats(folder: Path) -> AsyncIterator[str]:
    """Run the embedded server."""
    server = EmbeddedNats(folder)
    await server.start()
    try:
        yield server.url
    finally:
        await server.stop()


@asynccontextmanager
async def run_cluster(folder: Path, *, sync: str) -> AsyncIterator[str]:
    """Run three NATS servers with a `sync_interval`."""
    servers = start_servers(folder, sync)
    try:
        yield ",".join(f"nats://127.0.0.1:{server.port}" for server in servers)
    finally:
        for server in servers:
            server.process.stop()


@asynccontextmanager
async def run_redis(folder: Path, *, fsync: str) -> AsyncIterator[str]:
    """Run a Redis server that keeps a file of what was written."""
    [port] = free_ports(1)
    options = ("--appendonly", "yes", "--appendfsync", fsync, "--save", "", "--dir", str(folder))
    command = [str(shutil.which("redis-server")), "--bind", "127.0.0.1", "--port", str(port), *options]
    with Process("redis", command, folder) as process:
        wait_for_port(port, process)
        yield f"redis://127.0.0.1:{port}"


Run = Callable[[Path], AbstractAsyncContextManager[str]]
SERVERS: dict[str, Run] = {
    "NATS, synced at every write": run_nats,
    "three NATS servers, synced at every write": lambda folder: run_cluster(folder, sync="always"),
    "three NATS servers, synced every two minutes": lambda folder: run_cluster(folder, sync="2m"),
    "Redis, synced every second": lambda folder: run_redis(folder, fsync="everysec"),
    "Redis, synced at every write": lambda folder: run_redis(folder, fsync="always"),
}


async def compare(revisions: int, sizes: Sequence[int], pause_s: float) -> None:
    """Measure every store with tables of each size, and print a table of the figures."""
    machine = describe_machine()
    print(
        f"{machine.processor}, {machine.cores} cores, Linux {machine.kernel}, Python {machine.python}, {machine.commit}"
    )
    print(f"{datetime.now(UTC):%Y-%m-%d}, {_version_of('redis-server')}, load before {load_average():.1f}\n")
    print("| store | chunks | commit p50 | p99 | commit to notice p50 | p99 | max |\n|---|---|---|---|---|---|---|")
    for chunks in sizes:
        for name, run in SERVERS.items():
            folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
            try:
                async with run(folder) as url:
                    found = await measure(url, revisions, chunks, pause_s)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            shown = (
                *(percentile(found.commits, percent) for percent in (50, 99)),
                *(percentile(found.notices, percent) for percent in (50, 99)),
                max(found.notices),
            )
            print(f"| {name} | {chunks} | {' | '.join(f'{value * 1000:.1f} ms' for value in shown)} |", flush=True)


def _version_of(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Measure, or follow for a run that measures."""
    parser = argparse.ArgumentParser(prog="python -m bench.stores", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--revisions", type=int, default=1000, help="commits that are counted")
    parser.add_argument("--chunks", type=int, nargs="+", default=[20, 3000], help="chunks that a manifest names")
    parser.add_argument("--pause-ms", type=float, default=20.0, help="between a notice and the next commit")
    parser.add_argument("--follow", metavar="URL", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.follow:
        with contextlib.suppress(BrokenPipeError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(follow(chosen.follow))
        return os.EX_OK
    if missing := need_program("redis-server", "redis-server"):
        print(missing, file=sys.stderr)
        return 1
    asyncio.run(compare(chosen.revisions, chosen.chunks, chosen.pause_ms / 1000))
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
