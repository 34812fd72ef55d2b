"""A cluster of three NATS servers loses one: how long until the next table is committed, and until a gateway knows.

    python -m bench.nats_failover --rounds 5

Tables are committed all the time, as fast as a translator may. Each round loses one server (the leader of the tables
killed, stopped in an orderly way or made to hang; a server that leads nothing killed), and brings it back.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.reporting.machine import describe_machine
from bench.reporting.tables import table
from bench.setup.processes import Process, free_ports
from headgate.cli.up.embedded_nats import server_binary
from headgate.common.bus.connection import Bus
from headgate.common.errors import Conflict, StoreError
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pointer, Version, digest_of
from headgate.common.stores.nats import NatsStores

SETTLE_S = 8.0
"""After a server is back: the next round begins with three that agree."""
PAUSE_S = 0.1
"""Between two commits, as between two of a translator."""


class Server:
    """One of the three."""

    def __init__(
        self, folder: Path, name: str, ports: tuple[int, int], routes: list[str], sync: str = "always"
    ) -> None:
        self.name, self.port = name, ports[0]
        self._folder = folder
        self._config = folder / f"{name}.conf"
        self._config.write_text(
            f"server_name: {name}\nhost: 127.0.0.1\nport: {ports[0]}\n"
            f"jetstream {{ store_dir: {json.dumps(str(folder / name))}, sync_interval: {sync} }}\n"
            f"cluster {{ name: bench, host: 127.0.0.1, port: {ports[1]}, routes: {json.dumps(routes)} }}\n"
        )
        self.process = self._spawn()

    def _spawn(self) -> Process:
        return Process(self.name, [server_binary(), "--config", str(self._config)], self._folder)

    def revive(self) -> None:
        """Start it again."""
        self.process = self._spawn()


@dataclass
class Committer:
    """Commits for ever; what fails is tried again after a pause."""

    stores: NatsStores
    times: dict[int, float] = field(default_factory=dict)
    """When each revision was confirmed."""
    failures: int = 0

    async def run(self) -> None:
        before: Pointer | None = None
        while True:
            revision = before.version.revision + 1 if before else 1
            content = f'["{revision}"]'.encode()
            chunk = Chunk("hosts", "", digest_of(content), content)
            manifest = Manifest(
                table="default",
                version=Version(1, revision),
                created_at=datetime.now(UTC),
                chunks=(ChunkName(kind=chunk.kind, prefix="", digest=chunk.digest),),
            )
            try:
                await self.stores.snapshots.put_chunks([chunk])
                before = await self.stores.snapshots.commit(manifest, before)
            except Conflict:
                before = await self.stores.snapshots.read_pointer("default")
            except StoreError:
                self.failures += 1
            else:
                self.times[revision] = time.monotonic()
            await asyncio.sleep(PAUSE_S)


@dataclass
class Follower:
    """Notes when each revision is heard of."""

    stores: NatsStores
    times: dict[int, float] = field(default_factory=dict)

    async def run(self) -> None:
        async with aclosing(self.stores.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
            async for pointer in pointers:
                self.times[pointer.version.revision] = time.monotonic()


def _kill(server: Server) -> Callable[[], None]:
    server.process.signal(signal.SIGKILL)
    server.process.stop()
    return server.revive


def _terminate(server: Server) -> Callable[[], None]:
    server.process.stop()
    return server.revive


def _hang(server: Server) -> Callable[[], None]:
    server.process.signal(signal.SIGSTOP)
    return lambda: server.process.signal(signal.SIGCONT)


LOSSES: dict[str, tuple[bool, Callable[[Server], Callable[[], None]]]] = {
    "the tables' leader is killed": (True, _kill),
    "the tables' leader hangs": (True, _hang),
    "the tables' leader is stopped": (True, _terminate),
    "another server is killed": (False, _kill),
}
"""By name: whether the leader is meant, and what happens to it."""


async def measure(rounds: int) -> list[list[str]]:
    """Return a row for each kind of loss."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        servers = start_servers(Path(folder))
        try:
            url = ",".join(f"nats://127.0.0.1:{server.port}" for server in servers)
            async with _connected(url) as (writer, reader):
                await _until(lambda: len(writer.times) > 10)
                for name, (is_leader, lose) in LOSSES.items():
                    print(name, file=sys.stderr, flush=True)
                    found = [
                        await _lose(await _choose(servers, writer, is_leader), lose, writer, reader)
                        for _ in range(rounds)
                    ]
                    committed, heard, failures = zip(*found, strict=True)
                    rows.append([name, _spread(committed), _spread(heard), f"{median(failures):.0f}"])
        finally:
            for server in servers:
                server.process.stop()
    return rows


def start_servers(folder: Path, sync: str = "always") -> list[Server]:
    """Start a cluster of three.

    Args:
        folder: for everything.
        sync: their `sync_interval`.
    """
    ports = free_ports(6)
    routes = [f"nats://127.0.0.1:{port}" for port in ports[3:]]
    return [Server(folder, f"n{n}", (ports[n], ports[3 + n]), routes, sync) for n in range(3)]


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[tuple[Committer, Follower]]:
    writing, reading = await Bus.connect(url, name="bench writer"), await Bus.connect(url, name="bench reader")
    writer, reader = Committer(await NatsStores.open(writing)), Follower(NatsStores(reading))
    tasks = [asyncio.create_task(writer.run()), asyncio.create_task(reader.run())]
    try:
        yield writer, reader
    finally:
        await cancel(*tasks)
        await writing.close()
        await reading.close()


async def _choose(servers: list[Server], writer: Committer, is_leader: bool) -> Server:
    info = await writer.stores.bus.js.stream_info("KV_HEADGATE_TABLES")
    leader = info.cluster.leader if info.cluster else ""
    return next(server for server in servers if (server.name == leader) == is_leader)


async def _lose(
    server: Server, lose: Callable[[Server], Callable[[], None]], writer: Committer, reader: Follower
) -> tuple[float, float, int]:
    """Lose a server; return seconds until the next commit, until it is heard of, and the attempts that failed."""
    failures = writer.failures
    undo = lose(server)
    lost_at = time.monotonic()
    # The first commit that is confirmed may have been on its way.
    began = max(writer.times) + 1
    await _until(lambda: max(writer.times) > began)
    revision = min(number for number in writer.times if number > began)
    await _until(lambda: max(reader.times) >= revision)
    heard = min(moment for number, moment in reader.times.items() if number >= revision)
    undo()
    await asyncio.sleep(SETTLE_S)
    return writer.times[revision] - lost_at, heard - lost_at, writer.failures - failures


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - looked at far more often than anything changes
            await asyncio.sleep(0.005)


def _spread(seconds: tuple[float, ...]) -> str:
    return f"{median(seconds):.1f} ({min(seconds):.1f} to {max(seconds):.1f})"


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.nats_failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each kind")
    rounds = parser.parse_args().rounds
    rows = asyncio.run(measure(rounds))
    machine = describe_machine()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine.processor}, {machine.cores} cores, Python {machine.python}\n")
    heads = ("what is lost", "next commit, s", "heard of by a gateway, s", "failed attempts")
    print(table(heads, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
