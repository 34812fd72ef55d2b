"""What the proxy itself spends on a request and its answer, without sockets and without a route table.

    [HEADGATE_ENGINE=pure] python -m bench.engine [--requests 64000] [--rounds 6] [--plugins]

The callbacks of both sides get the bytes of a browser's request, as wrk sends them, and of an answer of 1 KB; the
transports throw away what is written. 32 connections take turns, the access log is on. Prints the processor time of the
best round, as the others met something else on the machine. With `--plugins` rounds of a route without plugins and of
one with `cors`, `limit-count`, `request-id` and `proxy-rewrite` take turns, and their ratio is printed too.
"""

import argparse
import asyncio
import math
import os
import time
from collections.abc import Sequence
from typing import Any, cast

import uvloop

from bench.setup.workload import SMALL_BYTES, browser_headers, host_names
from headgate.common.sealing import ClusterValue, Purpose
from headgate.common.secret import Secret
from headgate.common.table import PluginUse
from headgate.gateway import ENGINE
from headgate.gateway.observability.access_log import AccessLog
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.registry import PluginRegistry
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.http1.pool import Http1Pool
from headgate.gateway.proxy.http1.server import ClientConnection
from headgate.gateway.proxy.http1.upstream import UpstreamConnection
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.proxy.stats import ProxyStats

CONNECTIONS = 32
PLUGINS: list[tuple[str, dict[str, Any]]] = [
    ("cors", {}),
    ("limit-count", {"count": 1_000_000_000, "time_window": 3600}),
    ("request-id", {}),
    ("proxy-rewrite", {"headers": {"set": {"X-Team": "payments"}}}),
]
ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\nConnection: keep-alive\r\n\r\n%b" % (SMALL_BYTES, b"x" * SMALL_BYTES)
)


class NowhereTransport:
    """A connection that takes everything."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 40000) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def write(self, data: bytes) -> None: ...

    def writelines(self, pieces: Sequence[bytes]) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class OneRoute:
    """Router and route in one: everything goes to one pool, which has a connection for each client."""

    name = "bench|all"
    upstream_label = "bench"
    version_label = "1.1"
    unavailable = ""
    connect_timeout_s = send_timeout_s = read_timeout_s = traffic = None

    def __init__(self, pool: EndpointPool) -> None:
        self._pool = pool
        self.policies: RoutePolicies | None = None

    def match(self, *_request: object) -> "OneRoute":
        return self

    def choose(self, *_request: object) -> EndpointPool:
        return self._pool


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description="Measure the proxy without sockets.")
    parser.add_argument("--requests", type=int, default=64_000, help="in a round, default 64000")
    parser.add_argument("--rounds", type=int, default=6, help="default 6")
    parser.add_argument("--plugins", action="store_true", help="beside a route with four plugins")
    options = parser.parse_args(argv)
    chains = [None, _make_plugins()] if options.plugins else [None]
    best = uvloop.run(_measure(options.requests // CONNECTIONS, options.rounds, chains))
    print(f"{ENGINE}: {best[0] * 1e6:.1f} us for a request and its answer")
    if options.plugins:
        names = ", ".join(name for name, _ in PLUGINS)
        print(f"with {names}: {best[1] * 1e6:.1f} us, {best[0] / best[1]:.2f} of the throughput")
    return 0


def _make_plugins() -> PluginChain | None:
    uses = [PluginUse(name=name, config=config) for name, config in PLUGINS]
    return PluginRegistry(found=()).chain(uses, PluginServices(), no_secrets)


def no_secrets(value: ClusterValue, purpose: Purpose) -> Secret[bytes]:
    """Open nothing."""
    raise LookupError("there are no secrets here")


async def _measure(turns: int, rounds: int, chains: Sequence[PluginChain | None]) -> list[float]:
    """Return the seconds of processor time for one request in the best round, for each chain of plugins."""
    config = ProxyConfig()
    pools = PoolRegistry(config)
    pool = pools.get("127.0.0.1", 80)
    assert isinstance(pool, Http1Pool)
    route = OneRoute(pool)
    holder = RouterHolder(cast(Any, route))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    log = AccessLog("combined", nowhere)
    context = ProxyContext(holder, config, ProxyStats(), log, Clock(config.tick_s), pools.outbox)
    clients = [_connected(ClientConnection(context, b"http", b"80")) for _ in range(CONNECTIONS)]
    upstreams = [_connected(UpstreamConnection(pool)) for _ in range(CONNECTIONS)]
    for upstream in upstreams:
        pool.release(upstream)
    heads = _browser_heads()
    best = [math.inf] * len(chains)
    for number in range(rounds * len(chains)):
        which = number % len(chains)
        route.policies = _policies(chains[which])
        best[which] = min(best[which], await _round(clients, upstreams, heads, turns))
    log.close()
    os.close(nowhere)
    return best


def _policies(chain: PluginChain | None) -> RoutePolicies | None:
    if chain is None:
        return None
    policies = RoutePolicies()
    policies.hooks = RoutePlugins(chain)
    return policies


async def _round(clients: list[Any], upstreams: list[Any], heads: list[bytes], turns: int) -> float:
    began = time.process_time()
    for turn in range(turns):
        for number, client in enumerate(clients):
            client.data_received(heads[(turn * CONNECTIONS + number) % len(heads)])
        await asyncio.sleep(0)
        for upstream in upstreams:
            upstream.data_received(ANSWER)
        await asyncio.sleep(0)
    return (time.process_time() - began) / (turns * CONNECTIONS)


def _connected(connection: Any) -> Any:
    connection.connection_made(NowhereTransport())
    return connection


def _browser_heads() -> list[bytes]:
    """What wrk sends, a head for each host."""
    block = "\r\n".join(("Connection: keep-alive", *browser_headers()))
    return [f"GET / HTTP/1.1\r\nHost: {name}\r\n{block}\r\n\r\n".encode() for name in host_names(100)]


if __name__ == "__main__":
    raise SystemExit(main())
