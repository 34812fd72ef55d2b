"""Connections of HTTP/1.1 to one endpoint, which rest between two requests."""

import asyncio
import select
import time
from typing import cast

from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.http1.upstream import UpstreamConnection
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.sides import UpstreamSide


class Http1Pool(EndpointPool):
    """The connection that rested last is used first, so that surplus ones age out."""

    __slots__ = ("_idle", "_max_idle")

    def __init__(
        self, address: str, port: int, spec: ConnectionSpec, config: ProxyConfig, outbox: Outbox, dialler: Dialler
    ) -> None:
        super().__init__(address, port, spec, config, outbox, dialler)
        max_idle = config.upstream_max_idle if spec.max_idle is None else spec.max_idle
        self._max_idle = 0 if spec.proxy_protocol else max_idle
        self._idle: list[UpstreamConnection] = []

    @property
    def idle_count(self) -> int:
        """Connections at rest."""
        return len(self._idle)

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        return len(self._idle) + self.in_flight

    def acquire(self, *, certain: bool) -> UpstreamSide | None:
        """Take the connection that rested last."""
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
        """Open a connection."""
        connection = UpstreamConnection(self)
        try:
            await self.open(cast(asyncio.Protocol, connection), peer)
        except asyncio.CancelledError:
            # It may have come up in the very moment in which nobody waits for it any more.
            connection.discard()
            raise
        return connection

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


def _is_readable(connection: UpstreamConnection) -> bool:
    descriptor = connection.transport.get_extra_info("socket").fileno()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLRDHUP)
    return bool(poll.poll(0))
