"""Large bodies, one at a time, each way: bytes per second, and what the proxy's memory grows by meanwhile.

Also with a client that reads slowly and with an endpoint that does: a proxy that takes more than it can hand on grows
by the difference. Memory is looked at every 20 ms and compared with that before the transfer, after a body of the
same size went each way.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.clients.transfer import Transferred, parse_transfer
from bench.errors import BenchError
from bench.parts.comparison import LOAD_CORE, PROXY_CORE, ComparisonResult, in_turns, need_programs, running
from bench.peers import Peer, Running
from bench.reporting.figures import Spread
from bench.reporting.promise import MEASURED, Promise, at_least, below
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.processes import Process, core_seconds, cpu_seconds, free_ports, rss_mb, wait_for_port
from bench.setup.tools import BENCH, IMPORTABLE
from bench.setup.workload import Extra, Workload, host_names, write_certificate

OF_NGINX = 0.5
GROWTH_MB = 10.0
WAYS = {"down": "download", "up": "upload"}
_SAMPLE_S = 0.02
_PATIENCE_S = 300.0


@dataclass(frozen=True)
class BodiesPlan:
    """What to measure."""

    bytes: int
    rounds: int
    slow_s: float
    """How long slow readers read."""

    @property
    def size(self) -> str:
        """For people."""
        return f"{self.bytes / (1 << 30):g} GiB"


@dataclass(frozen=True)
class Move:
    """One transfer, seen from outside."""

    transferred: Transferred
    growth_mb: float
    busy: float
    others: float


@dataclass(frozen=True)
class BodyRow:
    """One proxy, one way."""

    proxy: str
    way: str
    megabytes_per_s: Spread
    of_nginx: float | None
    """Median over rounds."""
    busy: float
    growth_mb: float
    """The most of any round."""
    slow_mb_per_s: float
    slow_growth_mb: float
    others: float


@dataclass
class BodiesResult:
    """All rows; see `ComparisonResult` for the rest."""

    size: str
    command: str
    body_rows: list[BodyRow] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def promises(self) -> Iterator[Promise]:
        """Compare the rows of Headgate with what is promised."""
        for row in self.body_rows:
            if row.proxy != MEASURED:
                continue
            what = f"{WAYS[row.way]} of {self.size}"
            if row.of_nginx is not None:
                yield at_least(f"{what}, bytes/s of nginx", OF_NGINX, row.of_nginx)
            yield below(f"{what}, memory grows", GROWTH_MB, row.growth_mb, "MB")
            yield below(f"{what}, slow reader, memory grows", GROWTH_MB, row.slow_growth_mb, "MB")

    def markdown(self) -> str:
        """The part of the report."""
        heads = ("", "MB/s", "spread", "of nginx", "busy", "grows MB", "slow reader MB/s", "grows MB")
        rows = [
            [
                *(f"{row.proxy}, {WAYS[row.way]}", f"{row.megabytes_per_s.median:,.0f}"),
                f"{row.megabytes_per_s.low:,.0f} to {row.megabytes_per_s.high:,.0f}",
                f"{row.of_nginx:.2f}" if row.of_nginx is not None else "",
                *(f"{row.busy:.0%}", f"{row.growth_mb:.1f}", f"{row.slow_mb_per_s:.1f}", f"{row.slow_growth_mb:.1f}"),
            ]
            for row in self.body_rows
        ]
        parts = [f"## Bodies of {self.size}, one at a time, one core for the proxy", table(heads, rows)]
        parts.append(f"`{self.command}`")
        disturbed = max((row.others for row in self.body_rows), default=0.0)
        parts.append(f"Other work used up to {disturbed:.0%} of the proxies' core.")
        return "\n\n".join([*parts, *(f"{name} was left out: {why}." for name, why in self.left_out.items())])


@contextmanager
def bodies_origin(folder: Path, port: int, core: int | None) -> Iterator[Process]:
    """Run the origin for bodies while the context lasts."""
    argv = [sys.executable, "-m", "bench.servers.bodies_origin", str(port)]
    with Process("bodies-origin", argv, folder, core=core, env=IMPORTABLE) as process:
        wait_for_port(port, process)
        yield process


def measure_bodies(peers: Sequence[Peer], plan: BodiesPlan, folder: Path) -> BodiesResult:
    """Start everything, run the rounds, then the slow readers.

    Raises:
        BenchError: a tool is missing or the origin does not come up.
    """
    need_programs(("nginx", "nginx-light"), ("taskset", "util-linux"))
    folder.mkdir(parents=True, exist_ok=True)
    *ports, bodies_port = free_ports(2)
    extra = Extra("bodies", bodies_port)
    workload = Workload(host_names(1), tuple(ports), *write_certificate(folder), extras=(extra,))
    started = ComparisonResult()
    command = f"taskset --cpu-list {LOAD_CORE} python -m bench.clients.transfer PORT {extra.host} down|up {plan.bytes}"
    result = BodiesResult(plan.size, command)
    with (
        start_origin(folder / "origin", ports, core=LOAD_CORE),
        bodies_origin(folder, bodies_port, LOAD_CORE),
        running(peers, workload, folder, started) as proxies,
    ):
        result.versions, result.left_out = started.versions, started.left_out
        result.failures += started.failures
        for way in WAYS:
            _measure_way(way, extra.host, proxies, plan, result)
    return result


def _measure_way(way: str, host: str, proxies: Sequence[Running], plan: BodiesPlan, result: BodiesResult) -> None:
    moves: dict[str, list[Move]] = {proxy.name: [] for proxy in proxies}
    able = [proxy for proxy in proxies if _warm_up(proxy, host, way, plan, result)]
    for _, proxy in in_turns(able, plan.rounds):
        moves[proxy.name].append(move(proxy, host, way, plan.bytes))
    slow = {proxy.name: move(proxy, host, way, plan.bytes, plan.slow_s) for proxy in able}
    for proxy in able:
        result.body_rows.append(_row(proxy.name, way, moves, slow[proxy.name]))


def _warm_up(proxy: Running, host: str, way: str, plan: BodiesPlan, result: BodiesResult) -> bool:
    try:
        done = move(proxy, host, way, plan.bytes).transferred
        if (done.status, done.bytes) == (200, plan.bytes):
            return True
        result.failures.append(f"{proxy.name}, {WAYS[way]}: {done}")
    except BenchError as error:
        result.failures.append(f"{proxy.name}, {WAYS[way]}: {error}")
    return False


def _row(name: str, way: str, moves: dict[str, list[Move]], slow: Move) -> BodyRow:
    own, nginx = moves[name], moves.get("nginx")
    speeds = [each.transferred.megabytes_per_s for each in own]
    ratios = [mine / each.transferred.megabytes_per_s for mine, each in zip(speeds, nginx or (), strict=bool(nginx))]
    return BodyRow(
        proxy=name,
        way=way,
        megabytes_per_s=Spread.of(speeds),
        of_nginx=median(ratios) if ratios else None,
        busy=median([each.busy for each in own]),
        growth_mb=max(each.growth_mb for each in own),
        slow_mb_per_s=slow.transferred.megabytes_per_s,
        slow_growth_mb=slow.growth_mb,
        others=max(each.others for each in own),
    )


def move(proxy: Running, host: str, way: str, length: int, slow_s: float | None = None) -> Move:
    """Transfer one body and look at the proxy meanwhile.

    Raises:
        BenchError: it failed, or something was lost.
    """
    argv = ["taskset", "--cpu-list", str(LOAD_CORE), sys.executable, "-m", "bench.clients.transfer"]
    argv += [str(proxy.http_port), host, way, str(length), *([str(slow_s)] if slow_s is not None else [])]
    pids = proxy.serving()
    before = most = rss_mb(pids)
    cpu, all_cpu, clock = cpu_seconds(pids), core_seconds(PROXY_CORE), time.monotonic()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=BENCH.parent) as client:
        while client.poll() is None:
            most = max(most, rss_mb(pids))
            if time.monotonic() - clock > _PATIENCE_S:
                client.kill()
            time.sleep(_SAMPLE_S)
        said, complaint = client.communicate()
    lasted = time.monotonic() - clock
    busy = (cpu_seconds(pids) - cpu) / lasted
    if client.returncode:
        raise BenchError(f"the transfer ended with code {client.returncode}: {complaint[-300:]}")
    done = parse_transfer(said)
    if slow_s is None and (done.status, done.bytes) != (200, length):
        raise BenchError(f"{proxy.name} answered {done.status} and carried {done.bytes} of {length} bytes")
    others = max(0.0, (core_seconds(PROXY_CORE) - all_cpu) / lasted - busy)
    return Move(done, most - before, busy, others)
