"""Many HTTPRoutes on one Gateway: `python -m bench.gateway_routes --routes 1000 --served 5000`.

`headgate up` serves a Gateway with one route. All of `--routes` are then written at once, and taken away again: how
long it takes until the status of the Gateway counts them right (`attachedRoutes`). After that the same Gateway starts
with `--served` routes: how long it takes until each of them answers with its Service.
"""

import argparse
import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import nats
from nats.aio.msg import Msg

from bench.errors import BenchError
from bench.reporting.machine import describe_machine, load_average
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.manifests import SEPARATOR, endpoint_slice, service, site_host, site_name
from bench.setup.measuring import measure_alone
from bench.setup.processes import free_ports
from bench.setup.stack import Stack
from headgate.common.status import STATUS_PREFIX

SERVICES = 10
PER_FILE = 100
BOUND_S = 600.0
FIRST = 99_999
"""Number of the route that is there from the start."""
_GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: bench}
spec:
  gatewayClassName: headgate
  listeners:
  - {name: http, port: 80, protocol: HTTP}
"""
_ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: bench}}
spec:
  parentRefs: [{{name: edge}}]
  hostnames: [{host}]
  rules:
  - backendRefs: [{{name: {service}, port: 80}}]
"""


def http_route(index: int) -> str:
    """A route of the Gateway with a host of its own, to one of the Services."""
    return _ROUTE.format(name=site_name(index), host=site_host(index), service=f"service-{index % SERVICES}")


def write_base(folder: Path, ports: Sequence[int]) -> None:
    """Write the Gateway and the Services."""
    folder.mkdir(parents=True)
    (folder / "gateway.yaml").write_text(SEPARATOR.join((_GATEWAY, http_route(FIRST))))
    for number, port in enumerate(ports):
        name = f"service-{number}"
        (folder / f"{name}.yaml").write_text(SEPARATOR.join((service(name), endpoint_slice(name, port))))


def write_routes(folder: Path, count: int) -> None:
    """Write so many routes at once: files of a folder that comes into its place in one step."""
    draft = folder.with_name(f".{folder.name}")
    draft.mkdir()
    for first in range(0, count, PER_FILE):
        group = map(http_route, range(first, min(first + PER_FILE, count)))
        (draft / f"routes-{first:05d}.yaml").write_text(SEPARATOR.join(group))
    draft.rename(folder)


class Counts:
    """How many routes the status of the Gateway counts, as watchers are told."""

    def __init__(self) -> None:
        self.attached = -1
        self._changed = asyncio.Event()

    async def note(self, message: Msg) -> None:
        """Take a status of any object."""
        if ".gateways." in message.subject and message.data:
            for listener in json.loads(message.data).get("listeners", ()):
                self.attached = listener["attached_routes"]
            self._changed.set()

    async def reach(self, count: int) -> float:
        """Return the monotonic time at which the status counts so many.

        Raises:
            BenchError: it does not in time.
        """
        try:
            async with asyncio.timeout(BOUND_S):
                while self.attached != count:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise BenchError(f"attachedRoutes is {self.attached} and not {count} after {BOUND_S:.0f} s") from error
        return time.monotonic()


async def measure_counts(stack: Stack, manifests: Path, routes: int) -> list[tuple[str, float]]:
    """Return how long it takes to count routes that come, and that go."""
    counts = Counts()
    found: list[tuple[str, float]] = []
    client = await nats.connect(stack.nats_url)
    try:
        await client.subscribe(f"{STATUS_PREFIX}.>", cb=counts.note)
        await client.flush()
        for what, wanted in (("come", routes + 1), ("go", 1)):
            began = time.monotonic()
            if wanted > 1:
                write_routes(manifests / "routes", routes)
            else:
                shutil.rmtree(manifests / "routes")
            found.append((f"attachedRoutes right when {routes:,} {what}", await counts.reach(wanted) - began))
    finally:
        await client.close()
    return found


def wait_for_all(stack: Stack, routes: int, ports: Sequence[int]) -> float:
    """Return the seconds from the start until each route answers with its Service, which says its port."""
    for index in range(routes):
        stack.wait_until_serving(site_host(index), str(ports[index % SERVICES]), BOUND_S)
    return time.monotonic() - stack.started


def run(folder: Path, routes: int, served: int) -> Iterator[tuple[str, float]]:
    """Yield what was measured, each with its seconds."""
    ports = free_ports(SERVICES)
    start_origin(folder / "origin", [], named_ports=ports)
    manifests = folder / "manifests"
    write_base(manifests, ports)
    with Stack(manifests, folder / "counts") as stack:
        stack.wait_until_serving(site_host(FIRST), str(ports[FIRST % SERVICES]), BOUND_S)
        yield from asyncio.run(measure_counts(stack, manifests, routes))
    write_routes(manifests / "routes", served)
    with Stack(manifests, folder / "served") as stack:
        yield f"{served:,} routes all answer, from the start", wait_for_all(stack, served, ports)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--routes", type=int, default=1000, help="that come and go at once")
    parser.add_argument("--served", type=int, default=5000, help="that are there from the start")
    given = parser.parse_args()
    found = measure_alone(lambda folder: list(run(folder, given.routes, given.served)))
    print(f"{describe_machine()}, load {load_average():.1f}\n")
    print(table(["", "seconds"], [[what, f"{seconds:.2f}"] for what, seconds in found]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
