"""Throughput and latency of all proxies in one run.

The proxy has one core, the origin and wrk share the other. Rounds are interleaved: in every round each proxy has its
turn, in an order that rotates, so that a drift of the machine meets all alike; ratios are taken within a round and then
their median. A proxy that leaves part of its core idle is bounded by the load, not by itself: `busy` shows it, and
`per core` divides by it.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.correctness import check_answers
from bench.errors import BenchError
from bench.figures import Spread
from bench.load import Load, LoadResult, missing_wrk, run_load
from bench.origin import start_origin
from bench.peers import Peer, Running
from bench.processes import free_ports, need_program, rss_mb
from bench.workload import (
    LARGE_PATH,
    SMALL_PATH,
    TLS_SERVER_NAME,
    Workload,
    host_names,
    write_certificate,
)

PROXY_CORE = 0
LOAD_CORE = 1
HOSTS = 100
SERVICES = 10
DIRECT = "origin, no proxy"


@dataclass(frozen=True)
class Scenario:
    """What is asked of every proxy."""

    title: str
    path: str
    connections: int
    rounds: int
    seconds: float
    is_tls: bool = False


@dataclass(frozen=True)
class Row:
    """One proxy in one scenario."""

    proxy: str
    requests_per_s: Spread
    per_core: float
    """Requests per second of processor time, median."""
    busy: float
    """Share of its core that the proxy used, median."""
    p50_ms: float
    p99_ms: Spread
    megabytes_per_s: float
    of_nginx: float | None
    """Median over rounds of the throughput divided by nginx' in the same round."""
    of_envoy: float | None
    errors: int
    others: float = 0.0
    """Share of the proxy's core that other work used in the worst round."""


@dataclass
class ThroughputResult:
    """All rows, by scenario."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    """Proxy to the reason."""
    rss_before_mb: dict[str, float] = field(default_factory=dict)
    rss_after_mb: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def scenarios(connections: Sequence[int], rounds: int, seconds: float, *, extras: bool) -> list[Scenario]:
    """The scenarios of a run; `extras` adds TLS and large bodies with fewer and shorter rounds."""
    wanted = [Scenario(f"1 KB, {count} connections", SMALL_PATH, count, rounds, seconds) for count in connections]
    if extras:
        few, short = max(1, rounds // 2), max(1.0, seconds * 0.6)
        wanted.append(Scenario("1 KB, TLS, 32 connections", SMALL_PATH, 32, few, short, is_tls=True))
        wanted.append(Scenario("64 KB, 32 connections", LARGE_PATH, 32, few, short))
    return wanted


def measure_throughput(peers: Sequence[Peer], wanted: Sequence[Scenario], folder: Path) -> ThroughputResult:
    """Start everything, check that it answers rightly, run the rounds.

    Raises:
        BenchError: a tool is missing or the origin does not come up. A proxy that cannot be started is left out and
            said so; wrong answers and errors under load are `failures`.
    """
    for reason in (missing_wrk(), need_program("nginx", "nginx-light"), need_program("taskset", "util-linux")):
        if reason:
            raise BenchError(reason)
    result = ThroughputResult()
    folder.mkdir(parents=True, exist_ok=True)
    ports = free_ports(SERVICES)
    workload = Workload(host_names(HOSTS), tuple(ports), *write_certificate(folder))
    with start_origin(folder / "origin", ports, core=LOAD_CORE), _running(peers, workload, folder, result) as proxies:
        _warm_up(proxies)
        result.rss_before_mb = {each.name: rss_mb(each.serving()) for each in proxies}
        for scenario in wanted:
            result.rows[scenario.title] = _run(scenario, proxies, ports[0], result)
        result.rss_after_mb = {each.name: rss_mb(each.serving()) for each in proxies}
    return result


@contextlib.contextmanager
def _running(
    peers: Sequence[Peer], workload: Workload, folder: Path, result: ThroughputResult
) -> Iterator[list[Running]]:
    with contextlib.ExitStack() as stack:
        proxies = []
        for peer in peers:
            if reason := peer.missing():
                result.left_out[peer.name] = reason
                continue
            try:
                proxy = peer.start(workload, folder / peer.name.lower(), core=PROXY_CORE, side_core=LOAD_CORE)
                stack.callback(proxy.stop)
                check_answers(proxy, workload)
            except (BenchError, OSError) as error:
                result.failures.append(f"{peer.name}: {error}")
                continue
            result.versions[peer.name] = proxy.version
            proxies.append(proxy)
        yield proxies


def _warm_up(proxies: Sequence[Running]) -> None:
    for proxy in proxies:
        run_load(Load(_url(proxy, is_tls=False), SMALL_PATH, HOSTS, 32, 1), core=LOAD_CORE)


def _url(proxy: Running, *, is_tls: bool) -> str:
    if is_tls:
        return f"https://{TLS_SERVER_NAME}:{proxy.https_port}/"
    return f"http://127.0.0.1:{proxy.http_port}/"


def _run(scenario: Scenario, proxies: Sequence[Running], origin_port: int, result: ThroughputResult) -> list[Row]:
    def load(url: str) -> Load:
        return Load(url, scenario.path, HOSTS, scenario.connections, scenario.seconds)

    rounds: dict[str, list[LoadResult]] = {proxy.name: [] for proxy in proxies}
    for number in range(scenario.rounds):
        first = number % len(proxies) if proxies else 0
        for proxy in (*proxies[first:], *proxies[:first]):
            proxy.ensure_running()
            url = _url(proxy, is_tls=scenario.is_tls)
            done = run_load(load(url), core=LOAD_CORE, measured=proxy.serving(), measured_core=PROXY_CORE)
            rounds[proxy.name].append(done)
            if done.errors:
                result.failures.append(f"{proxy.name}, {scenario.title}, round {number + 1}: {done.errors}")
    rows = [_row(name, rounds) for name in rounds]
    if not scenario.is_tls:
        direct = run_load(load(f"http://127.0.0.1:{origin_port}/"), core=LOAD_CORE)
        rows.append(_row(DIRECT, {DIRECT: [direct]}))
    return rows


def _row(name: str, rounds: dict[str, list[LoadResult]]) -> Row:
    own = rounds[name]
    return Row(
        proxy=name,
        requests_per_s=Spread.of([each.requests_per_s for each in own]),
        per_core=median([each.requests_per_s / each.busy if each.busy else 0.0 for each in own]),
        busy=median([each.busy for each in own]),
        p50_ms=median([each.p50_ms for each in own]),
        p99_ms=Spread.of([each.p99_ms for each in own]),
        megabytes_per_s=median([each.megabytes_per_s for each in own]),
        of_nginx=_ratio(own, rounds.get("nginx")),
        of_envoy=_ratio(own, rounds.get("Envoy")),
        errors=sum(sum(each.errors.values()) for each in own),
        others=max(each.others for each in own),
    )


def _ratio(own: Sequence[LoadResult], other: Sequence[LoadResult] | None) -> float | None:
    if not other:
        return None
    return median([mine.requests_per_s / theirs.requests_per_s for mine, theirs in zip(own, other, strict=True)])
