"""From a change on disk to traffic: how long, in which stages, and what a client notices of it.

Each change rewrites one EndpointSlice file in one step. A probe asks every millisecond until the new endpoint answers:
that time is the propagation. A steady client on connections of its own counts failed requests, and answers of the old
endpoint to requests that were sent after the new one had answered: a swap is atomic, so there must be none.
"""

import bisect
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.recording.stages import stages_of
from bench.recording.steady import Answer, SteadyClient
from bench.recording.tap import Heard, Tap
from bench.reporting.figures import Distribution
from bench.servers.origin import start_origin
from bench.setup.changes import Change, ChangingSite, make_changes
from bench.setup.manifests import write_sites
from bench.setup.processes import free_ports
from bench.setup.stack import Stack

ENDPOINTS = 8
STEADY_RATE = 200
STEADY_CONNECTIONS = 16
QUIET_S = 5.0
"""Of steady traffic before the first change, to compare with."""
PAUSE_S = 0.15
READY_S = 120.0
ALONE = "alone"
"""Title of the plan without other Ingresses."""
DOCUMENTS_PER_FILE = 100


@dataclass(frozen=True)
class PropagationPlan:
    """What to measure."""

    ingresses: int
    """Besides the one that changes."""
    changes: int


@dataclass
class PropagationResult:
    """One plan, measured. Times are milliseconds."""

    title: str
    took: Distribution
    stages: dict[str, Distribution]
    """By stage; empty where the bus could not be listened to."""
    quiet: Distribution
    """Latency of the steady client before the first change."""
    steady: Distribution
    """The same while changes are applied."""
    failed: int
    """Requests of the steady client that got no answer or another than 200."""
    stale: int
    """Answers of an old endpoint after the new one had answered."""
    failures: list[str] = field(default_factory=list)


def measure_propagation(plan: PropagationPlan, folder: Path) -> PropagationResult:
    """Start Headgate on the manifests, make the changes, and look at what everybody saw.

    Raises:
        BenchError: it does not start, or a change is not served.
    """
    shutil.rmtree(folder, ignore_errors=True)
    manifests = folder / "manifests"
    ports = free_ports(ENDPOINTS)
    write_sites(manifests, plan.ingresses, ports, DOCUMENTS_PER_FILE)
    site = ChangingSite(manifests, ports)
    with start_origin(folder / "origin", [], named_ports=ports), Stack(manifests, folder) as stack:
        stack.wait_until_serving(site.host, site.answer, READY_S)
        list(make_changes(site, stack.http_port, 3, PAUSE_S, site.move_endpoint))
        client = SteadyClient(folder, stack.http_port, [site.host], rate=STEADY_RATE, connections=STEADY_CONNECTIONS)
        tap = Tap(folder, stack.nats_url)
        with client, tap:
            time.sleep(QUIET_S)
            started = time.monotonic()
            changes = list(make_changes(site, stack.http_port, plan.changes, PAUSE_S, site.move_endpoint))
        restarts = stack.restarts
    title = f"{plan.ingresses:,} other Ingresses" if plan.ingresses else ALONE
    result = summarise(title, changes, client.answers, tap.heard, started)
    if restarts:
        result.failures.append(f"{title}: services had to be started again: {restarts}")
    return result


def summarise(
    title: str, changes: Sequence[Change], answers: Sequence[Answer], heard: Sequence[Heard], started: float
) -> PropagationResult:
    """Turn what was recorded into figures; `started` is when the quiet time ended."""
    failed = [answer for answer in answers if answer.status != 200]
    stale = count_stale(changes, [answer for answer in answers if answer.status == 200])
    failures = []
    if failed:
        failures.append(f"{title}: {len(failed)} requests of the steady client failed, the first: {failed[0]}")
    if stale:
        failures.append(f"{title}: {stale} answers came from an endpoint after its successor had answered")
    return PropagationResult(
        title=title,
        took=Distribution.of([change.took_ms for change in changes]),
        stages=stages_of(changes, heard),
        quiet=Distribution.of([answer.latency_ms for answer in answers if answer.asked < started]),
        steady=Distribution.of([answer.latency_ms for answer in answers if answer.asked >= started]),
        failed=len(failed),
        stale=stale,
        failures=failures,
    )


def count_stale(changes: Sequence[Change], answers: Sequence[Answer]) -> int:
    """Count answers by an endpoint other than that of the last change which was served before the request was sent,
    unless the next change was already written when the answer came.
    """
    served = [change.served for change in changes]
    stale = 0
    for answer in answers:
        position = bisect.bisect_right(served, answer.asked) - 1
        if position < 0 or answer.body == changes[position].endpoint:
            continue
        is_ahead = position + 1 < len(changes) and answer.answered >= changes[position + 1].written
        stale += not is_ahead
    return stale
