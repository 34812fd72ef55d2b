"""New TLS connections: a handshake, one request, the end.

Clients come all at once, each with one request, and resume no session. Keys are ECDSA P-256 with every proxy; TLS 1.3
is what they agree on. Behind the proxy connections are kept, so that what is measured is the front. A handshake costs
the client more than the proxy, and both have one core: the rate is the client's limit, so proxies are compared by the
processor time that they need.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.clients.h2load import H2Load, run_h2load
from bench.clients.load import LoadResult
from bench.parts.comparison import (
    LOAD_CORE,
    PROXY_CORE,
    ComparisonResult,
    Targets,
    compare,
    need_programs,
    running,
)
from bench.peers import Peer, Running
from bench.servers.origin import start_origin
from bench.setup.processes import free_ports
from bench.setup.workload import SMALL_PATH, Workload, browser_headers, host_names, write_certificate

TITLE = "TLS 1.3, ECDSA P-256, a connection for each request"
TARGETS: Targets = {"nginx": 0.85}


@dataclass(frozen=True)
class HandshakePlan:
    """What to measure."""

    connections: int
    """In one round."""
    rounds: int


def measure_new_connections(peers: Sequence[Peer], plan: HandshakePlan, folder: Path) -> ComparisonResult:
    """Start everything, run the rounds.

    Raises:
        BenchError: a tool is missing or the origin does not come up.
    """
    need_programs(("h2load", "nghttp2-client"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    result = ComparisonResult(
        "New TLS connections, one core for the proxy, ratios per busy core", "connections/s", by_core=True
    )
    folder.mkdir(parents=True, exist_ok=True)
    ports = free_ports(1)
    workload = Workload(host_names(1), tuple(ports), *write_certificate(folder))

    def load(port: int) -> H2Load:
        url = f"https://{workload.hosts[0]}{SMALL_PATH}"
        return H2Load(url, port, plan.connections, requests=plan.connections, headers=browser_headers(), http1=True)

    def one_round(proxy: Running) -> LoadResult:
        return run_h2load(load(proxy.https_port), core=LOAD_CORE, measured=proxy.serving(), measured_core=PROXY_CORE)

    with start_origin(folder / "origin", ports, core=LOAD_CORE), running(peers, workload, folder, result) as proxies:
        for proxy in proxies:
            one_round(proxy)
        result.targets[TITLE] = TARGETS
        result.commands[TITLE] = load(8443).command(LOAD_CORE)
        compare(TITLE, proxies, plan.rounds, one_round, result)
    return result
