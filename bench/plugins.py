"""What plugins leave of a route's throughput, on real connections.

    python -m bench.plugins [--rounds 3] [--seconds 3] [--connections 32]

One gateway, pinned to a core, serves each host plain, and below `/plugged` with `cors`, `limit-count` and `request-id`.
wrk asks for the one and the other in turn. Printed are the requests for each second of the gateway's processor time,
of the best rounds, and their ratio: what else runs on the machine lowers the throughput, and this hardly.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from bench.clients.load import Load, run_load
from bench.clients.probe import Probe
from bench.engine import PLUGINS
from bench.errors import BenchError
from bench.parts.comparison import LOAD_CORE, PROXY_CORE, need_programs
from bench.peers import Running
from bench.peers.headgate import Headgate
from bench.reporting.promise import at_least
from bench.servers.origin import start_origin
from bench.setup.manifests import SEPARATOR, ingress, replace_file
from bench.setup.processes import free_ports
from bench.setup.workload import SMALL_PATH, Workload, host_names, write_certificate

HOSTS = 10
PLUGGED_PATH = "/plugged"
LEAST = 0.6
_APPLIED_S = 30.0


def main() -> int:
    """Measure and print; the exit code says whether the promise is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    need_programs(("wrk", "wrk"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        port = free_ports(1)[0]
        workload = Workload(host_names(HOSTS), (port,), *write_certificate(folder))
        with start_origin(folder / "origin", [port], core=LOAD_CORE):
            running = Headgate().start(workload, folder, core=PROXY_CORE, side_core=LOAD_CORE)
            try:
                _plug(folder / "manifests", running, workload)
                plain, plugged = _measure(running, options.rounds, options.seconds, options.connections)
            finally:
                running.stop()
    promise = at_least("throughput with three plugins", LEAST, plugged / plain)
    print(f"plain: {plain:,.0f} requests for each second of processor time ({running.version})")
    print(f"with {', '.join(name for name, _ in PLUGINS)}: {plugged:,.0f}, {promise.measured} of it")
    return 0 if promise.is_kept else 1


def _plug(manifests: Path, running: Running, workload: Workload) -> None:
    """Add the routes with plugins, and wait until they are served."""
    written = json.dumps([{"name": name, "config": config} for name, config in PLUGINS])
    annotations = {"headgate.dev/plugins": written}
    routes = (
        ingress(f"plugged-{index}", host, "service-0", paths=[PLUGGED_PATH], annotations=annotations)
        for index, host in enumerate(workload.hosts)
    )
    replace_file(manifests / "plugged.yaml", SEPARATOR.join(routes))
    probe = Probe(running.http_port, workload.hosts[-1])
    end = time.monotonic() + _APPLIED_S
    while "X-RateLimit-Limit" not in probe.headers(PLUGGED_PATH):
        if time.monotonic() > end:
            raise BenchError(f"{PLUGGED_PATH} was not served with plugins within {_APPLIED_S:g} s")
        time.sleep(0.05)
    probe.close()


def _measure(running: Running, rounds: int, seconds: float, connections: int) -> list[float]:
    """Return requests for each second of processor time, without and with plugins."""
    best = [0.0, 0.0]
    for _ in range(rounds):
        for which, path in enumerate((SMALL_PATH, PLUGGED_PATH)):
            load = Load(f"http://127.0.0.1:{running.http_port}/", path, HOSTS, connections, seconds)
            found = run_load(load, core=LOAD_CORE, measured=running.serving(), measured_core=PROXY_CORE)
            if found.errors:
                raise BenchError(f"{path}: {found.errors}")
            best[which] = max(best[which], found.requests_per_s / found.busy)
    return best


if __name__ == "__main__":
    raise SystemExit(main())
