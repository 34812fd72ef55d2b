"""HTTP/2 from clients, over TLS and without, to an HTTP/1.1 origin; and gRPC calls, HTTP/2 from end to end.

32 connections with 10 streams each, all with a request under way. A gRPC call is a message of 100 bytes that is echoed,
with trailers; its origin is a Python process that knows only frames, so that it answers faster than any proxy asks.
"""

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.clients.grpc_check import check_grpc
from bench.clients.h2load import H2Load, run_h2load
from bench.clients.load import LoadResult
from bench.errors import BenchError
from bench.parts.comparison import (
    DIRECT,
    LOAD_CORE,
    PROXY_CORE,
    ComparisonResult,
    Targets,
    compare,
    make_row,
    need_programs,
    running,
)
from bench.peers import Peer, Running
from bench.reporting.promise import MEASURED
from bench.servers.origin import start_origin
from bench.setup.processes import Process, free_ports, wait_for_port
from bench.setup.tools import IMPORTABLE
from bench.setup.workload import (
    GRPC_PATH,
    SMALL_PATH,
    Extra,
    Workload,
    browser_headers,
    grpc_message,
    host_names,
    write_certificate,
)

CLIENTS = 32
STREAMS = 10
SECURE = "HTTP/2 over TLS to HTTP/1.1, 1 KB, 32 x 10"
CLEAR = "HTTP/2 without TLS to HTTP/1.1, 1 KB, 32 x 10"
GRPC = "gRPC unary without TLS, 100 bytes, 32 x 10"
_TARGETS: dict[str, Targets] = {
    SECURE: {"nginx": 1.0},
    CLEAR: {"nginx": 1.0},
    GRPC: {"Envoy": 2.0, "HAProxy": 0.9},
}
_GRPC_HEADERS = ("content-type: application/grpc", "te: trailers", "user-agent: grpc-go/1.64.0")
_CLIENT_MODULE = "headgate.gateway.proxy.http2.client"


@dataclass(frozen=True)
class Http2Plan:
    """How long is measured."""

    rounds: int
    seconds: float


def lacks_upstream_http2() -> str | None:
    """None if this gateway speaks HTTP/2 with endpoints, else what is not there."""
    return None if importlib.util.find_spec(_CLIENT_MODULE) else f"the gateway has no {_CLIENT_MODULE}"


@contextmanager
def grpc_origin(folder: Path, port: int, core: int | None) -> Iterator[Process]:
    """Run the origin for gRPC while the context lasts."""
    argv = [sys.executable, "-m", "bench.servers.grpc_origin", str(port)]
    with Process("grpc-origin", argv, folder, core=core, env=IMPORTABLE) as process:
        wait_for_port(port, process)
        yield process


def measure_http2(peers: Sequence[Peer], plan: Http2Plan, folder: Path) -> ComparisonResult:
    """Start everything, check that it answers rightly, run the rounds.

    Raises:
        BenchError: a tool is missing or an origin does not come up.
    """
    need_programs(("h2load", "nghttp2-client"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    result = ComparisonResult("HTTP/2 and gRPC, one core for the proxy")
    folder.mkdir(parents=True, exist_ok=True)
    *ports, grpc_port = free_ports(2)
    grpc = Extra("grpc", grpc_port, speaks_http2=True)
    workload = Workload(host_names(1), tuple(ports), *write_certificate(folder), extras=(grpc,))
    with (
        start_origin(folder / "origin", ports, core=LOAD_CORE),
        grpc_origin(folder, grpc_port, LOAD_CORE),
        running(peers, workload, folder, result) as proxies,
    ):
        host = workload.hosts[0]
        _measure(SECURE, browser_load(f"https://{host}{SMALL_PATH}", plan.seconds), proxies, plan, result)
        _measure(CLEAR, browser_load(f"http://{host}{SMALL_PATH}", plan.seconds), proxies, plan, result)
        load = grpc_load(grpc.host, folder, plan.seconds)
        _measure(GRPC, load, _carrying_grpc(proxies, grpc.host, result), plan, result)
        direct = run_h2load(replace(load, port=grpc_port), core=LOAD_CORE)
        result.rows[GRPC].append(make_row(DIRECT, {DIRECT: [direct]}))
    return result


def browser_load(url: str, seconds: float, port: int = 0) -> H2Load:
    """Requests with the heads of a browser."""
    names = (line.partition(":") for line in browser_headers())
    headers = tuple(f"{name.lower()}:{value}" for name, _, value in names)
    return H2Load(url, port, CLIENTS, STREAMS, seconds, headers=headers)


def grpc_load(host: str, folder: Path, seconds: float, port: int = 0) -> H2Load:
    """Unary calls; the message is written to a file in the folder."""
    message = folder / "message.grpc"
    message.write_bytes(grpc_message())
    return H2Load(f"http://{host}{GRPC_PATH}", port, CLIENTS, STREAMS, seconds, headers=_GRPC_HEADERS, body=message)


def _measure(title: str, load: H2Load, proxies: Sequence[Running], plan: Http2Plan, result: ComparisonResult) -> None:
    def one_round(proxy: Running) -> LoadResult:
        port = proxy.https_port if load.url.startswith("https") else proxy.h2c_port
        return run_h2load(replace(load, port=port), core=LOAD_CORE, measured=proxy.serving(), measured_core=PROXY_CORE)

    for proxy in proxies:
        one_round(proxy)
    result.targets[title] = _TARGETS[title]
    result.commands[title] = replace(load, port=8443).command(LOAD_CORE)
    compare(title, proxies, plan.rounds, one_round, result)


def _carrying_grpc(proxies: Sequence[Running], host: str, result: ComparisonResult) -> list[Running]:
    """Those that carry a call rightly; what one lacks by design is said, anything else is a failure."""
    able = []
    for proxy in proxies:
        if proxy.name == MEASURED and (lacking := lacks_upstream_http2()):
            result.left_out[f"{proxy.name}, {GRPC},"] = lacking
            continue
        try:
            check_grpc(proxy.h2c_port, host)
        except BenchError as error:
            result.failures.append(f"{proxy.name}, {GRPC}: {error}")
            continue
        able.append(proxy)
    return able
