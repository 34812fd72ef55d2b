"""What a gateway of one shard needs beside one of the whole table: `python -m bench.shards --sites 20000 --shards 4`.

Each site is an Ingress with a host, a Service and an EndpointSlice of its own, with ten endpoints. They are translated
once; the table goes to an embedded NATS server, laid out for shards or not. Then gateways are started one after the
other: until they are ready, and what they have in memory then.
"""

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from bench.errors import BenchError
from bench.reporting.machine import describe_machine, load_average
from bench.reporting.tables import table
from bench.setup.manifests import write_class, write_sites
from bench.setup.processes import Process, free_ports, rss_mb
from headgate.cli.offline.tables import translate_paths
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.snapshot import ChunkName, Manifest, Version
from headgate.common.stores.nats import NatsStores
from headgate.common.table import TableEntry
from headgate.common.table_image import TableImage

ENDPOINTS = 10
DOCUMENTS_PER_FILE = 99
READY_S = 600.0
SETTLE_S = 3.0
HEADS = ("table", "gateway", "hosts", "chunks", "ready, s", "CPU, s", "memory, MB")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LAYOUTS = {"default": False, "for-shards": True}
"""Table to whether its hosts are placed by name."""


def translate(sites: int, folder: Path) -> Sequence[TableEntry]:
    """Return the entries of a table of so many sites."""
    write_class(folder)
    write_sites(folder, sites, free_ports(8), DOCUMENTS_PER_FILE, endpoints=ENDPOINTS)
    return translate_paths([folder]).entries


async def publish(stores: NatsStores, name: str, image: TableImage) -> None:
    """Commit an image as a translator does."""
    chunks = image.chunks()
    names = tuple(ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest) for chunk in chunks)
    await stores.snapshots.put_chunks(chunks)
    manifest = Manifest(table=name, version=Version(1, 1), created_at=datetime.now(UTC), chunks=names)
    await stores.snapshots.commit(manifest, None)


def start_gateway(folder: Path, nats_url: str, name: str, shard: str) -> list[str]:
    """Start a gateway, wait until it is ready, and return its row."""
    admin, http, https = free_ports(3)
    flags = [f"--table={name}", f"--nats-url={nats_url}", f"--data-dir={folder}", f"--admin-port={admin}"]
    flags += [f"--http-port={http}", f"--https-port={https}", *([f"--shard={shard}"] if shard else [])]
    started = time.monotonic()
    process = Process("gateway", [sys.executable, "-m", "headgate.gateway", *flags], folder)
    try:
        while _ask(admin, "/readyz") is None:
            process.ensure_running()
            if time.monotonic() - started > READY_S:
                raise BenchError("the gateway is not ready in time")
            time.sleep(0.05)
        took_s, cpu_s = time.monotonic() - started, _cpu_s(process.pid)
        time.sleep(SETTLE_S)
        hosts = re.search(r"^headgate_table_hosts (\S+)", _ask(admin, "/metrics") or "", re.MULTILINE)
        chunks = re.search(r"table applied .*chunks=(\d+)", process.log.read_text())
        held = f"{float(hosts[1]):,.0f}" if hosts else "?"
        fetched = f"{int(chunks[1]):,}" if chunks else "?"
        return [name, shard or "whole", held, fetched, f"{took_s:.1f}", f"{cpu_s:.1f}", f"{rss_mb([process.pid]):,.0f}"]
    finally:
        process.stop()


def _ask(port: int, path: str) -> str | None:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return str(answer.read().decode())
    except (URLError, OSError):
        return None


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


async def measure(sites: int, shards: int, folder: Path) -> None:
    """Measure, and print a table."""
    entries = translate(sites, folder / "manifests")
    server = EmbeddedNats(folder / "nats")
    await server.start()
    try:
        bus = await Bus.connect(server.url, name="bench")
        stores = await NatsStores.open(bus)
        rows = []
        for name, is_for_shards in LAYOUTS.items():
            await publish(stores, name, TableImage(entries, is_for_shards=is_for_shards))
            for shard in ("", f"0/{shards}"):
                own = folder / f"{name}-{shard.replace('/', '-')}"
                rows.append(await asyncio.to_thread(start_gateway, own, server.url, name, shard))
        # A gateway starts from its own file the second time.
        rows.append(await asyncio.to_thread(start_gateway, own, server.url, name, shard))
        rows[-1][1] += ", from disk"
        print(table(HEADS, rows), flush=True)
        await bus.close()
    finally:
        await server.stop()


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.shards", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sites", type=int, default=20_000, help="Ingresses, each with a host of its own")
    parser.add_argument("--shards", type=int, default=4, help="of which the first is measured")
    chosen = parser.parse_args()
    machine = describe_machine()
    print(f"{machine.processor}, {machine.cores} cores, Linux {machine.kernel}, {datetime.now(UTC):%Y-%m-%d}")
    print(f"load before {load_average():.1f}; {chosen.sites:,} sites with {ENDPOINTS} endpoints each\n", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    try:
        asyncio.run(measure(chosen.sites, chosen.shards, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
