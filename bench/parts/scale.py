"""Many Ingresses or ApisixRoutes: cold start, memory of each service, one change, and the longest stall of traffic.

Each has a host, a Service and an EndpointSlice of its own. The stall is the slowest answer of a client that
asks every millisecond on 64 connections, with changes of endpoints and of routes going on, beside the same without.
"""

import random
import shutil
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.recording.stages import stages_of
from bench.recording.steady import Answer, SteadyClient
from bench.recording.tap import Tap
from bench.reporting.figures import Distribution
from bench.servers.origin import start_origin
from bench.setup.changes import CROWDED, ChangingSite, make_changes
from bench.setup.manifests import INGRESS, Dialect, site, site_host, write_sites
from bench.setup.processes import free_ports
from bench.setup.stack import Stack

ENDPOINTS = 8
STEADY_RATE = 1000
STEADY_CONNECTIONS = 64
SAMPLED_HOSTS = 200
NEIGHBOURS = 33
"""Sites in the file that the crowded EndpointSlice shares: 99 documents and its own."""
FAR = 90_000
"""Number of the first of them, beyond all others."""
SETTLE_S = 2.0
PAUSE_S = 0.4
READY_S = 900.0
COLD_STEPS = {
    "manifests read": "read the manifests",
    "revision published": "revision published",
    "table applied": "table applied",
}
"""Step to the words of its log line."""


@dataclass(frozen=True)
class ScalePlan:
    """What to measure."""

    sites: int
    documents_per_file: int
    """Three documents for each site; 1 makes three files for each."""
    changes: int
    dialect: Dialect = INGRESS

    @property
    def title(self) -> str:
        """Heading of the row."""
        files = -(-self.sites * 3 // self.documents_per_file)
        return f"{self.sites:,} {self.dialect.title} in {files:,} files"


@dataclass(frozen=True)
class Traffic:
    """Changes and what a client noticed of them, in milliseconds."""

    took: dict[str, Distribution]
    """From file to traffic, by kind of change."""
    stages: dict[str, dict[str, Distribution]]
    """The same kinds, by stage."""
    quiet: Distribution
    """Latency of the steady client without changes; its maximum is the longest stall."""
    changing: Distribution
    """The same with changes."""
    failed: int


@dataclass(frozen=True)
class ScaleResult:
    """One plan, measured."""

    title: str
    sites: int
    cold_start_s: float
    """From the start of `headgate up` with an empty data folder to the right answer of the last host."""
    cold_steps_s: dict[str, float]
    """When each step of the cold start was done, as far as the services' logs say it."""
    warm_start_s: float
    """The same with the data folder of the run before: the gateway begins with the table that it kept."""
    memory_mb: dict[str, float]
    """By service, settled after the start."""
    peak_mb: dict[str, float]
    traffic: Traffic
    failures: list[str]


def measure_scale(plan: ScalePlan, folder: Path) -> ScaleResult:
    """Start Headgate on so many sites, look at it, change something, start it again.

    Raises:
        BenchError: it does not start, a sampled host answers wrongly, or a change is not served.
    """
    shutil.rmtree(folder, ignore_errors=True)
    manifests = folder / "manifests"
    ports = free_ports(ENDPOINTS)
    dialect = plan.dialect
    write_sites(manifests, plan.sites, ports, plan.documents_per_file, dialect=dialect)
    sites = (site(FAR + index, ports[0], dialect=dialect) for index in range(NEIGHBOURS))
    neighbours = list(chain.from_iterable(sites))
    alone = ChangingSite(manifests, ports, dialect=dialect)
    crowded = ChangingSite(manifests, ports, name=CROWDED, neighbours=neighbours, dialect=dialect)
    last = plan.sites - 1
    with start_origin(folder / "origin", [], named_ports=ports):
        with Stack(manifests, folder) as stack:
            cold_start_s = stack.wait_until_serving(site_host(last), str(ports[last % ENDPOINTS]), READY_S)
            check_sample(stack.http_port, plan.sites, ports)
            time.sleep(SETTLE_S)
            cold_steps_s, memory_mb, peak_mb = stack.steps_s(COLD_STEPS), stack.memory_mb(), stack.peak_mb()
            traffic = _measure_traffic(plan, folder, stack, alone, crowded)
            restarts = stack.restarts
        with Stack(manifests, folder) as stack:
            warm_start_s = stack.wait_until_serving(alone.host, alone.answer, READY_S)
    failures = [f"{plan.title}: {traffic.failed} requests of the steady client failed"] if traffic.failed else []
    if restarts:
        failures.append(f"{plan.title}: services had to be started again: {restarts}")
    return ScaleResult(
        title=plan.title,
        sites=plan.sites,
        cold_start_s=cold_start_s,
        cold_steps_s=cold_steps_s,
        warm_start_s=warm_start_s,
        memory_mb=memory_mb,
        peak_mb=peak_mb,
        traffic=traffic,
        failures=failures,
    )


def _measure_traffic(
    plan: ScalePlan, folder: Path, stack: Stack, alone: ChangingSite, crowded: ChangingSite
) -> Traffic:
    hosts = [alone.host, *(site_host(index) for index in range(0, plan.sites, max(1, plan.sites // 7)))]
    kinds = {
        "endpoint": (alone, alone.move_endpoint),
        "endpoint, in a file of 100": (crowded, crowded.move_endpoint),
        "route": (alone, alone.flip_route),
    }
    list(make_changes(alone, stack.http_port, 2, PAUSE_S, alone.move_endpoint))

    def client() -> SteadyClient:
        return SteadyClient(folder, stack.http_port, hosts, rate=STEADY_RATE, connections=STEADY_CONNECTIONS)

    tap = Tap(folder, stack.nats_url)
    with client() as changing, tap:
        started = time.monotonic()
        changes = {
            kind: list(make_changes(changing_site, stack.http_port, plan.changes, PAUSE_S, change))
            for kind, (changing_site, change) in kinds.items()
        }
        lasted = time.monotonic() - started
    with client() as quiet:
        time.sleep(lasted)
    return Traffic(
        took={kind: Distribution.of([change.took_ms for change in made]) for kind, made in changes.items()},
        stages={kind: stages_of(made, tap.heard) for kind, made in changes.items()},
        quiet=_latency(quiet.answers),
        changing=_latency(changing.answers),
        failed=sum(answer.status != 200 for answer in (*quiet.answers, *changing.answers)),
    )


def check_sample(port: int, sites: int, ports: list[int]) -> None:
    """Ask some hosts, chosen at random, and compare what answers with what their Service names.

    Raises:
        BenchError: a host answers wrongly.
    """
    for index in random.sample(range(sites), min(SAMPLED_HOSTS, sites)):
        probe = Probe(port, site_host(index))
        status, body = probe.ask()
        probe.close()
        if (status, body) != (200, str(ports[index % len(ports)])):
            raise BenchError(f"{site_host(index)} answers {status} {body[:100]!r} instead of its own endpoint")


def _latency(answers: list[Answer]) -> Distribution:
    return Distribution.of([answer.latency_ms for answer in answers])
