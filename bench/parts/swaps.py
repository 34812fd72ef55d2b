"""A hundred new tables a second under load: does anybody notice?

Revisions are committed to the store by a process of their own, to a table that one more gateway replica on the stack's
bus serves. Each changes every route, and takes away or gives back an endpoint of each service: requests, WebSockets,
uploads and gRPC streams run on endpoints that are not in the table any more. A steady client asks before and during the
swaps; the streams stay open over both. Before, the same revisions are committed to a table that nobody serves: writing
them costs the clients' core as much as during the swaps, so that what differs is the gateway's part.
"""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.parts.bodies import bodies_origin
from bench.parts.comparison import LOAD_CORE, PROXY_CORE
from bench.parts.http2 import grpc_origin, lacks_upstream_http2
from bench.recording.open_streams import OpenStreams, StreamCounts, Streams
from bench.recording.steady import Answer, SteadyClient
from bench.recording.swapper import Swapped, Swapper
from bench.reporting.figures import Distribution
from bench.reporting.promise import Promise, below, none_of
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.gateway import Gateway
from bench.setup.manifests import site_host, write_class, write_sites
from bench.setup.processes import Process, free_ports, pin, rss_mb, wait_for_port
from bench.setup.stack import Stack
from bench.setup.tools import IMPORTABLE

STEADY_RATE = 500
STEADY_CONNECTIONS = 32
TABLE, IDLE_TABLE = "swaps", "swaps-idle"
P99_MOVES_MS = 1.0
NEARLY = 0.95
"""Of the wanted rate of swaps: the process that commits shares its core."""
_READY_S = 60.0
_SETTLE_S = 1.0


@dataclass(frozen=True)
class SwapsPlan:
    """What to measure."""

    seconds: float
    """With swaps, and as long without."""
    rate: int
    """Revisions a second."""
    streams: int
    """Of each kind."""


