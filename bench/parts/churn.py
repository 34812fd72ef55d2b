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
from dataclasses import dataclass, field
from pathlib import Path

from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.parts.scale import COLD_STEPS, READY_S, check_sample
from bench.recording.churner import Churn, Churned, Churner
from bench.recording.log_writer import LogWriter, delta_of
from bench.recording.stages import STAGES, stages_of
from bench.recording.steady import Answer, SteadyClient
from bench.recording.tap import POINTERS, Tap
from bench.reporting.figures import Distribution
from bench.reporting.promise import Promise, below, none_of
from bench.reporting.tables import table
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

ENDPOINT, NEW_INGRESS = "endpoint", "new Ingress"
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
MANY = 10_000
START_P99_MS, IDLE_P99_MS, CHURN_P99_MS, NEW_INGRESS_P99_MS = 50.0, 50.0, 150.0, 150.0
COLD_START_S, GATEWAY_MB, TRANSLATOR_MB = 15.0, 300.0, 1500.0


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


@dataclass(frozen=True)
class Measured:
    """Changes of one kind in one phase, in milliseconds."""

    took: Distribution
    """From the publication to the answer."""
    stored: Distribution
    """From the publication to the log's confirmation: the disk is in it, and not in the way of the change."""
    stalled: int
    """Changes during which a write to the log took longer than `STALL_MS`."""
    calm_p99: float
    """The 99th percentile of all others."""
    stages: dict[str, Distribution] = field(default_factory=dict)


@dataclass(frozen=True)
class Churning:
    """What went on meanwhile."""

    published: int
    lost: int
    """Changes that the log did not confirm."""
    took_s: float
    revisions: int
    cpu: dict[str, float]
    """Service to the share of a core that it used."""


@dataclass(frozen=True)
class ChurnResult:
    """One plan, measured."""

    title: str
    ingresses: int
    rate: int
    cold_start_s: float
    cold_steps_s: dict[str, float]
    measured: dict[str, dict[str, Measured]]
    """Phase to kind of change."""
    churning: Churning
    memory_mb: dict[str, dict[str, float]]
    """By moment and service."""
    peak_mb: dict[str, float]
    requests: int
    failed: int
    failures: list[str]

    def promises(self) -> Iterator[Promise]:
        """Compare what was measured with what is promised at `MANY`."""
        yield none_of(f"failed requests, {self.title}", self.failed)
        if self.ingresses != MANY:
            return
        idle, churn = self.measured["idle"], self.measured["churn"]
        yield below("endpoint change to traffic, p99", IDLE_P99_MS, idle[ENDPOINT].took.p99, "ms")
        started = self.measured["just started"]
        yield below("the same from the start on", START_P99_MS, started[ENDPOINT].took.p99, "ms")
        yield below(f"the same during {self.rate} changes/s", CHURN_P99_MS, churn[ENDPOINT].took.p99, "ms")
        yield below("new Ingress to traffic, p99", NEW_INGRESS_P99_MS, idle[NEW_INGRESS].took.p99, "ms")
        yield below("cold start", COLD_START_S, self.cold_start_s, "s")
        yield below("gateway, most memory", GATEWAY_MB, self.peak_mb["gateway"], "MB")
        yield below("translator, most memory", TRANSLATOR_MB, self.peak_mb["translator"], "MB")


@dataclass(frozen=True)
class ChurnPart:
    """All sizes that were measured."""

    results: Sequence[ChurnResult]
    failed_sizes: Sequence[str] = ()
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def failures(self) -> list[str]:
        """What went wrong."""
        return [*(failure for each in self.results for failure in each.failures), *self.failed_sizes]

    def promises(self) -> Iterable[Promise]:
        """Compare what was measured, and nothing that was not."""
        return [promise for each in self.results for promise in each.promises()]

    def markdown(self) -> str:
        """The part of the report."""
        parts = ["## Churn", _changes(self.results), _stages(self.results), _churning(self.results)]
        return "\n\n".join([*parts, _starts(self.results)])


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
        made = [course.make(ENDPOINT, IDLE_PAUSE_S) for _ in range(plan.changes)]
        measured = {"just started": {ENDPOINT: _summarise(made, [])}}
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


# Report


def _changes(results: Sequence[ChurnResult]) -> str:
    heads = (
        "publication to traffic, ms",
        "changes",
        "p50",
        "p99",
        "max",
        "stored p50",
        "max",
        "stalled",
        "p99 without",
    )
    rows = [
        [
            *(f"{each.title}, {phase}, {kind}", str(one.took.count)),
            *(f"{value:.1f}" for value in (one.took.p50, one.took.p99, one.took.max, one.stored.p50, one.stored.max)),
            *(str(one.stalled), f"{one.calm_p99:.1f}"),
        ]
        for each in results
        for phase, kinds in each.measured.items()
        for kind, one in kinds.items()
    ]
    return table(heads, rows)


def _stages(results: Sequence[ChurnResult]) -> str:
    heads = ("idle, p50 / p99, ms", *STAGES[1:])
    rows = [
        [
            f"{each.title}, {kind}",
            *(f"{one.stages[stage].p50:.1f} / {one.stages[stage].p99:.1f}" for stage in STAGES[1:]),
        ]
        for each in results
        for kind, one in each.measured["idle"].items()
        if one.stages
    ]
    return table(heads, rows)


def _churning(results: Sequence[ChurnResult]) -> str:
    services = list(dict.fromkeys(name for each in results for name in each.churning.cpu))
    heads = ("churn", "changes/s", "seconds", "revisions", "requests", "failed", *(f"{name} core" for name in services))
    rows = [
        [
            *(each.title, f"{each.churning.published / each.churning.took_s:.0f}", f"{each.churning.took_s:.0f}"),
            *(f"{each.churning.revisions:,}", f"{each.requests:,}", str(each.failed)),
            *(f"{each.churning.cpu.get(name, 0):.2f}" for name in services),
        ]
        for each in results
    ]
    return table(heads, rows)


def _starts(results: Sequence[ChurnResult]) -> str:
    services = list(dict.fromkeys(name for each in results for name in each.memory_mb["settled"]))
    heads = ("cold start, s; memory, MB: settled, after churn (most)", "cold start", *COLD_STEPS, *services)
    rows = [
        [
            *(each.title, f"{each.cold_start_s:.1f}"),
            *(f"{each.cold_steps_s[step]:.1f}" if step in each.cold_steps_s else "" for step in COLD_STEPS),
            *(
                f"{each.memory_mb['settled'].get(name, 0):.0f}, {each.memory_mb['after'].get(name, 0):.0f}"
                f" ({each.peak_mb.get(name, 0):.0f})"
                for name in services
            ),
        ]
        for each in results
    ]
    return table(heads, rows)
