"""The loads that single gateways of a stack are measured under, by name, as the parts of the bench have them.

`http1`, `tls`: HTTP/1.1 kept alive. `plugins`: `http1` on a route with the plugins of `bench.engine`. `handshakes`: a
TLS connection for each request. `http2`, `h2c`: HTTP/2 over TLS and without, to HTTP/1.1. `grpc`: unary calls, HTTP/2
from end to end.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.clients.h2load import H2Load
from bench.engine import PLUGINS
from bench.parts.comparison import need_programs
from bench.parts.http2 import browser_load, grpc_load, grpc_origin
from bench.servers.origin import start_origin
from bench.setup.gateway import Gateway
from bench.setup.manifests import write_workload
from bench.setup.processes import free_ports, pin
from bench.setup.stack import Stack
from bench.setup.workload import SMALL_BYTES, SMALL_PATH, Extra, Workload, host_names, write_certificate

LOADS = ("http1", "plugins", "tls", "handshakes", "http2", "h2c", "grpc")
_READY_S = 60.0


@dataclass(frozen=True)
class Loads:
    """A running stack with what its gateways serve."""

    stack: Stack
    folder: Path
    workload: Workload

    def of(self, name: str, gateway: Gateway, connections: int) -> H2Load:
        """Return the load with this name on a gateway of the stack, for no time yet."""
        grpc, plugged = self.workload.extras
        over_tls = name not in ("http1", "plugins", "h2c", "grpc")
        host = plugged.host if name == "plugins" else self.workload.hosts[0]
        if name == "grpc":
            load = grpc_load(grpc.host, self.folder, 0, gateway.http_port)
        elif over_tls:
            load = browser_load(f"https://{host}{SMALL_PATH}", 0, gateway.https_port)
        else:
            load = browser_load(f"http://{host}{SMALL_PATH}", 0, gateway.http_port)
        http1 = name in ("http1", "plugins", "tls", "handshakes")
        return replace(load, seconds=None, clients=connections, streams=1 if http1 else load.streams, http1=http1)


@contextmanager
def serving_stack(folder: Path, core: int | None = None) -> Iterator[Loads]:
    """Run a stack and what is behind it, on a core, while the context lasts.

    Raises:
        BenchError: a program is missing, or something does not start.
    """
    need_programs(("h2load", "nghttp2-client"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    port, grpc_port = free_ports(2)
    grpc = Extra("grpc", grpc_port, speaks_http2=True)
    plugins = json.dumps([{"name": name, "config": config} for name, config in PLUGINS])
    plugged = Extra("plugged", port, plugins=plugins)
    workload = Workload(host_names(10), (port,), *write_certificate(folder), extras=(grpc, plugged))
    write_workload(folder / "manifests", workload)
    with ExitStack() as opened:
        opened.enter_context(start_origin(folder / "origin", [port], core=core))
        opened.enter_context(grpc_origin(folder, grpc_port, core))
        stack = opened.enter_context(Stack(folder / "manifests", folder))
        stack.wait_until_serving(workload.hosts[-1], "x" * SMALL_BYTES, _READY_S)
        if core is not None:
            for pid in stack.process.family():
                pin(pid, core)
        yield Loads(stack, folder, workload)