@dataclass
class SwapsResult:
    """What clients saw. Times are milliseconds."""

    plan: SwapsPlan
    quiet: Distribution
    """Latency of the steady client without swaps."""
    changing: Distribution
    """The same with swaps."""
    failed: int
    committed: int
    applied: int
    longest_step_ms: float
    """That the last swap kept the event loop from traffic."""
    streams: StreamCounts
    before_mb: float
    after_mb: float
    """Memory of the gateway."""
    left_out: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What is promised about."""
        return f"{self.plan.rate} swaps a second for {self.plan.seconds:g} s"

    def promises(self) -> Iterator[Promise]:
        """What must hold."""
        wanted = round(self.plan.rate * self.plan.seconds)
        is_kept = self.applied >= NEARLY * wanted
        yield Promise(f"{self.title}, applied", f"{wanted:,}", f"{self.applied:,}", is_kept)
        yield none_of(f"{self.title}, failed requests", self.failed)
        yield none_of(f"{self.title}, streams broken ({self._kinds()})", len(self.streams.failures))
        moved = self.changing.p99 - self.quiet.p99
        yield below(f"{self.title}, p99 moves by", P99_MOVES_MS, moved, "ms")

    def _kinds(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in self.streams.opened.items())

    def markdown(self) -> str:
        """The part of the report."""
        heads = ("steady client, ms", "requests", "p50", "p99", "p99.9", "max")
        rows = [
            [name, f"{each.count:,}", f"{each.p50:.2f}", f"{each.p99:.2f}", f"{each.p999:.2f}", f"{each.max:.1f}"]
            for name, each in (("commits to another table", self.quiet), ("with swaps", self.changing))
        ]
        messages = ", ".join(f"{count:,} {kind}" for kind, count in self.streams.messages.items())
        facts = (
            f"{self.committed:,} revisions committed, {self.applied:,} applied; failed requests: {self.failed}. Open "
            f"meanwhile: {self._kinds()}; messages that came back and uploads taken: {messages}; broken: "
            f"{len(self.streams.failures)}. The last swap kept the loop for {self.longest_step_ms:.2f} ms at most. "
            f"Memory of the gateway: {self.before_mb:.0f} MB before, {self.after_mb:.0f} MB after."
        )
        command = f"`python -m bench.recording.steady PORT {STEADY_RATE} {STEADY_CONNECTIONS} FILE HOST`"
        parts = [f"## {self.plan.rate} swaps of the table a second", table(heads, rows), facts, command]
        return "\n\n".join([*parts, *(f"{each}." for each in self.left_out)])


def measure_swaps(plan: SwapsPlan, folder: Path) -> SwapsResult:
    """Start everything, open the streams, watch without and with swaps.

    Raises:
        BenchError: something does not come up.
    """
    shutil.rmtree(folder, ignore_errors=True)
    manifests = folder / "manifests"
    first, second, echo, bodies, grpc = free_ports(5)
    lacking = lacks_upstream_http2()
    services = [Swapped("plain", (first, second)), Swapped("echo", (echo, echo)), Swapped("bodies", (bodies, bodies))]
    if not lacking:
        services.append(Swapped("grpc", (grpc, grpc), speaks_http2=True))
    write_class(manifests)
    write_sites(manifests, 1, [first], 100)
    with ExitStack() as stack:
        stack.enter_context(start_origin(folder / "origin", [], named_ports=[first, second], core=LOAD_CORE))
        stack.enter_context(bodies_origin(folder, bodies, LOAD_CORE))
        stack.enter_context(grpc_origin(folder, grpc, LOAD_CORE))
        argv = [sys.executable, "-m", "bench.servers.echo_origin", str(echo)]
        origin = stack.enter_context(Process("echo-origin", argv, folder, core=LOAD_CORE, env=IMPORTABLE))
        wait_for_port(echo, origin)
        headgate = stack.enter_context(Stack(manifests, folder))
        headgate.wait_until_serving(site_host(0), str(first), _READY_S)
        for pid in headgate.process.family():
            pin(pid, LOAD_CORE)
        swappers = [
            Swapper(folder, headgate.nats_url, name, services, rate=plan.rate, core=LOAD_CORE)
            for name in (IDLE_TABLE, TABLE)
        ]
        streams = Streams(plan.streams, "echo.bench.example", "bodies.bench.example", _host(services, "grpc"))
        result = _watch(plan, folder, headgate, swappers, streams)
    if lacking:
        result.left_out.append(f"No gRPC streams: {lacking}")
    return result


def _host(services: list[Swapped], name: str) -> str:
    return next((service.host for service in services if service.name == name), "")


def _watch(plan: SwapsPlan, folder: Path, headgate: Stack, swappers: list[Swapper], streams: Streams) -> SwapsResult:
    idle, swapper = swappers
    hosts = ["plain.bench.example"]

    def client(gateway: Gateway) -> SteadyClient:
        return SteadyClient(
            folder, gateway.http_port, hosts, rate=STEADY_RATE, connections=STEADY_CONNECTIONS, core=LOAD_CORE
        )

    with ExitStack() as stack:
        # Ended in the opposite order: the streams close before the swaps end, and these before the gateway.
        gateway = Gateway("swapped", headgate, folder, f"--table={TABLE}", core=PROXY_CORE)
        stack.callback(gateway.process.stop)
        with swapper:
            gateway.wait_until_ready()
            with OpenStreams(folder, gateway.http_port, streams, core=LOAD_CORE) as opened:
                with client(gateway) as warming:
                    time.sleep(_SETTLE_S)
                with idle:
                    idle.begin()
                    with client(gateway) as quiet:
                        time.sleep(plan.seconds)
                before_mb, swaps = rss_mb(gateway.process.family()), gateway.metric("headgate_table_swaps_total")
                swapper.begin()
                with client(gateway) as changing:
                    time.sleep(plan.seconds)
        time.sleep(_SETTLE_S)
        applied = gateway.metric("headgate_table_swaps_total") - swaps
        step_s = gateway.metric("headgate_table_longest_step_seconds")
        after_mb = rss_mb(gateway.process.family())
    answers = [*warming.answers, *quiet.answers, *changing.answers]
    failed = [answer for answer in answers if answer.status != 200]
    result = SwapsResult(
        plan=plan,
        quiet=_latency(quiet.answers),
        changing=_latency(changing.answers),
        failed=len(failed),
        committed=len(swapper.committed),
        applied=round(applied),
        longest_step_ms=step_s * 1e3,
        streams=opened.counts,
        before_mb=before_mb,
        after_mb=after_mb,
    )
    if failed:
        result.failures.append(f"{result.title}: {len(failed)} requests failed, the first: {failed[0]}")
    if broken := result.streams.failures:
        result.failures.append(f"{result.title}: {len(broken)} streams broke, the first: {broken[0]}")
    return result


def _latency(answers: list[Answer]) -> Distribution:
    return Distribution.of([answer.latency_ms for answer in answers])
