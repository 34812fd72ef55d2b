"""Two replicas behind a balancer under load, one of them told to end: does a request fail?

The balancer is HAProxy, passing TCP connections on and asking `/readyz` every 100 ms, as kube-proxy and cloud balancers
do by other means. The replicas go on for a while after they said that they are not ready (`--drain-delay-s`). A steady
client on kept-alive connections asks all the time; it opens a new one only for one that was closed.
"""

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.parts.comparison import need_programs
from bench.recording.steady import SteadyClient
from bench.reporting.figures import Distribution
from bench.reporting.promise import Promise, none_of
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.gateway import Gateway
from bench.setup.manifests import site_host, write_class, write_sites
from bench.setup.processes import Process, free_ports, wait_for_port
from bench.setup.stack import Stack

RATE = 500
CONNECTIONS = 32
DRAIN_DELAY_S = 2.0
_READY_S = 60.0
_END_S = 30.0
_SETTLE_S = 1.5
_BALANCER = """
global
    maxconn 4096
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    retries 3
    option redispatch
frontend entrance
    bind 127.0.0.1:{port} backlog 4096
    default_backend replicas
backend replicas
    balance roundrobin
    option httpchk GET /readyz
    default-server inter 100ms fall 1 rise 1
{servers}
"""


@dataclass(frozen=True)
class ReplicasPlan:
    """What to measure."""

    ends: int
    """How often a replica is told to end, in turns."""


@dataclass
class ReplicasResult:
    """What clients saw."""

    ends: int
    latency: Distribution
    """Of requests on kept-alive connections, milliseconds."""
    requests: int
    failed: int
    end_s: list[float]
    """Seconds from each SIGTERM to the end of the process."""
    codes: list[int]
    """With which they ended."""
    failures: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def promises(self) -> Iterator[Promise]:
        """What must hold."""
        yield none_of(f"failed requests, SIGTERM of one of two replicas, {self.ends} times", self.failed)

    def markdown(self) -> str:
        """The part of the report."""
        heads = (
            "SIGTERM, behind a second replica",
            "requests",
            "failed",
            "p50 ms",
            "p99 ms",
            "max ms",
            "ended within s",
        )
        row = [f"{self.ends} times", f"{self.requests:,}", str(self.failed)]
        row += [
            f"{self.latency.p50:.2f}",
            f"{self.latency.p99:.2f}",
            f"{self.latency.max:.1f}",
            f"{max(self.end_s):.1f}",
        ]
        command = f"`python -m bench.recording.steady PORT {RATE} {CONNECTIONS} FILE HOST`"
        delay = f"`--drain-delay-s={DRAIN_DELAY_S:g}`; each replica is started again before the other one is ended."
        return "\n\n".join(["## End of a replica under load", table(heads, [row]), f"{command}; {delay}"])


def measure_replicas(plan: ReplicasPlan, folder: Path) -> ReplicasResult:
    """Start two replicas and the balancer, end one after the other.

    Raises:
        BenchError: a tool is missing, or something does not come up or end.
    """
    need_programs(("haproxy", "haproxy"), ("nginx", "nginx-light"))
    shutil.rmtree(folder, ignore_errors=True)
    manifests = folder / "manifests"
    origin_port, balancer_port = free_ports(2)
    write_class(manifests)
    write_sites(manifests, 1, [origin_port], 100)
    end_s: list[float] = []
    codes: list[int] = []
    with ExitStack() as stack:
        stack.enter_context(start_origin(folder / "origin", [], named_ports=[origin_port]))
        headgate = stack.enter_context(Stack(manifests, folder))
        headgate.wait_until_serving(site_host(0), str(origin_port), _READY_S)
        replicas = [_Replica(f"replica-{number}", headgate, folder) for number in range(2)]
        for replica in replicas:
            stack.callback(replica.stop)
            replica.start()
        stack.enter_context(_balancer(folder, balancer_port, replicas))
        client = SteadyClient(folder, balancer_port, [site_host(0)], rate=RATE, connections=CONNECTIONS)
        with client:
            time.sleep(_SETTLE_S)
            for number in range(plan.ends):
                took_s, code = replicas[number % 2].end()
                end_s.append(took_s)
                codes.append(code)
                replicas[number % 2].start()
                time.sleep(_SETTLE_S)
    failed = [answer for answer in client.answers if answer.status != 200]
    latency = Distribution.of([answer.latency_ms for answer in client.answers])
    result = ReplicasResult(plan.ends, latency, len(client.answers), len(failed), end_s, codes)
    if failed:
        result.failures.append(f"replicas: {len(failed)} requests failed, the first: {failed[0]}")
    if any(codes):
        result.failures.append(f"replicas: ended with codes {codes}")
    return result


class _Replica:
    """A gateway that can be started again on the same ports."""

    def __init__(self, name: str, headgate: Stack, folder: Path) -> None:
        self._name = name
        self._headgate = headgate
        self._folder = folder
        self.http_port, self.https_port, self.admin_port = free_ports(3)
        self._gateway: Gateway | None = None

    def start(self) -> None:
        """Start and wait until it is ready."""
        ports = (self.http_port, self.https_port, self.admin_port)
        delay = f"--drain-delay-s={DRAIN_DELAY_S:g}"
        self._gateway = Gateway(self._name, self._headgate, self._folder, delay, ports=ports)
        self._gateway.wait_until_ready()

    def end(self) -> tuple[float, int]:
        """SIGTERM; return the seconds to its end and the exit code."""
        assert self._gateway is not None
        began = time.monotonic()
        self._gateway.process.signal(signal.SIGTERM)
        code = self._gateway.process.wait(_END_S)
        took_s = time.monotonic() - began
        self.stop()
        return took_s, code

    def stop(self) -> None:
        """End what is left."""
        if self._gateway is not None:
            self._gateway.process.stop()


def _balancer(folder: Path, port: int, replicas: list[_Replica]) -> Process:
    servers = "\n".join(
        f"    server r{number} 127.0.0.1:{replica.http_port} check port {replica.admin_port}"
        for number, replica in enumerate(replicas)
    )
    config = folder / "balancer.cfg"
    config.write_text(_BALANCER.format(port=port, servers=servers))
    process = Process("balancer", ["haproxy", "-db", "-f", str(config)], folder)
    wait_for_port(port, process)
    return process
