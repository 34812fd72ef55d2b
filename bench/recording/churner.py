"""Changes objects at a steady rate, in a process of its own:
`python -m bench.recording.churner NATS_URL RATE SPEC FILE`.

SPEC is JSON: how many sites there are, their endpoints and ports. Nine changes of ten are of an EndpointSlice, in
which one address makes room for a new one, as when a pod is replaced; the tenth is of an Ingress, which gets another
path. Changes are published when their time has come, whether or not the ones before are stored. On SIGTERM writes a
line `published stored kind` for each to FILE; times are CLOCK_MONOTONIC, and stored is 0 where that failed.
"""

import asyncio
import json
import random
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.recording.log_writer import connect, delta_of
from bench.recording.recorder import READY, Recorder
from bench.setup.manifests import endpoint_slice, ingress, loopback_address, site_addresses, site_host, site_name
from headgate.common.deltas import Delta
from headgate.common.errors import StoreError
from headgate.common.stores.nats.log import NatsDeltaLogWriter

INGRESS_SHARE = 0.1
_FRESH = 8_000_000
"""Number of the first address that no site has at the beginning."""


@dataclass(frozen=True)
class Churned:
    """What there is to change."""

    sites: int
    endpoints: int
    ports: tuple[int, ...]


class Churner(Recorder):
    """Changes objects while the context lasts; `changes` afterwards."""

    def __init__(self, folder: Path, nats_url: str, rate: int, churned: Churned) -> None:
        super().__init__("churner", folder, [nats_url, str(rate), json.dumps(asdict(churned))])

    @property
    def changes(self) -> list["Churn"]:
        """What was published."""
        return [parse_churn(line) for line in self.lines]


@dataclass(frozen=True)
class Churn:
    """One published change."""

    published: float
    stored: float
    """0: the log did not confirm it."""
    kind: str


def parse_churn(line: str) -> Churn:
    """Read a line of the churner."""
    published, stored, kind = line.split()
    return Churn(float(published), float(stored), kind)


class Changes:
    """Makes changes to random sites."""

    def __init__(self, churned: Churned, seed: int = 1) -> None:
        self._churned = churned
        self._random = random.Random(seed)
        self._moved: dict[int, list[str]] = {}
        self._count = 0

    def next(self) -> Delta:
        """Return the next change."""
        self._count += 1
        index = self._random.randrange(self._churned.sites)
        if self._random.random() < INGRESS_SHARE:
            path = f"/v{self._count}"
            return delta_of(ingress(site_name(index), site_host(index), site_name(index), paths=("/", path)))
        addresses = self._moved.setdefault(index, list(site_addresses(index, self._churned.endpoints)))
        addresses[self._random.randrange(len(addresses))] = loopback_address(_FRESH + self._count)
        port = self._churned.ports[index % len(self._churned.ports)]
        return delta_of(endpoint_slice(site_name(index), port, addresses))


async def _run(url: str, rate: int, churned: Churned) -> list[str]:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    bus, writer = await connect(url)
    changes, lines, under_way = Changes(churned), list[str](), set[asyncio.Task[None]]()
    print(READY, flush=True)
    due = time.monotonic()
    while not stopping.is_set():
        task = asyncio.create_task(_publish(writer, changes.next(), lines))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        due = max(due + 1 / rate, time.monotonic() - 1.0)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    await asyncio.gather(*under_way)
    await bus.close()
    return lines


async def _publish(writer: NatsDeltaLogWriter, delta: Delta, lines: list[str]) -> None:
    published, stored = time.monotonic(), 0.0
    try:
        await writer.append(delta)
        stored = time.monotonic()
    except StoreError as error:
        print(error, file=sys.stderr)
    lines.append(f"{published:.6f} {stored:.6f} {delta.ref.resource}")


if __name__ == "__main__":
    words = sys.argv[1:]
    told = json.loads(words[2])
    written = asyncio.run(
        _run(words[0], int(words[1]), Churned(told["sites"], told["endpoints"], tuple(told["ports"])))
    )
    Path(words[3]).write_text("\n".join(written))
