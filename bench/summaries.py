"""What telling consoles of its traffic costs a gateway, by pairs.

    python -m bench.summaries [--hosts 500] [--pairs 15] [--seconds 3] [--connections 32]

Two gateways on one core follow the same table. One says each second what it served, as always, the other never does
(`bench/servers/silent_gateway.py`). wrk asks the one and the other in turn for all hosts. A summary names at most
500 routes, so the default has the longest one. For each pair of rounds the bench divides the requests that each gateway
served for a second of its processor time; it prints the median of these ratios and their middle half. A slow moment of
the machine mostly slows both rounds of a pair.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

from bench.clients.load import Load, run_load
from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.parts.comparison import LOAD_CORE, PROXY_CORE, need_programs
from bench.reporting.promise import at_least
from bench.servers import silent_gateway
from bench.servers.origin import start_origin
from bench.setup.gateway import Gateway
from bench.setup.manifests import write_workload
from bench.setup.measuring import measure_alone
from bench.setup.processes import family, free_ports, pin
from bench.setup.stack import Stack
from bench.setup.workload import SMALL_BYTES, SMALL_PATH, Workload, host_names, write_certificate

LEAST = 0.99
_READY_S = 60.0
_SILENT = (sys.executable, str(Path(silent_gateway.__file__)))


def main() -> int:
    """Measure and print; the exit code says whether the promise is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    if options.pairs < 2:
        parser.error("--pairs: at least 2")
    ratios = measure_alone(lambda folder: _measure(folder, options), within=None)
    low, _, high = quantiles(ratios, n=4)
    promise = at_least("requests of a gateway that tells of them", LEAST, median(ratios))
    print(f"telling of {options.hosts} hosts: {promise.measured} of the requests without, by {options.pairs} pairs")
    print(f"the middle half of the pairs: {low:.3f} to {high:.3f}")
    return 0 if promise.is_kept else 1


def _measure(folder: Path, options: argparse.Namespace) -> list[float]:
    """Return of each pair the telling gateway's share of the silent one's requests."""
    need_programs(("wrk", "wrk"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    port = free_ports(1)[0]
    workload = Workload(host_names(options.hosts), (port,), *write_certificate(folder))
    write_workload(folder / "manifests", workload)
    with start_origin(folder / "origin", [port], core=LOAD_CORE), Stack(folder / "manifests", folder) as stack:
        stack.wait_until_serving(workload.hosts[-1], "x" * SMALL_BYTES, _READY_S)
        for pid in stack.process.family():
            pin(pid, LOAD_CORE)
        gateways = [
            Gateway("silent", stack, folder, core=PROXY_CORE, program=_SILENT),
            Gateway("telling", stack, folder, core=PROXY_CORE),
        ]
        try:
            for gateway in gateways:
                gateway.wait_until_ready()
                Probe(gateway.http_port, workload.hosts[-1]).wait_for("x" * SMALL_BYTES, _READY_S)
            load = (options.hosts, options.connections, options.seconds)
            return [_compare(gateways, *load) for _ in range(options.pairs)]
        finally:
            for gateway in gateways:
                gateway.process.stop()


def _compare(gateways: Sequence[Gateway], hosts: int, connections: int, seconds: float) -> float:
    """Return the second gateway's requests for each second of processor time, as a share of the first one's."""
    found = []
    for gateway in gateways:
        load = Load(f"http://127.0.0.1:{gateway.http_port}/", SMALL_PATH, hosts, connections, seconds)
        served = run_load(load, core=LOAD_CORE, measured=family(gateway.process.pid), measured_core=PROXY_CORE)
        if served.errors:
            raise BenchError(f"{gateway.name}: {served.errors}")
        found.append(served.requests_per_s / served.busy)
    silent, telling = found
    return telling / silent


if __name__ == "__main__":
    raise SystemExit(main())
