"""Many Ingresses with many endpoints, and changes all the time: how long one takes from the log to traffic.

Changes are published to the log as a watcher would, so that a figure is that of log, translator, store and gateway.
First one change after the other as soon as all is served, while the statuses of all objects are written; then in an
otherwise quiet world; then the same among so many others a second. An endpoint
change moves all endpoints of a Service to another port; a new Ingress brings a new host to a Service that is there.
"""

import random
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.parts.churn_result import ENDPOINT, NEW_INGRESS, Churning, ChurnPart, ChurnResult, Measured
from bench.parts.scale import COLD_STEPS, READY_S, check_sample
from bench.recording.churner import Churn, Churned, Churner
from bench.recording.log_writer import LogWriter, delta_of
from bench.recording.stages import stages_of
from bench.recording.steady import Answer, SteadyClient
from bench.recording.tap import POINTERS, Tap
from bench.reporting.figures import Distribution
from bench.servers.origin import start_origin
from bench.setup.changes import Change
from bench.setup.manifests import (
    SEPARATOR,
    endpoint_slice,
    ingress,
    service,
    site_addresses,
    site_host,
    write_class,
    write_sites,
)
from bench.setup.processes import cpu_seconds, family, free_ports
from bench.setup.stack import Stack
from bench.setup.workload import DOMAIN

PORTS = 8
PROBED = "probed"
PROBED_NUMBER = 900_000
"""Of the site that is probed: its addresses are nobody else's."""
STEADY_RATE = 200
STEADY_CONNECTIONS = 16
STEADY_HOSTS = 100
SETTLE_S = 10.0
"""For the statuses of all objects to be written."""
IDLE_PAUSE_S = 0.15
CHURN_PAUSE_S = 0.1
PATIENCE_S = 30.0
DOCUMENTS_PER_FILE = 100
STALL_MS = 20.0
"""A write to the log that took longer waited for the disk."""


@dataclass(frozen=True)
class ChurnPlan:
    """What to measure."""

    ingresses: int
    endpoints: int
    """Of each Ingress's Service."""
    rate: int
    """Changes a second."""
    seconds: float
    """Of churn."""
    changes: int
    """Measured of each kind while nothing else changes."""

    @property
    def title(self) -> str:
        """Heading of the rows."""
        return f"{self.ingresses:,} Ingresses, {self.ingresses * self.endpoints:,} endpoints"


def measure_churn(plans: Iterable[ChurnPlan], folder: Path) -> ChurnPart:
    """Measure one size after the other; one that fails does not end the others."""
    results, failed = [], []
    for plan in plans:
        try:
            results.append(_measure(plan, folder))
        except BenchError as error:
            failed.append(f"{plan.title}: {error}")
    return ChurnPart(results, failed)


def _measure(plan: ChurnPlan, folder: Path) -> ChurnResult:
    shutil.rmtree(folder, ignore_errors=True)
    manifests, ports = folder / "manifests", free_ports(PORTS)
    with start_origin(folder / "origin", [], named_ports=ports, named_host="*"):
        write_sites(manifests, plan.ingresses, ports, DOCUMENTS_PER_FILE, endpoints=plan.endpoints)
        site = ProbedSite(ports, plan.endpoints)
        site.write(manifests)
        with Stack(manifests, folder) as stack:
            return _measure_stack(plan, folder, stack, site, ports)


def _measure_stack(
    plan: ChurnPlan, folder: Path, stack: Stack, site: "ProbedSite", ports: Sequence[int]
) -> ChurnResult:
    last = plan.ingresses - 1
    hosts = [site_host(index) for index in random.sample(range(plan.ingresses), min(STEADY_HOSTS, plan.ingresses))]
    cold_start_s = stack.wait_until_serving(site_host(last), str(ports[last % PORTS]), READY_S)
    client = SteadyClient(folder, stack.http_port, hosts, rate=STEADY_RATE, connections=STEADY_CONNECTIONS)
    with client, LogWriter(stack.nats_url) as writer:
        course = Course(stack.http_port, writer, site)
        tap = Tap(folder, stack.nats_url)
        with tap:
            made = [course.make(ENDPOINT, IDLE_PAUSE_S) for _ in range(plan.changes)]
        stages = stages_of([each.change for each in made], tap.heard)
        measured = {"just started": {ENDPOINT: _summarise(made, [], stages)}}
        check_sample(stack.http_port, plan.ingresses, list(ports))
        time.sleep(SETTLE_S)
        memory = {"settled": stack.memory_mb()}
        measured["idle"] = _idle(course, plan, folder, stack)
        measured["churn"], churning = _churn(course, plan, folder, stack, ports)
    memory["after"] = stack.memory_mb()
    peak_mb, cold_steps_s, restarts = stack.peak_mb(), stack.steps_s(COLD_STEPS), stack.restarts
    check_sample(stack.http_port, plan.ingresses, list(ports))
    failed = [answer for answer in client.answers if answer.status != 200]
    return ChurnResult(
        title=plan.title,
        ingresses=plan.ingresses,
        rate=plan.rate,
        cold_start_s=cold_start_s,
        cold_steps_s=cold_steps_s,
        measured=measured,
        churning=churning,
        memory_mb=memory,
        peak_mb=peak_mb,
        requests=len(client.answers),
        failed=len(failed),
        failures=list(_failures(plan, failed, churning, restarts)),
    )


