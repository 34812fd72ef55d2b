"""What plans cost changes: `python -m bench.plans --ingresses 10000 --changes 200`.

`headgate up` serves so many Ingresses, each with a Service and an EndpointSlice. One client writes a changed Ingress
to the log, waits for the revision that has it, and goes on with the next. Twenty changes without plans alternate with
twenty during which another client asks the translator for one plan after the other.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import yaml

from bench.errors import BenchError
from bench.reporting.figures import Distribution
from bench.reporting.machine import describe_machine, load_average
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.manifests import ingress, site_host, site_name, write_class, write_sites
from bench.setup.measuring import measure_alone
from bench.setup.processes import free_ports
from bench.setup.stack import Stack
from headgate.common.bus.connection import Bus
from headgate.common.bus.planning import ask_for_plan
from headgate.common.deltas import Delta, Operation
from headgate.common.planning import PlanBasis, PlanOutcome, PlanQuestion, encode
from headgate.common.release import release
from headgate.common.resources import INGRESS, ObjectRef
from headgate.common.service.tasks import cancel
from headgate.common.stores.nats import NatsStores, Upkeep

CLUSTER, TABLE = "local", "default"
TURN, PAUSE_S = 20, 0.15
"""Changes in a turn, and seconds between two of them: no change waits for the rest after another one."""
BOUND_S = 120.0
DOCUMENTS_PER_FILE = 100


def _delta(name: str, host: str, version: int) -> Delta:
    made = yaml.load(ingress(name, host, site_name(0)), yaml.CSafeLoader)
    made["metadata"] |= {"annotations": {"headgate.dev/retries": str(version % 5)}}
    namespace = made["metadata"]["namespace"]
    return Delta(
        ref=ObjectRef(CLUSTER, INGRESS.group, INGRESS.resource, namespace, name),
        operation=Operation.APPLY,
        uid=name,
        resource_version=f"bench-{version}",
        observed_at=datetime.now(UTC),
        object=made,
    )


class Client:
    """Changes objects, and asks for plans."""

    def __init__(self, stores: NatsStores) -> None:
        self._stores = stores
        self._changes = 0
        self.plans_ms: list[float] = []

    async def change(self) -> float:
        """Return the milliseconds from a change in the log to the revision with it."""
        self._changes += 1
        began = time.perf_counter()
        async with asyncio.timeout(BOUND_S), aclosing(self._stores.snapshots.follow(TABLE)) as pointers:  # type: ignore[type-var]
            await anext(pointers)
            began = time.perf_counter()
            await self._stores.log_writer.append(_delta("probe", "probe.example", self._changes))
            await anext(pointers)
            return (time.perf_counter() - began) * 1e3

    async def ask(self) -> None:
        """Ask for one plan after the other, for ever."""
        question = encode(PlanQuestion(deltas=(_delta("planned", "planned.example", 1),)))
        while True:
            began = time.perf_counter()
            position = await self._stores.log_reader.position()
            basis = PlanBasis(release(), CLUSTER, position.incarnation, position.last_sequence)
            answer = await ask_for_plan(self._stores.bus, TABLE, basis, question)
            if answer.outcome is not PlanOutcome.PLANNED or not answer.diff.changes:
                raise BenchError(f"no plan: {answer.outcome} {answer.detail}")
            self.plans_ms.append((time.perf_counter() - began) * 1e3)

    @asynccontextmanager
    async def asking(self, asks: bool) -> AsyncIterator[None]:
        """Ask meanwhile, if that is wanted; what goes wrong is raised at the end."""
        if not asks:
            yield
            return
        asking = asyncio.create_task(self.ask())
        try:
            yield
            if asking.done():
                asking.result()
        finally:
            await cancel(asking)


async def _measure(url: str, changes: int) -> dict[str, list[float]]:
    bus = await Bus.connect(url, name="bench")
    try:
        client = Client(NatsStores(bus, upkeep=Upkeep(makes_streams=False)))
        took: dict[str, list[float]] = {"without plans": [], "with plans all the time": []}
        for _ in range(TURN):
            await client.change()
        for turn in range(2 * changes // TURN):
            asks = turn % 2 == 1
            async with client.asking(asks):
                for _ in range(TURN):
                    await asyncio.sleep(PAUSE_S)
                    took["with plans all the time" if asks else "without plans"].append(await client.change())
    finally:
        await bus.close()
    return {**{f"a change, {name}": each for name, each in took.items()}, "a plan": client.plans_ms}


def _run(sites: int, changes: int, folder: Path) -> dict[str, list[float]]:
    manifests, (port,) = folder / "manifests", free_ports(1)
    write_sites(manifests, sites, (port,), DOCUMENTS_PER_FILE)
    write_class(manifests)
    with start_origin(folder / "origin", [], named_ports=(port,), named_host="*"), Stack(manifests, folder) as stack:
        stack.wait_until_serving(site_host(sites - 1), str(port), BOUND_S)
        return asyncio.run(_measure(stack.nats_url, changes))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ingresses", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=200, help="with plans, and as many without")
    given = parser.parse_args()
    if given.changes < TURN:
        parser.error(f"--changes: at least {TURN}, which is a turn")
    took = measure_alone(lambda folder: _run(given.ingresses, given.changes, folder))
    print(f"{given.ingresses} Ingresses; {describe_machine()}, load {load_average():.1f}\n")
    rows = []
    for name, samples in took.items():
        found = Distribution.of(samples)
        rows.append([name, str(found.count), *(f"{figure:.1f}" for figure in (found.p50, found.p99, found.max))])
    print(table(["milliseconds", "count", "p50", "p99", "max"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
