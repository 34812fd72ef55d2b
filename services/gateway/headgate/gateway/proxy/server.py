"""The proxy as a whole: listeners, the clock that sweeps deadlines, and the drain."""

import asyncio
import contextlib
import time
from typing import cast

from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.downstream import ClientConnection
from headgate.gateway.proxy.pool import PoolRegistry
from headgate.gateway.proxy.seam import RequestLog, RouterHolder
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.tls import CertificateStore

_BACKLOG = 4096


class ProxyServer:
    """Serves HTTP/1.1 on any number of listeners with the holder's current router."""

    def __init__(
        self,
        holder: RouterHolder,
        pools: PoolRegistry,
        config: ProxyConfig,
        stats: ProxyStats,
        access_log: RequestLog | None = None,
    ) -> None:
        self._pools = pools
        self._context = ProxyContext(holder, config, stats, access_log, Clock(config.tick_s), pools.outbox)
        self._listeners: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self._pool_sweep_at = 0.0
        stats.watch_connections(lambda: len(self._context.connections))

    @property
    def connections(self) -> int:
        """Client connections that are open."""
        return len(self._context.connections)

    async def listen_http(self, host: str | None, port: int, reuse_port: bool = False) -> int:
        """Accept plain connections; gives the port, which the kernel chooses for 0. Raises OSError."""
        return await self._listen(host, port, reuse_port, b"http", None)

    async def listen_https(
        self, host: str | None, port: int, certificates: CertificateStore, reuse_port: bool = False
    ) -> int:
        """Accept TLS connections with the certificate for their server name; as `listen_http` otherwise."""
        return await self._listen(host, port, reuse_port, b"https", certificates)

    async def _listen(
        self, host: str | None, port: int, reuse_port: bool, scheme: bytes, certificates: CertificateStore | None
    ) -> int:
        loop = asyncio.get_running_loop()
        bound = [port]

        def accept() -> asyncio.Protocol:
            return cast(asyncio.Protocol, ClientConnection(self._context, scheme, str(bound[0]).encode()))

        context = certificates.server_context if certificates is not None else None
        listener = await loop.create_server(accept, host, port, ssl=context, reuse_port=reuse_port, backlog=_BACKLOG)
        bound[0] = listener.sockets[0].getsockname()[1]
        self._listeners.append(listener)
        if self._timer is None:
            self._tick()
        return bound[0]

    def _tick(self) -> None:
        """Move the clock and look at every deadline."""
        context = self._context
        context.clock.tick()
        now = time.monotonic()
        for connection in [each for each in context.connections if each.deadline < now]:
            connection.timed_out()
        if now >= self._pool_sweep_at:
            self._pool_sweep_at = now + max(1.0, context.clock.tick_s)
            self._pools.close_aged()
        self._timer = asyncio.get_running_loop().call_later(context.clock.tick_s, self._tick)

    def announce_drain(self) -> None:
        """From now on tell clients with every answer that their connection closes; accepting goes on."""
        self._context.draining = True

    async def drain(self, grace_s: float) -> None:
        """Stop accepting, let requests under way finish with `Connection: close`, and abort what is left at the end."""
        context = self._context
        self.announce_drain()
        for listener in self._listeners:
            listener.close()
        for connection in list(context.connections):
            connection.drain()
        if context.connections:
            context.emptied.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(context.emptied.wait(), grace_s)
        for connection in list(context.connections):
            connection.transport.abort()
        self._pools.close_idle()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
