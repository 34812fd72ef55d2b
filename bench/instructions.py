"""What a request costs a gateway in instructions and system calls, on real connections.

    python -m bench.instructions [--load http1] [--requests 4000] [--connections 32] [--top 40] [--calls]

These figures depend little on what else runs on the machine, so that a change of one per cent can be told from noise.
A gateway runs under callgrind, which counts the instructions that its process executes for a fixed number of requests
and for twice as many; the difference is that of the requests alone. What the kernel executes is not among them. Printed
are the instructions of a request, by library and by function. With `--calls` strace counts its system calls for a
request instead, and the gateway's memory is printed.

The loads are those of `bench.setup.loads`.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.clients.h2load import H2Load, run_h2load
from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.parts.comparison import need_programs
from bench.setup.gateway import Gateway
from bench.setup.loads import LOADS, serving_stack
from bench.setup.measuring import measure_alone
from bench.setup.processes import rss_mb
from bench.setup.stack import HEADGATE
from bench.setup.workload import SMALL_BYTES

_READY_S = 180.0
_WARM_UP = 1000
"""Requests before those that are counted: connections, caches of shapes and the allocator's pools are there then."""
_CALLGRIND = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--error-limit=no", "--log-file=/dev/null")
_LIBRARIES = 14
_FUNCTION = re.compile(r"^ *([\d,]+) \(.*?\)  (?:\S*?:)?(.+?)(?: \[(.*)\])?$")
Counts = Counter[tuple[str, str]]
"""Instructions by library and function."""
_CALLS = re.compile(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", re.MULTILINE)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", choices=LOADS, default="http1")
    parser.add_argument("--requests", type=int, default=4000, help="that are counted, default 4000")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--top", type=int, default=40, help="functions that are listed, default 40")
    parser.add_argument("--keep", type=Path, help="file for what callgrind wrote, as kcachegrind reads it")
    parser.add_argument("--calls", action="store_true", help="count system calls")
    options = parser.parse_args()
    measure = _count_calls if options.calls else _count_instructions
    print(measure_alone(lambda folder: measure(folder, options)))
    return 0


def _count_instructions(folder: Path, options: argparse.Namespace) -> str:
    need_programs(("valgrind", "valgrind"))
    program = (*_CALLGRIND, f"--callgrind-out-file={folder}/callgrind.%p", *HEADGATE)
    # Connections are opened in both runs and cancel out, unless they are what is asked for.
    runs = [options.requests] if options.load == "handshakes" else [options.requests, 2 * options.requests]
    with _loaded_gateway(folder, options, program) as (gateway, load):
        pid = gateway.process.pid
        _control(pid, "--instr=on")
        for requests in runs:
            _run(load, options, requests)
            _control(pid, "--dump")
        _control(pid, "--instr=off")
        # What the gateway itself opens last is empty, or of its end.
        written = sorted(folder.glob(f"callgrind.{pid}.*"), key=lambda path: int(path.suffix[1:]))[: len(runs)]
    if options.keep is not None:
        shutil.copy(written[-1], options.keep)
    counted = [read_counts(_annotate(path)) for path in written]
    counts = counted[-1]
    if len(runs) == 2:
        counts.subtract(counted[0])
    return instructions(counts, options.requests, options.top)


def _annotate(written: Path) -> str:
    argv = ["callgrind_annotate", "--threshold=100", str(written)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def read_counts(listed: str) -> Counts:
    """Read the instructions of each function from what callgrind_annotate lists.

    Raises:
        BenchError: it lists nothing.
    """
    counts: Counts = Counter()
    for line in listed.splitlines():
        found = _FUNCTION.match(line)
        if found is not None and found[2] != "PROGRAM TOTALS":
            counts[Path(found[3] or "?").name, found[2]] += int(found[1].replace(",", ""))
    if not counts:
        raise BenchError(f"callgrind_annotate lists nothing: {listed[:300]}")
    return counts


def instructions(counts: Counts, requests: int, top: int) -> str:
    """Put into rows what a request costs, altogether, by library and by function."""
    libraries: Counter[str] = Counter()
    for (library, _), count in counts.items():
        libraries[library] += count
    rows = [f"{counts.total() / requests:10,.0f}  instructions for a request", ""]
    rows += [f"{count / requests:10,.0f}  {name}" for name, count in libraries.most_common(_LIBRARIES)]
    rows.append("")
    rows += [f"{count / requests:10,.0f}  {name}  [{library}]" for (library, name), count in counts.most_common(top)]
    return "\n".join(rows)


def _count_calls(folder: Path, options: argparse.Namespace) -> str:
    need_programs(("strace", "strace"))
    with _loaded_gateway(folder, options, HEADGATE) as (gateway, load):
        report, before_mb = folder / "strace.txt", rss_mb([gateway.process.pid])
        argv = ["strace", "-f", "-c", "-U", "time-percent,total-time,avg-time,calls,errors,name"]
        tracer = subprocess.Popen([*argv, "-o", str(report), "-p", str(gateway.process.pid)], stderr=subprocess.DEVNULL)
        time.sleep(1)
        _run(load, options)
        tracer.send_signal(signal.SIGINT)
        tracer.wait(10)
        after_mb = rss_mb([gateway.process.pid])
    counts = Counter({name: int(count) for count, name in _CALLS.findall(report.read_text())})
    counts.pop("total", None)
    rows = [f"{counts.total() / options.requests:8.3f}  system calls for a request"]
    rows += [f"{before_mb:8.1f}  MB of memory after {_WARM_UP} requests, {after_mb:.1f} at the end", ""]
    rows += [f"{count / options.requests:8.3f}  {name}" for name, count in counts.most_common(options.top)]
    return "\n".join(rows)


@contextmanager
def _loaded_gateway(
    folder: Path, options: argparse.Namespace, program: Sequence[str]
) -> Iterator[tuple[Gateway, H2Load]]:
    """Start a gateway and put the load on it, for a while to warm up; the load is for more of it."""
    with serving_stack(folder) as loads:
        gateway = Gateway("gateway", loads.stack, folder, program=program)
        try:
            gateway.wait_until_ready(_READY_S)
            Probe(gateway.http_port, loads.workload.hosts[-1]).wait_for("x" * SMALL_BYTES, _READY_S)
            load = loads.of(options.load, gateway, options.connections)
            _run(load, options, _WARM_UP)
            yield gateway, load
        finally:
            gateway.process.stop(grace_s=60)


def _run(load: H2Load, options: argparse.Namespace, requests: int = 0) -> None:
    """Send so many requests, or those that are counted; with `handshakes` each on a connection of its own."""
    left = requests or options.requests
    while left > 0:
        load = replace(load, requests=left)
        if options.load == "handshakes":
            clients = min(left, options.connections)
            load = replace(load, clients=clients, requests=clients)
        done = run_h2load(load, core=max(os.sched_getaffinity(0)))
        if done.errors:
            raise BenchError(f"the load failed: {done.errors}")
        left -= load.requests or left


def _control(pid: int, *flags: str) -> None:
    ran = subprocess.run(["callgrind_control", *flags, str(pid)], capture_output=True, text=True)
    if ran.returncode:
        raise BenchError(f"callgrind_control: {ran.stderr[-300:]}")


if __name__ == "__main__":
    raise SystemExit(main())