def _failures(
    plan: ChurnPlan, failed: Sequence[Answer], churning: Churning, restarts: Mapping[str, int]
) -> Iterator[str]:
    if failed:
        yield f"{plan.title}: {len(failed)} requests of the steady client failed, the first: {failed[0]}"
    if churning.lost:
        yield f"{plan.title}: {churning.lost} changes were not confirmed by the log"
    if restarts:
        yield f"{plan.title}: services had to be started again: {restarts}"


class ProbedSite:
    """A Service whose endpoints all move from port to port, and to which ever more hosts lead."""

    def __init__(self, ports: Sequence[int], endpoints: int) -> None:
        self.host = f"{PROBED}.{DOMAIN}"
        self._ports = ports
        self._position = 0
        self._addresses = site_addresses(PROBED_NUMBER, endpoints)
        self._hosts = 0

    @property
    def answer(self) -> str:
        """Body of the answers once everything published is served."""
        return str(self._ports[self._position])

    def _slice(self) -> str:
        return endpoint_slice(PROBED, int(self.answer), self._addresses)

    def write(self, manifests: Path) -> None:
        """Write the site as it is in the beginning."""
        write_class(manifests)
        documents = (service(PROBED), self._slice(), ingress(PROBED, self.host, PROBED))
        (manifests / "probed.yaml").write_text(SEPARATOR.join(documents))

    def change(self, kind: str) -> tuple[str, str]:
        """Return the next change's document, and the host that is to be asked for it."""
        if kind == ENDPOINT:
            self._position = (self._position + 1) % len(self._ports)
            return self._slice(), self.host
        self._hosts += 1
        name = f"new-{self._hosts}"
        return ingress(name, f"{name}.{DOMAIN}", PROBED), f"{name}.{DOMAIN}"


@dataclass(frozen=True)
class Timed:
    """A change and what is known of it."""

    kind: str
    change: Change
    stored: "Future[float]"


class Course:
    """Makes one change after the other and waits for each to be served."""

    def __init__(self, port: int, writer: LogWriter, site: ProbedSite) -> None:
        self._port = port
        self._writer = writer
        self._site = site

    def make(self, kind: str, pause_s: float) -> Timed:
        """Make a change of a kind after a pause of `pause_s` to `1.5 * pause_s`.

        Raises:
            BenchError: it is not served in time, or a request to a host that was there fails.
        """
        time.sleep(pause_s * random.uniform(1.0, 1.5))
        document, host = self._site.change(kind)
        delta, probe = delta_of(document), Probe(self._port, host)
        probe.ask()  # so that the connection is there
        try:
            published = time.monotonic()
            stored = self._writer.publish(delta)
            served = probe.wait_for(self._site.answer, PATIENCE_S)
        finally:
            probe.close()
        if kind == ENDPOINT and probe.failures:
            raise BenchError(f"{probe.failures} requests of the probe failed during a change of endpoints")
        return Timed(kind, Change(published, served, self._site.answer), stored)


def _idle(course: Course, plan: ChurnPlan, folder: Path, stack: Stack) -> dict[str, Measured]:
    for kind in (ENDPOINT, NEW_INGRESS):
        course.make(kind, IDLE_PAUSE_S)
    found = {}
    for kind in (ENDPOINT, NEW_INGRESS):
        tap = Tap(folder, stack.nats_url)
        with tap:
            made = [course.make(kind, IDLE_PAUSE_S) for _ in range(plan.changes)]
        found[kind] = _summarise(made, [], stages_of([each.change for each in made], tap.heard))
    return found


def _churn(
    course: Course, plan: ChurnPlan, folder: Path, stack: Stack, ports: Sequence[int]
) -> tuple[dict[str, Measured], Churning]:
    churner = Churner(folder, stack.nats_url, plan.rate, Churned(plan.ingresses, plan.endpoints, tuple(ports)))
    made: list[Timed] = []
    tap = Tap(folder, stack.nats_url)
    with tap, churner:
        began, before = time.monotonic(), _cpu(stack)
        while time.monotonic() - began < plan.seconds:
            kind = ENDPOINT if len(made) % 4 else NEW_INGRESS
            made.append(course.make(kind, CHURN_PAUSE_S))
        took_s = time.monotonic() - began
        used = {name: (spent - before[name]) / took_s for name, spent in _cpu(stack).items()}
    lost = sum(not change.stored for change in churner.changes)
    revisions = sum(each.subject.startswith(POINTERS) for each in tap.heard)
    found = {
        kind: _summarise([each for each in made if each.kind == kind], churner.changes)
        for kind in (ENDPOINT, NEW_INGRESS)
    }
    return found, Churning(len(churner.changes), lost, took_s, revisions, used)


def _cpu(stack: Stack) -> dict[str, float]:
    return {name: cpu_seconds(family(pid)) for name, pid in stack.pids.items()}


def _summarise(
    made: Sequence[Timed], churned: Sequence[Churn], stages: dict[str, Distribution] | None = None
) -> Measured:
    writes = [(each.change.written, each.stored.result(PATIENCE_S)) for each in made]
    slow = [
        (start, end)
        for start, end in (*writes, *((each.published, each.stored) for each in churned if each.stored))
        if (end - start) * 1e3 > STALL_MS
    ]
    calm = [each.change.took_ms for each in made if not any(_overlaps(each.change, stall) for stall in slow)]
    took = Distribution.of([each.change.took_ms for each in made])
    return Measured(
        took=took,
        stored=Distribution.of([(end - start) * 1e3 for start, end in writes]),
        stalled=took.count - len(calm),
        calm_p99=Distribution.of(calm).p99 if calm else took.p99,
        stages=stages or {},
    )


def _overlaps(change: Change, stall: tuple[float, float]) -> bool:
    return stall[0] < change.served and change.written < stall[1]
