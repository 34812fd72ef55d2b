"""Idle connections per endpoint, kept over swaps of the route table.

The table's compiler asks the registry for an endpoint's pool by address, port and protocol, and gets the same object as
long as some table names that endpoint: an unchanged endpoint keeps its warm connections whatever else changes.
"""

import asyncio
import select
import time
from typing import Protocol, cast

from headgate.gateway.model.connection import PLAIN, ConnectionSpec
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.net.proxy_protocol import write_proxy_header
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.forward import Peer
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.sides import UpstreamSide
from headgate.gateway.proxy.stats import Traffic
from headgate.gateway.proxy.upstream import UpstreamConnection


class MeasuresLatency(Protocol):
    """What balances by latency: `balancing.latency.PeakLatency`."""

    def observe(self, seconds: float, now: float) -> None:
        """Note how long an answer took; `now` is monotonic."""


class EndpointPool:
    """One address, port and spec. The connection that rested last is used first, so that surplus ones age out."""

    __slots__ = (
        "_idle",
        "_idle_timeout_s",
        "_max_idle",
        "_retired",
        "address",
        "config",
        "connects",
        "dialler",
        "in_flight",
        "is_hop",
        "label",
        "latency",
        "max_requests",
        "outbox",
        "port",
        "spec",
        "traffic",
    )

    def __init__(
        self, address: str, port: int, spec: ConnectionSpec, config: ProxyConfig, outbox: Outbox, dialler: Dialler
    ) -> None:
        self.address = address
        self.port = port
        self.spec = spec
        self.config = config
        self.outbox = outbox
        self.dialler = dialler
        self.label = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        self.is_hop = spec.is_hop
        self.in_flight = 0
        """Requests that are under way on connections of this pool."""
        self.connects = 0
        """Connections opened, or tried to."""
        self.traffic = Traffic()
        self.latency: MeasuresLatency | None = None
        """Learns how long answers take; None while nobody balances by that."""
        max_idle = config.upstream_max_idle if spec.max_idle is None else spec.max_idle
        self._max_idle = 0 if spec.proxy_protocol else max_idle
        self._idle_timeout_s = spec.idle_timeout_s or config.upstream_idle_timeout_s
        self.max_requests = spec.max_requests or 1 << 62
        """On one connection."""
        self._idle: list[UpstreamConnection] = []
        self._retired = False

    def __repr__(self) -> str:
        return f"<EndpointPool {self.label} idle={len(self._idle)} in_flight={self.in_flight}>"

    @property
    def idle_count(self) -> int:
        """Connections at rest."""
        return len(self._idle)

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        return len(self._idle) + self.in_flight

    def acquire(self, *, certain: bool) -> UpstreamSide | None:
        """Take an idle connection; None: connect a new one.

        `certain` asks the kernel whether the peer has closed or spoken meanwhile, for requests that could not be sent
        again: one system call.
        """
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.transport.is_closing():
                continue
            if certain and _is_readable(connection):
                connection.transport.abort()
                continue
            return connection
        return None

    def release(self, connection: UpstreamConnection) -> None:
        """Let a connection rest, or close it if there are enough."""
        if self._retired or len(self._idle) >= self._max_idle or connection.requests >= self.max_requests:
            connection.transport.close()
        else:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)

    def forget(self, connection: UpstreamConnection) -> None:
        """Drop a connection that died at rest."""
        if connection in self._idle:
            self._idle.remove(connection)

    async def connect(self, peer: Peer) -> UpstreamSide:
        """Open a connection for a request of a client.

        Raises OSError (ssl.SSLError is one), or UnicodeError for a name that is none.
        """
        connection = UpstreamConnection(self)
        try:
            await self.open(cast(asyncio.Protocol, connection), peer)
        except asyncio.CancelledError:
            # It may have come up in the very moment in which nobody waits for it any more.
            connection.discard()
            raise
        return connection

    async def open(self, protocol: asyncio.Protocol, peer: Peer) -> None:
        """Connect a protocol to the endpoint; raises as `connect`."""
        self.connects += 1
        spec, dialler = self.spec, self.dialler
        if not spec.proxy_protocol:
            await dialler.connect(lambda: protocol, self.address, self.port, spec.tls, spec.server_name)
            return
        transport, _ = await dialler.connect(asyncio.Protocol, self.address, self.port)
        try:
            transport.write(write_proxy_header(2 if spec.proxy_protocol == 2 else 1, peer.addresses))
            if spec.tls is None:
                transport.set_protocol(protocol)
                protocol.connection_made(transport)
            else:
                loop, name = asyncio.get_running_loop(), spec.server_name or self.address
                secured = await loop.start_tls(transport, protocol, spec.tls, server_hostname=name)
                assert secured is not None
                protocol.connection_made(secured)
        except BaseException:
            transport.abort()
            raise

    def close_idle(self) -> None:
        """Close the connections at rest."""
        closed, self._idle = self._idle, []
        for connection in closed:
            connection.transport.close()

    def close_aged(self, now: float) -> None:
        """Close those that have rested for too long at a monotonic time."""
        before = now - self._idle_timeout_s
        idle = self._idle
        if idle and idle[0].idle_since < before:
            kept = [connection for connection in idle if connection.idle_since >= before]
            closed, self._idle = idle[: len(idle) - len(kept)], kept
            for connection in closed:
                connection.transport.close()

    def retire(self) -> None:
        """No table names this endpoint any more: close what rests, let what is under way finish."""
        self._retired = True
        self.close_idle()


def _is_readable(connection: UpstreamConnection) -> bool:
    descriptor = connection.transport.get_extra_info("socket").fileno()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLRDHUP)
    return bool(poll.poll(0))


def _pool_class(protocol: str) -> type[EndpointPool]:
    if protocol in ("h2", "h2c"):
        from headgate.gateway.proxy.http2.pool import Http2Pool  # a subclass of what is defined here

        return Http2Pool
    return EndpointPool


class PoolRegistry:
    """All pools of a process; their connections are opened by `dialler`."""

    def __init__(self, config: ProxyConfig | None = None, dialler: Dialler = UNBOUNDED) -> None:
        self.config = config or ProxyConfig()
        self._dialler = dialler
        self.outbox = Outbox()
        """Shared by both sides of the proxy."""
        self._pools: dict[tuple[str, int, ConnectionSpec], EndpointPool] = {}

    def get(self, address: str, port: int, spec: ConnectionSpec = PLAIN) -> EndpointPool:
        """Give the pool of an endpoint, the same for the same arguments."""
        key = (address, port, spec)
        pool = self._pools.get(key)
        if pool is None:
            make = _pool_class(spec.protocol)
            pool = self._pools[key] = make(address, port, spec, self.config, self.outbox, self._dialler)
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
