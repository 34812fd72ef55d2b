"""A translator that leads is killed, or asked to end: how long until the other one leads, and until it publishes.

    python -m bench.takeover --ingresses 1000 --rounds 10

Two translators follow one log on the embedded NATS server, with the lease's times at their defaults. Each round ends
the one that leads at a random moment and changes an endpoint right after; it counts until another name is in the lease
and until the revision with that change is there. Then the one that was ended is started again and waited for.
"""

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, TypeVar
from urllib.request import urlopen

import yaml

from bench.errors import BenchError
from bench.reporting.machine import describe_machine, load_average
from bench.reporting.tables import table
from bench.setup import manifests
from bench.setup.processes import Process, free_ports
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.deltas import ClusterAnnouncement, Delta, KindName, Operation, SyncMarker
from headgate.common.leadership.leases import translator_lease
from headgate.common.resources import ENDPOINT_SLICE, INGRESS, SERVICE, ObjectRef
from headgate.common.snapshot import Version
from headgate.common.stores.nats import NatsStores

CLUSTER, TABLE = "bench", "default"
BOUND_S = 60.0
POLL_S = 0.005
_KINDS = {kind.kind: kind for kind in (INGRESS, SERVICE, ENDPOINT_SLICE)}
_ENDS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM}
T = TypeVar("T")


class Translator:
    """One of the two; started again under its name."""

    def __init__(self, name: str, nats_url: str, folder: Path) -> None:
        self.name = name
        self._nats_url = nats_url
        self._folder = folder
        self._port = free_ports(1)[0]
        self.start()

    def start(self) -> None:
        """Start it."""
        flags = (f"--nats-url={self._nats_url}", f"--instance={self.name}", f"--admin-port={self._port}")
        self.process = Process(self.name, [sys.executable, "-m", "headgate.translator", *flags], self._folder)

    def is_ready(self) -> bool:
        """Whether it leads, or could at once."""
        self.process.ensure_running()
        with suppress(OSError), urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=1.0) as answer:
            return bool(answer.status == 200)
        return False


class Pair:
    """Both, and the log that they follow."""

    def __init__(self, stores: NatsStores, translators: list[Translator]) -> None:
        self.stores = stores
        self.translators = {each.name: each for each in translators}
        self._changes = 0

    async def fill(self, ingresses: int) -> None:
        """Say what a watcher says of a cluster with so many Ingresses, each with a Service and an EndpointSlice."""
        now, log = datetime.now(UTC), self.stores.log_writer
        kinds = tuple(KindName(group=kind.group, resource=kind.resource) for kind in _KINDS.values())
        await log.announce(
            ClusterAnnouncement(cluster=CLUSTER, source="manifests", instance="bench", kinds=kinds, announced_at=now)
        )
        names = [manifests.site_name(number) for number in range(ingresses)]
        texts = [manifests.ingress(name, f"{name}.example", name) for name in names]
        texts += [manifests.service(name) for name in names]
        texts += [manifests.endpoint_slice(name, 8080) for name in names]
        await log.append_all([_delta(text, "1") for text in texts])
        for kind in kinds:
            await log.mark_synced(SyncMarker(cluster=CLUSTER, kind=kind, at=now))

    async def change(self) -> None:
        """Change an endpoint."""
        self._changes += 1
        text = manifests.endpoint_slice(manifests.site_name(0), 8080, [manifests.loopback_address(self._changes)])
        await self.stores.log_writer.append(_delta(text, str(self._changes + 1)))

    async def leader(self) -> str:
        """Return the name in the lease; empty if it was given back."""
        stored = await self.stores.leases.read(translator_lease(TABLE))
        return stored.lease.holder if stored else ""

    async def version(self) -> Version | None:
        """Return the version that is published."""
        pointer = await self.stores.snapshots.read_pointer(TABLE)
        return pointer.version if pointer else None

    async def ready(self) -> None:
        """Wait until one leads and the other could."""
        for each in self.translators.values():
            await eventually(lambda one=each: asyncio.to_thread(one.is_ready))  # type: ignore[misc]
        await eventually(self.leader)


async def eventually(ask: Callable[[], Awaitable[T]]) -> T:
    """Return the first answer that is not empty."""
    try:
        async with asyncio.timeout(BOUND_S):
            while not (found := await ask()):  # noqa: ASYNC110 - what is waited for is in another process
                await asyncio.sleep(POLL_S)
            return found
    except TimeoutError:
        raise BenchError(f"nothing came of it within {BOUND_S:.0f} s") from None


def _delta(text: str, version: str) -> Delta:
    manifest: Any = yaml.load(text, yaml.CSafeLoader)
    kind, metadata = _KINDS[manifest["kind"]], manifest["metadata"]
    return Delta(
        ref=ObjectRef(CLUSTER, kind.group, kind.resource, metadata["namespace"], metadata["name"]),
        operation=Operation.APPLY,
        uid=f"{kind.resource}-{metadata['name']}",
        resource_version=version,
        observed_at=datetime.now(UTC),
        object=manifest,
    )


async def take_over(pair: Pair, end: signal.Signals) -> tuple[float, float]:
    """End the one that leads; return the seconds until another one does, and until it has published a change."""
    await pair.ready()
    await asyncio.sleep(random.uniform(0.5, 1.5))
    leader, before = await pair.leader(), await pair.version()
    ended = pair.translators[leader]

    async def next_leader() -> str:
        return found if (found := await pair.leader()) != leader else ""

    async def next_version() -> Version | None:
        return found if (found := await pair.version()) != before else None

    began = time.monotonic()
    ended.process.signal(end)
    await pair.change()
    await eventually(next_leader)
    led = time.monotonic() - began
    after = await eventually(next_version)
    published = time.monotonic() - began
    if before is None or after != Version(before.epoch, before.revision + 1):
        raise BenchError(f"revision {after} does not follow {before}")
    ended.process.wait(BOUND_S)
    ended.process.stop()
    ended.start()
    return led, published


async def measure(ingresses: int, rounds: int, folder: Path) -> None:
    """Print a table of all rounds."""
    server = EmbeddedNats(folder / "nats")
    await server.start()
    bus = await Bus.connect(server.url, name="bench")
    translators: list[Translator] = []
    try:
        stores = await NatsStores.open(bus)
        translators += [Translator(name, server.url, folder) for name in ("one", "other")]
        pair = Pair(stores, translators)
        await pair.fill(ingresses)
        await eventually(pair.version)
        rows = []
        for name, end in _ENDS.items():
            found = [await take_over(pair, end) for _ in range(rounds)]
            for what, seconds in zip(("another leads", "a change is published"), zip(*found, strict=True), strict=True):
                shown = (min(seconds), median(seconds), max(seconds))
                rows.append((f"{name}, until {what}", *(f"{value:.2f} s" for value in shown)))
        print(table(("", "least", "median", "most"), rows))
        versions = await stores.snapshots.versions(TABLE)
        print(f"\n{2 * rounds} takeovers, {len(versions)} revisions in {len({each.epoch for each in versions})} epoch")
    finally:
        for each in translators:
            each.process.stop()
        await bus.close()
        await server.stop()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.takeover", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ingresses", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10, help="of each signal")
    chosen = parser.parse_args()
    machine = describe_machine()
    print(f"{machine.processor}, {machine.cores} cores, Linux {machine.kernel}, Python {machine.python}")
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine.commit}, {chosen.ingresses} Ingresses, load {load_average():.1f}\n")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        asyncio.run(measure(chosen.ingresses, chosen.rounds, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
