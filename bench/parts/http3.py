"""HTTP/3 from clients to an HTTP/1.1 origin, beside Envoy. nginx and HAProxy have it in other builds than are at hand.

32 connections with 10 requests under way on each, as for HTTP/2, by one client for both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.clients.http3 import Http3Load, build_client, run_http3_load
from bench.clients.load import LoadResult
from bench.parts.comparison import LOAD_CORE, PROXY_CORE, ComparisonResult, Targets, compare, need_programs, running
from bench.peers import Peer, Running
from bench.servers.origin import start_origin
from bench.setup.processes import free_ports
from bench.setup.workload import SMALL_PATH, Workload, browser_headers, host_names, write_certificate

CLIENTS = 32
STREAMS = 10
TARGETS: Targets = {"Envoy": 0.5}
TITLE = "HTTP/3 to HTTP/1.1, 1 KB, 32 x 10"
WITH_HTTP3 = frozenset({"Envoy", "Headgate"})


@dataclass(frozen=True)
class Http3Plan:
    """How long is measured."""

    rounds: int
    seconds: float


def measure_http3(peers: Sequence[Peer], plan: Http3Plan, folder: Path) -> ComparisonResult:
    """Start everything, check that it answers rightly, run the rounds.

    Raises:
        BenchError: a tool is missing or an origin does not come up.
    """
    need_programs(("nginx", "nginx-light"), ("taskset", "util-linux"))
    program = build_client()
    result = ComparisonResult("HTTP/3, one core for the proxy")
    folder.mkdir(parents=True, exist_ok=True)
    ports = free_ports(1)
    workload = Workload(host_names(1), tuple(ports), *write_certificate(folder))
    able = [peer for peer in peers if peer.name in WITH_HTTP3]
    load = browser_load(f"https://{workload.hosts[0]}{SMALL_PATH}", plan.seconds)
    with start_origin(folder / "origin", ports, core=LOAD_CORE), running(able, workload, folder, result) as proxies:

        def one_round(proxy: Running) -> LoadResult:
            aimed = replace(load, port=proxy.https_port)
            return run_http3_load(aimed, program, core=LOAD_CORE, measured=proxy.serving(), measured_core=PROXY_CORE)

        for proxy in proxies:
            one_round(proxy)
        result.targets[TITLE] = TARGETS
        result.commands[TITLE] = replace(load, port=8443).command(program, LOAD_CORE)
        compare(TITLE, proxies, plan.rounds, one_round, result)
    return result


def browser_load(url: str, seconds: float) -> Http3Load:
    """Requests with the heads of a browser."""
    names = (line.partition(":") for line in browser_headers())
    headers = tuple(f"{name.lower()}:{value}" for name, _, value in names)
    return Http3Load(url, 0, CLIENTS, STREAMS, seconds, headers)
