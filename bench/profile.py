"""Where the gateway's time goes under load: a flame graph and a list of the functions that cost most.

    python -m bench.profile [--protocol http1] [--seconds 10] [--connections 32] [--path /] [--native]

py-spy samples the pinned gateway while wrk or h2load loads it; nothing in the gateway is changed or slowed for it.
Writes gateway.svg and gateway-top.txt to bench/.work/profile and prints the list.
"""

import argparse
import contextlib
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bench.clients.h2load import run_h2load
from bench.clients.load import Load, LoadResult, run_load
from bench.errors import BenchError
from bench.parts.comparison import LOAD_CORE, PROXY_CORE
from bench.parts.http2 import browser_load, grpc_load, grpc_origin
from bench.parts.throughput import HOSTS, SERVICES
from bench.peers import Running
from bench.peers.headgate import Headgate
from bench.servers.origin import start_origin
from bench.setup.processes import command_line, cpu_seconds, end_all, free_ports
from bench.setup.tools import WORK, alone, bench_tool
from bench.setup.workload import Extra, Workload, host_names, write_certificate

RATE = 400
"""Samples a second."""
LISTED = 40
_OTHER_THREAD = "_bootstrap (threading.py"
"""Begins the stack of every thread but the one that carries traffic; they wait, which looks like work."""
LoadFor = Callable[[float], LoadResult]
"""Puts load on the gateway for so many seconds."""


def main(argv: Sequence[str] | None = None) -> int:
    """Profile and print; return 1 if that is not possible."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description="Profile the gateway under load.")
    parser.add_argument("--seconds", type=int, default=10, help="of each of two recordings, default 10")
    parser.add_argument(
        "--protocol", choices=("http1", "http2", "grpc"), default="http1", help="as in the parts; default http1"
    )
    parser.add_argument("--connections", type=int, default=32, help="http1: default 32")
    parser.add_argument("--path", default="/", help="http1: / has 1 KB, /64k has 64 KB; default /")
    parser.add_argument("--native", action="store_true", help="show C frames too; slower")
    options = parser.parse_args(argv)
    folder = WORK / "profile"
    try:
        with alone():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            print(profile_gateway(folder, options))
    except BenchError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    finally:
        end_all()
    return 0


def profile_gateway(folder: Path, options: argparse.Namespace) -> str:
    """Load the gateway, record it twice (for the graph and for the list) and return the list.

    Raises:
        BenchError: py-spy cannot be installed, or something does not start.
    """
    spy = bench_tool("py-spy")
    if spy is None:
        raise BenchError("py-spy of bench/requirements.lock cannot be installed")
    *ports, grpc_port = free_ports(SERVICES + 1)
    extras = (Extra("grpc", grpc_port, speaks_http2=True),) if options.protocol == "grpc" else ()
    workload = Workload(host_names(HOSTS), tuple(ports), *write_certificate(folder), extras=extras)
    with start_origin(folder / "origin", ports, core=LOAD_CORE), contextlib.ExitStack() as stack:
        if extras:
            stack.enter_context(grpc_origin(folder, grpc_port, LOAD_CORE))
        gateway = Headgate().start(workload, folder / "headgate", core=PROXY_CORE, side_core=LOAD_CORE)
        stack.callback(gateway.stop)
        load = _load_of(options, gateway, workload, folder)
        pid = busiest(gateway, load)
        raw = folder / "gateway.txt"
        with _loaded(lambda: load(2 * options.seconds + 4)) as results:
            for form, target in (("raw", raw), ("flamegraph", folder / "gateway.svg")):
                _record(spy, pid, options.seconds, form, target, is_native=options.native)
    listed = f"{command_line(pid) or 'gateway'}, {results[0].requests_per_s:,.0f} requests/s while sampled\n\n"
    listed += top_list(line for line in raw.read_text().splitlines() if _OTHER_THREAD not in line)
    (folder / "gateway-top.txt").write_text(listed)
    return f"{listed}\nflame graph: {folder / 'gateway.svg'}"


def _load_of(options: argparse.Namespace, gateway: Running, workload: Workload, folder: Path) -> LoadFor:
    port = gateway.http_port

    def load(seconds: float) -> LoadResult:
        if options.protocol == "http1":
            url = f"http://127.0.0.1:{port}/"
            return run_load(Load(url, options.path, HOSTS, options.connections, seconds), core=LOAD_CORE)
        if options.protocol == "http2":
            return run_h2load(browser_load(f"http://{workload.hosts[0]}/", seconds, port), core=LOAD_CORE)
        return run_h2load(grpc_load(workload.extras[0].host, folder, seconds, port), core=LOAD_CORE)

    return load


def busiest(gateway: Running, load: LoadFor) -> int:
    """Pid of the process that carries the traffic: a gateway may have a parent that only supervises."""
    before = {pid: cpu_seconds([pid]) for pid in gateway.serving()}
    load(2)
    return max(gateway.serving(), key=lambda pid: cpu_seconds([pid]) - before.get(pid, 0.0))


@contextlib.contextmanager
def _loaded(load: Callable[[], LoadResult]) -> Iterator[list[LoadResult]]:
    results: list[LoadResult] = []
    thread = threading.Thread(target=lambda: results.append(load()))
    thread.start()
    try:
        yield results
    finally:
        thread.join()


def _record(spy: Path, pid: int, seconds: int, form: str, target: Path, *, is_native: bool) -> None:
    argv = ["taskset", "--cpu-list", str(LOAD_CORE), str(spy), "record", "--pid", str(pid), "--rate", str(RATE)]
    argv += ["--duration", str(seconds), "--format", form, "--output", str(target)] + (
        ["--native"] if is_native else []
    )
    ran = subprocess.run(argv, capture_output=True, text=True)
    if ran.returncode != 0 or not target.exists():
        raise BenchError(f"py-spy: {ran.stderr.strip()[-300:]}")


def top_list(lines: Iterable[str]) -> str:
    """Functions by share of samples: on top of the stack (`own`) and anywhere in it (`with callees`).

    `lines` are py-spy's raw form: frames from the outermost in, separated by `;`, then the number of samples.
    """
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        frames = [_function(frame) for frame in stack.split(";")]
        own[frames[-1]] += int(count)
        for frame in set(frames):
            within[frame] += int(count)
    total = sum(own.values())
    if not total:
        return "no samples\n"
    rows = (f"{own[frame] / total:6.1%}  {within[frame] / total:6.1%}  {frame}" for frame, _ in own.most_common(LISTED))
    return "\n".join(("   own  with callees", *rows)) + "\n"


def _function(frame: str) -> str:
    """`name (path/of/file.py:12)` without the line, so that a function counts once."""
    name, _, place = frame.partition(" (")
    return f"{name} ({place.rpartition(':')[0]})" if place else name


if __name__ == "__main__":
    sys.exit(main())
