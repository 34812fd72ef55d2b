"""Idle connections per endpoint, kept over swaps of the route table.

The table's compiler asks the registry for an endpoint's pool by address, port and protocol, and gets the same object as
long as some table names that endpoint: an unchanged endpoint keeps its warm connections whatever else changes.
"""

import asyncio
import select
import ssl
import time
from typing import cast

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.upstream import UpstreamConnection


class EndpointPool:
    """One address, port and protocol. The connection that rested last is used first, so that surplus ones age out."""

    __slots__ = (
        "_idle",
        "_retired",
        "_tls",
        "address",
        "config",
        "in_flight",
        "label",
        "outbox",
        "port",
    )

    def __init__(
        self, address: str, port: int, tls: ssl.SSLContext | None, config: ProxyConfig, outbox: Outbox
    ) -> None:
        self.address = address
        self.port = port
        self.config = config
        self.outbox = outbox
        self.label = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        self.in_flight = 0
        """Requests that are under way on connections of this pool."""
        self._tls = tls
        self._idle: list[UpstreamConnection] = []
        self._retired = False

    def __repr__(self) -> str:
        return f"<EndpointPool {self.label} idle={len(self._idle)} in_flight={self.in_flight}>"

    @property
    def idle_count(self) -> int:
        """Connections at rest."""
        return len(self._idle)

    def acquire(self, *, certain: bool) -> UpstreamConnection | None:
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
        if self._retired or len(self._idle) >= self.config.upstream_max_idle:
            connection.transport.close()
        else:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)

    def forget(self, connection: UpstreamConnection) -> None:
        """Drop a connection that died at rest."""
        if connection in self._idle:
            self._idle.remove(connection)

    async def connect(self) -> UpstreamConnection:
        """Open a connection; raises OSError (ssl.SSLError is one), or UnicodeError for a name that is none."""
        connection = UpstreamConnection(self)
        name = self.address if self._tls is not None else None
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: cast(asyncio.Protocol, connection), self.address, self.port, ssl=self._tls, server_hostname=name
            )
        except asyncio.CancelledError:
            # It may have come up in the very moment in which nobody waits for it any more.
            connection.discard()
            raise
        return connection

    def close_idle(self, before: float = float("inf")) -> None:
        """Close the connections at rest since before that monotonic time, or all."""
        kept = [connection for connection in self._idle if connection.idle_since >= before]
        closed, self._idle = self._idle[: len(self._idle) - len(kept)], kept
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


class PoolRegistry:
    """All pools of a process."""

    def __init__(self, config: ProxyConfig | None = None) -> None:
        self.config = config or ProxyConfig()
        self.outbox = Outbox()
        """Shared by both sides of the proxy."""
        self._pools: dict[tuple[str, int, str], EndpointPool] = {}
        self._tls: ssl.SSLContext | None = None

    def get(self, address: str, port: int, protocol: str) -> EndpointPool:
        """Give the pool of an endpoint, the same for the same arguments. `protocol` is `http` or `https`."""
        key = (address, port, protocol)
        pool = self._pools.get(key)
        if pool is None:
            tls = self._client_tls() if protocol == "https" else None
            pool = self._pools[key] = EndpointPool(address, port, tls, self.config, self.outbox)
        return pool

    def drop(self, address: str, port: int, protocol: str) -> None:
        """Forget one pool, if it is there: its idle connections are closed, busy ones finish."""
        pool = self._pools.pop((address, port, protocol), None)
        if pool is not None:
            pool.retire()

    def close_aged(self) -> None:
        """Close connections that rested for longer than the idle timeout."""
        before = time.monotonic() - self.config.upstream_idle_timeout_s
        for pool in self._pools.values():
            pool.close_idle(before)

    def close_idle(self) -> None:
        """Close all that rest."""
        for pool in self._pools.values():
            pool.close_idle()

    def __len__(self) -> int:
        return len(self._pools)

    def _client_tls(self) -> ssl.SSLContext:
        if self._tls is None:
            context = ssl.create_default_context()
            if not self.config.verify_upstream_tls:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(["http/1.1"])
            self._tls = context
        return self._tls
