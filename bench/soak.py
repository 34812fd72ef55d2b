"""Millions of requests while the table changes all the time: does one fail, and does the gateway grow?

    python -m bench.soak [--requests 10000000] [--sites 1000] [--rate 20] [--connections 64]

Everything runs as `headgate up` starts it. wrk asks all hosts in turn as fast as it can, in rounds of a minute, while
the endpoints of random hosts move and routes come and go, each change by way of log, translator and store. An answer
that is no 200, and a connection that breaks, is a failed request. Written to `bench/results`, the failures first.
"""

import argparse
import datetime
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.clients.load import Load, run_load
from bench.parts.comparison import LOAD_CORE, PROXY_CORE, need_programs
from bench.recording.churner import Churned, Churner
from bench.recording.tap import POINTERS, Tap
from bench.reporting.machine import describe_machine
from bench.servers.origin import start_origin
from bench.setup.manifests import site_host, write_class, write_sites
from bench.setup.measuring import measure_alone
from bench.setup.processes import family, free_ports, pin, rss_mb
from bench.setup.stack import Stack
from bench.setup.workload import SMALL_PATH

ENDPOINTS = 10
PORTS = 8
DOCUMENTS_PER_FILE = 100
ROUND_S = 60.0
_READY_S = 120.0
_RESULTS = Path(__file__).parent / "results"


@dataclass
class Soaked:
    """What there was."""

    requests: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    """By kind."""
    took_s: float = 0.0
    slowest_ms: float = 0.0
    changes: int = 0
    lost: int = 0
    """Changes that the log did not confirm."""
    revisions: int = 0
    memory_mb: list[float] = field(default_factory=list)
    """Of the gateway, before the first round and after each."""
    restarts: dict[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """Requests without a right answer."""
        return sum(self.errors.values())


def main() -> int:
    """Measure, print and write; the exit code says whether anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=20, help="changes a second")
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    began = datetime.datetime.now(datetime.UTC)
    found = measure_alone(lambda folder: _measure(folder, options))
    text = _report(found, options, began)
    path = _RESULTS / f"{began:%Y-%m-%d}-{describe_machine().slug}-soak.md"
    path.write_text(text)
    print(f"{text}\nwritten to {path}")
    return 1 if found.failed or found.lost or found.restarts else 0


def _measure(folder: Path, options: argparse.Namespace) -> Soaked:
    need_programs(("wrk", "wrk"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    manifests, ports = folder / "manifests", free_ports(PORTS)
    write_sites(manifests, options.sites, ports, DOCUMENTS_PER_FILE, endpoints=ENDPOINTS)
    write_class(manifests)
    found = Soaked()
    with start_origin(folder / "origin", [], named_ports=ports, named_host="*"), Stack(manifests, folder) as stack:
        last = options.sites - 1
        stack.wait_until_serving(site_host(last), str(ports[last % PORTS]), _READY_S)
        gateway = family(stack.pids["gateway"])
        for pid in gateway:
            pin(pid, PROXY_CORE)
        load = Load(
            f"http://127.0.0.1:{stack.http_port}/",
            SMALL_PATH,
            options.sites,
            options.connections,
            ROUND_S,
            name="site-%05d",
        )
        tap = Tap(folder, stack.nats_url)
        churner = Churner(folder, stack.nats_url, options.rate, Churned(options.sites, ENDPOINTS, tuple(ports)))
        found.memory_mb.append(rss_mb(gateway))
        with tap, churner:
            began = time.monotonic()
            while found.requests < options.requests:
                _one_round(load, gateway, found)
            found.took_s = time.monotonic() - began
        found.changes, found.lost = len(churner.changes), sum(not each.stored for each in churner.changes)
        found.revisions = sum(each.subject.startswith(POINTERS) for each in tap.heard)
        found.restarts = dict(stack.restarts)
    return found


def _one_round(load: Load, gateway: list[int], found: Soaked) -> None:
    done = run_load(load, core=LOAD_CORE)
    found.requests += done.requests
    for kind, count in done.errors.items():
        found.errors[kind] = found.errors.get(kind, 0) + count
    found.slowest_ms = max(found.slowest_ms, done.max_ms)
    found.memory_mb.append(rss_mb(gateway))
    print(f"{found.requests:,} requests, {found.failed} failed, {found.memory_mb[-1]:.1f} MB", flush=True)


def _report(found: Soaked, options: argparse.Namespace, began: datetime.datetime) -> str:
    failed = f"**{found.failed:,} failed: {found.errors}**" if found.failed else "none failed"
    memory = ", ".join(f"{each:.1f}" for each in found.memory_mb)
    lines = [
        f"# {found.requests:,} requests while the table changes, {failed}",
        f"{began:%Y-%m-%d %H:%M} UTC, {describe_machine()}; `python -m bench.soak --requests {options.requests} "
        f"--sites {options.sites} --rate {options.rate} --connections {options.connections}`",
        f"- {options.sites:,} Ingresses with {ENDPOINTS} endpoints each, all asked in turn; {found.took_s:.0f} s, "
        f"{found.requests / found.took_s:,.0f} requests/s, the gateway on one core and everything else on both",
        f"- {found.changes:,} changes, {found.lost} of them not confirmed by the log; {found.revisions:,} revisions",
        f"- slowest answer: {found.slowest_ms:.1f} ms",
        f"- memory of the gateway, before and after each round, MB: {memory}",
        f"- services that had to be started again: {found.restarts or 'none'}",
    ]
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:]) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
