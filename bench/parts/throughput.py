"""Throughput and latency of all proxies over HTTP/1.1 with connections kept alive, plain and with TLS."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.clients.load import Load, LoadResult, run_load
from bench.parts.comparison import (
    DIRECT,
    LOAD_CORE,
    PROXY_CORE,
    ComparisonResult,
    Targets,
    compare,
    make_row,
    need_programs,
    running,
)
from bench.peers import Peer, Running
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.processes import free_ports, rss_mb
from bench.setup.workload import (
    LARGE_PATH,
    SMALL_PATH,
    TLS_SERVER_NAME,
    Workload,
    host_names,
    write_certificate,
)

HOSTS = 100
SERVICES = 10
PLAIN: Targets = {"nginx": 0.9, "HAProxy": 1.0, "Envoy": 2.5}
SECURE: Targets = {"nginx": 0.9}
LARGE: Targets = {"nginx": 0.5, "Envoy": 1.5}


@dataclass(frozen=True)
class Scenario:
    """What is asked of every proxy."""

    title: str
    path: str
    connections: int
    rounds: int
    seconds: float
    targets: Targets
    is_tls: bool = False

    def load(self, url: str) -> Load:
        """One round."""
        return Load(url, self.path, HOSTS, self.connections, self.seconds)


@dataclass
class ThroughputResult(ComparisonResult):
    """All rows, and the memory of what carries traffic."""

    heading: str = "Throughput, one core for the proxy, keep-alive on both sides"
    rss_before_mb: dict[str, float] = field(default_factory=dict)
    rss_after_mb: dict[str, float] = field(default_factory=dict)

    def tables(self) -> list[str]:
        """A table for each scenario, and one of the memory."""
        memory = [
            [name, f"{before:.0f}", f"{self.rss_after_mb.get(name, 0):.0f}"]
            for name, before in self.rss_before_mb.items()
        ]
        heads = ("", "before", "after the load")
        return [*super().tables(), "### Memory of what carries traffic, MB\n\n" + table(heads, memory)]


def scenarios(connections: Sequence[int], rounds: int, seconds: float, *, extras: bool) -> list[Scenario]:
    """The scenarios of a run; `extras` adds TLS and large bodies with fewer and shorter rounds."""
    wanted = [
        Scenario(f"1 KB, {count} connections", SMALL_PATH, count, rounds, seconds, PLAIN) for count in connections
    ]
    if extras:
        few, short = max(1, rounds // 2), max(1.0, seconds * 0.6)
        wanted.append(Scenario("1 KB, TLS, 32 connections", SMALL_PATH, 32, rounds, short, SECURE, is_tls=True))
        wanted.append(Scenario("64 KB, 32 connections", LARGE_PATH, 32, few, short, LARGE))
    return wanted


def measure_throughput(peers: Sequence[Peer], wanted: Sequence[Scenario], folder: Path) -> ThroughputResult:
    """Start everything, check that it answers rightly, run the rounds.

    Raises:
        BenchError: a tool is missing or the origin does not come up. A proxy that cannot be started is left out and
            said so; wrong answers and errors under load are `failures`.
    """
    need_programs(("wrk", "wrk"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    result = ThroughputResult()
    folder.mkdir(parents=True, exist_ok=True)
    ports = free_ports(SERVICES)
    workload = Workload(host_names(HOSTS), tuple(ports), *write_certificate(folder))
    with start_origin(folder / "origin", ports, core=LOAD_CORE), running(peers, workload, folder, result) as proxies:
        for proxy in proxies:
            run_load(Load(_url(proxy, is_tls=False), SMALL_PATH, HOSTS, 32, 1), core=LOAD_CORE)
        result.rss_before_mb = dict(_memory(proxies))
        for scenario in wanted:
            _run(scenario, proxies, ports[0], result)
        result.rss_after_mb = dict(_memory(proxies))
    return result


def _memory(proxies: Sequence[Running]) -> Iterator[tuple[str, float]]:
    return ((each.name, rss_mb(each.serving())) for each in proxies)


def _url(proxy: Running, *, is_tls: bool) -> str:
    if is_tls:
        return f"https://{TLS_SERVER_NAME}:{proxy.https_port}/"
    return f"http://127.0.0.1:{proxy.http_port}/"


def _run(scenario: Scenario, proxies: Sequence[Running], origin_port: int, result: ThroughputResult) -> None:
    def load(proxy: Running) -> LoadResult:
        url = _url(proxy, is_tls=scenario.is_tls)
        return run_load(scenario.load(url), core=LOAD_CORE, measured=proxy.serving(), measured_core=PROXY_CORE)

    result.targets[scenario.title] = scenario.targets
    result.commands[scenario.title] = scenario.load("URL").command(LOAD_CORE)
    compare(scenario.title, proxies, scenario.rounds, load, result)
    if not scenario.is_tls:
        direct = run_load(scenario.load(f"http://127.0.0.1:{origin_port}/"), core=LOAD_CORE)
        result.rows[scenario.title].append(make_row(DIRECT, {DIRECT: [direct]}))
