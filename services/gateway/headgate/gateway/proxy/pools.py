"""The pools of a process, kept over swaps of the route table.

The table's compiler asks the registry for an endpoint's pool by address, port and protocol, and gets the same object as
long as some table names that endpoint: an unchanged endpoint keeps its warm connections whatever else changes.
"""

import time
from collections.abc import Mapping
from typing import Final

from headgate.gateway.model.connection import PLAIN, ConnectionSpec
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.fcgi.pool import FcgiPool
from headgate.gateway.proxy.http1.pool import Http1Pool
from headgate.gateway.proxy.http2.pool import Http2Pool
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.traffic import Traffic

_POOLS: Final[Mapping[str, type[EndpointPool]]] = {"h2": Http2Pool, "h2c": Http2Pool, "fcgi": FcgiPool}
"""By the endpoint's protocol; all others are HTTP/1.1."""


class PoolRegistry:
    """All pools of a process; their connections are opened by `dialler`."""

    def __init__(self, config: ProxyConfig | None = None, dialler: Dialler = UNBOUNDED) -> None:
        self.config = config or ProxyConfig()
        self._dialler = dialler
        self.outbox = Outbox()
        """Shared by both sides of the proxy."""
        self._pools: dict[tuple[str, int, ConnectionSpec], EndpointPool] = {}
        self.news: list[Traffic] = []
        """Traffic of endpoints that summaries have to tell of."""

    def get(self, address: str, port: int, spec: ConnectionSpec = PLAIN) -> EndpointPool:
        """Give the pool of an endpoint, the same for the same arguments."""
        key = (address, port, spec)
        pool = self._pools.get(key)
        if pool is None:
            make: type[EndpointPool] = _POOLS.get(spec.protocol, Http1Pool)
            pool = self._pools[key] = make(address, port, spec, self.config, self.outbox, self._dialler)
            pool.traffic.tell_by(self.news)
        return pool

    def drop(self, address: str, port: int, spec: ConnectionSpec = PLAIN) -> None:
        """Forget one pool, if it is there: its idle connections are closed, busy ones finish."""
        pool = self._pools.pop((address, port, spec), None)
        if pool is not None:
            pool.retire()

    def close_aged(self) -> None:
        """Close connections that rested for longer than they may."""
        now = time.monotonic()
        for pool in self._pools.values():
            pool.close_aged(now)

    def close_idle(self) -> None:
        """Close all that rest."""
        for pool in self._pools.values():
            pool.close_idle()

    def pools(self) -> list[tuple[tuple[str, int, ConnectionSpec], EndpointPool]]:
        """Return all pools with their keys."""
        return list(self._pools.items())

    def __len__(self) -> int:
        return len(self._pools)
