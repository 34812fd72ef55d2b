"""What plugins leave of a route's throughput, on real connections.

    python -m bench.plugins [--annotations] [--rounds 3] [--seconds 3] [--connections 32]

A gateway, pinned to a core, serves each host plain. Another on the same core serves below `/plugged` routes with
`cors`, `limit-count`, `request-id` and `proxy-rewrite` with a header, or with `--annotations` those of Ingresses with
`rewrite-target`, `enable-cors` and `limit-rps` of ingress-nginx. wrk asks for the one and the other in turn. Printed
are the requests for each second of the gateway's processor time, of the best rounds, and their ratio: what else runs on
the machine lowers the throughput, and this hardly.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

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
_APPLIED_S = 30.0


class _Case(NamedTuple):
    """Routes that have something done with their requests."""

    named: str
    path: str
    """Of the Ingress."""
    asked: str
    annotations: Mapping[str, str]
    sign: str
    """A field of answers that shows that it is done."""
    least: float
    """Share of the plain route's requests."""


_NGINX = "nginx.ingress.kubernetes.io"
_BY_PLUGINS = _Case(
    ", ".join(name for name, _ in PLUGINS),
    PLUGGED_PATH,
    PLUGGED_PATH,
    {"headgate.dev/plugins": json.dumps([{"name": name, "config": config} for name, config in PLUGINS])},
    "X-RateLimit-Limit",
    0.8,
)
_BY_ANNOTATIONS = _Case(
    "rewrite-target, enable-cors, limit-rps",
    f"{PLUGGED_PATH}(/.*)",
    f"{PLUGGED_PATH}{SMALL_PATH}",
    {
        f"{_NGINX}/rewrite-target": "$1",
        f"{_NGINX}/enable-cors": "true",
        f"{_NGINX}/limit-rps": "1000000",
        f"{_NGINX}/ssl-redirect": "false",
    },
    "Access-Control-Allow-Origin",
    0.7,
)


def main() -> int:
    """Measure and print; the exit code says whether the promise is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotations", action="store_true", help="three annotations of ingress-nginx")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    case = _BY_ANNOTATIONS if options.annotations else _BY_PLUGINS
    need_programs(("wrk", "wrk"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        port = free_ports(1)[0]
        workload = Workload(host_names(HOSTS), (port,), *write_certificate(folder))
        with start_origin(folder / "origin", [port], core=LOAD_CORE):
            gateways = [_start(workload, folder / name) for name in ("plain", "plugged")]
            try:
                _plug(folder / "plugged" / "manifests", gateways[1], workload, case)
                paths = (SMALL_PATH, case.asked)
                plain, plugged = _measure(gateways, paths, options.rounds, options.seconds, options.connections)
            finally:
                for running in gateways:
                    running.stop()
    promise = at_least(f"throughput with {case.named}", case.least, plugged / plain)
    print(f"plain: {plain:,.0f} requests for each second of processor time ({gateways[0].version})")
    print(f"with {case.named}: {plugged:,.0f}, {promise.measured} of it")
    return 0 if promise.is_kept else 1


def _start(workload: Workload, folder: Path) -> Running:
    folder.mkdir(mode=0o755)
    return Headgate().start(workload, folder, core=PROXY_CORE, side_core=LOAD_CORE)


def _plug(manifests: Path, running: Running, workload: Workload, case: _Case) -> None:
    """Add the routes with plugins, and wait until they are served."""
    routes = (
        ingress(f"plugged-{index}", host, "service-0", paths=[case.path], annotations=case.annotations)
        for index, host in enumerate(workload.hosts)
    )
    replace_file(manifests / "plugged.yaml", SEPARATOR.join(routes))
    probe = Probe(running.http_port, workload.hosts[-1])
    end = time.monotonic() + _APPLIED_S
    while case.sign not in probe.headers(case.asked):
        if time.monotonic() > end:
            raise BenchError(f"{case.asked} was not served with plugins within {_APPLIED_S:g} s")
        time.sleep(0.05)
    probe.close()


def _measure(
    gateways: Sequence[Running], paths: Sequence[str], rounds: int, seconds: float, connections: int
) -> list[float]:
    """Return requests for each second of processor time, without and with plugins."""
    best = [0.0, 0.0]
    for _ in range(rounds):
        for which, (running, path) in enumerate(zip(gateways, paths, strict=True)):
            load = Load(f"http://127.0.0.1:{running.http_port}/", path, HOSTS, connections, seconds)
            found = run_load(load, core=LOAD_CORE, measured=running.serving(), measured_core=PROXY_CORE)
            if found.errors:
                raise BenchError(f"{path}: {found.errors}")
            best[which] = max(best[which], found.requests_per_s / found.busy)
    return best


if __name__ == "__main__":
    raise SystemExit(main())
