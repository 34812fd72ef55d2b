"""Connections of FastCGI to one endpoint: one for each request, as with nginx.

A process of an application such as PHP serves one connection at a time, so one that rested would keep it from others.
"""

import asyncio
from typing import cast

from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.fcgi.params import ParamsWriter
from headgate.gateway.proxy.fcgi.upstream import FcgiUpstream
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.sides import UpstreamSide


class FcgiPool(EndpointPool):
    """Opens a connection for each request; none rests."""

    __slots__ = ("_writer",)

    def __init__(
        self, address: str, port: int, spec: ConnectionSpec, config: ProxyConfig, outbox: Outbox, dialler: Dialler
    ) -> None:
        super().__init__(address, port, spec, config, outbox, dialler)
        self._writer = ParamsWriter(spec.fastcgi)

    @property
    def idle_count(self) -> int:
        """Connections at rest."""
        return 0

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        return self.in_flight

    def acquire(self, *, certain: bool) -> UpstreamSide | None:
        """Have a connection opened."""
        return None

    async def connect(self, peer: Peer) -> UpstreamSide:
        """Open a connection."""
        connection = FcgiUpstream(self, self._writer)
        try:
            await self.open(cast(asyncio.Protocol, connection), peer)
        except asyncio.CancelledError:
            # It may have come up in the very moment in which nobody waits for it any more.
            connection.discard()
            raise
        return connection

    def close_idle(self) -> None:
        """No connection rests."""

    def close_aged(self, now: float) -> None:
        """No connection rests."""
