"""The proxy as a whole: listeners, the clock that sweeps deadlines, and the drain."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final

from headgate.gateway.counting.peers import Peers
from headgate.gateway.counting.tally import Tally
from headgate.gateway.listeners.http_port import HttpPort
from headgate.gateway.net import descriptors
from headgate.gateway.net.sockets import open_listener
from headgate.gateway.plugins.runtime.upstream_calls import Calls
from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.context import Connection, ProxyContext
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.reports import RequestLog, Tracing
from headgate.gateway.proxy.seam import Endpoints, RouterHolder
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.ports import PortPlan
from headgate.gateway.table.listener_ports import PortSettings
from headgate.gateway.tls import CertificateStore

_TURNS: Final = 3
"""Of the event loop, which accepts, makes a transport, and reads."""


class ProxyServer:
    """Serves HTTP/1.1 on any number of listeners with the holder's current router."""

    def __init__(
        self,
        holder: RouterHolder,
        pools: PoolRegistry,
        config: ProxyConfig,
        stats: ProxyStats,
        access_log: RequestLog | None = None,
        streams: StreamContext | None = None,
        *,
        proxy_protocol: bool = False,
        tracing: Tracing | None = None,
        peers: Peers | None = None,
    ) -> None:
        """Make a server that listens nowhere yet; `holder` has the router of the HTTP port.

        `streams` is needed for listeners that stream routes may share, or whose connections begin with a PROXY header.
        `peers` are the other workers, whose connections count for clients' limits.
        """
        self._pools = pools
        self.context = ProxyContext(
            holder,
            config,
            stats,
            access_log,
            Clock(config.tick_s),
            pools.outbox,
            tracing=tracing,
            times_endpoints=access_log is not None and access_log.is_detailed,
            clients=Tally(peers, "connections"),
        )
        """What connections share: what is served, settings, limits, logs, and the connections themselves."""
        self._streams = streams
        self._proxy_protocol = proxy_protocol
        self._ports: list[HttpPort] = []
        self._own: dict[str, HttpPort] = {}
        """By scheme."""
        self._timer: asyncio.TimerHandle | None = None
        self._pool_sweep_at = 0.0
        self.is_paused = False
        """Clients' connections wait in the kernel, for want of file descriptors."""
        stats.watch_connections(lambda: self.connections)
        stats.buffers = self.context.buffers

    def calls(self, find: Callable[[str], Endpoints | None]) -> Calls:
        """Give the means to send requests of the gateway's own; `find` gives the endpoints of an upstream key."""
        return Calls(self.context, find)

    @property
    def connections(self) -> int:
        """Client connections that are open."""
        return sum(len(port.connections) for port in self._ports)

    def _open_connections(self) -> set[Connection]:
        return {connection for port in self._ports for connection in port.connections}

    async def listen_http(self, host: str | None, port: int, reuse_port: bool = False, public_port: int = 0) -> int:
        """Accept plain connections; gives the port, which the kernel chooses for 0. Raises OSError.

        `public_port` is the port that clients connect to where something in front maps it to this one; 0: this one.
        """
        context = self.context.beside(self.context.holder, self.context.config) if self._own else self.context
        opened = await self._listen(context, host, port, None, reuse_port, public_port)
        self._own.setdefault("http", opened)
        return opened.number

    async def listen_https(
        self,
        host: str | None,
        port: int,
        certificates: CertificateStore,
        reuse_port: bool = False,
        public_port: int = 0,
        holder: RouterHolder | None = None,
    ) -> int:
        """Accept TLS connections with the certificate for their server name; as `listen_http` otherwise.

        `holder` has the router of the port; None: that of the HTTP port.
        """
        context = self.context.beside(holder or self.context.holder, self.context.config)
        opened = await self._listen(context, host, port, certificates.server_context, reuse_port, public_port)
        self._own["https"] = opened
        return opened.number

    def https_port(self) -> HttpPort:
        """Return the gateway's own port for TLS, which has to be open."""
        return self._own["https"]

    def open_port(
        self, holder: RouterHolder, tls: ssl.SSLContext | None, listening: socket.socket, settings: PortSettings
    ) -> HttpPort:
        """Accept connections on a socket that listens; `holder` has the router of the port."""
        context = self.context.beside(holder, self.context.config)
        port = HttpPort(context, self._streams, listening, tls, proxy_protocol=self._proxy_protocol, settings=settings)
        self._ports.append(port)
        port.listener.begin()
        if self.is_paused:
            port.listener.pause()
        self._start_clock()
        return port

    def speak(self, port: HttpPort, scheme: str, holder: RouterHolder, tls: ssl.SSLContext | None) -> None:
        """Speak another way on a port too; `holder` has the router of its connections."""
        port.speak(scheme, self.context.beside(holder, self.context.config), tls)

    def close_port(self, port: HttpPort) -> None:
        """Close a port for good; what is under way there goes on."""
        port.retire(time.monotonic())

    def share(self, plan: PortPlan | None) -> None:
        """Hand HTTPS connections for the plan's server names to stream routes from now on; None: there are none."""
        if "https" in self._own:
            self._own["https"].listener.share(plan)

    def configure_own(self, scheme: str, settings: PortSettings) -> None:
        """Treat new connections of one of the gateway's own ports so."""
        if scheme in self._own:
            self._own[scheme].configure(settings)

    async def _listen(
        self,
        context: ProxyContext,
        host: str | None,
        port: int,
        tls: ssl.SSLContext | None,
        reuse_port: bool,
        public_port: int,
    ) -> HttpPort:
        listening = open_listener(host, port, reuse_port=reuse_port)
        opened = HttpPort(context, self._streams, listening, tls, public_port, proxy_protocol=self._proxy_protocol)
        self._ports.append(opened)
        await opened.listener.start()
        self._start_clock()
        return opened

    def _start_clock(self) -> None:
        if self._timer is None:
            self._tick()

    def _tick(self) -> None:
        """Move the clock and look at every deadline."""
        context = self.context
        context.clock.tick()
        self._watch_descriptors()
        now = time.monotonic()
        for port in self._ports:
            port.sweep(now)
        for ended in [port for port in self._ports if port.has_ended]:
            ended.close_datagrams()
            self._ports.remove(ended)
        if now >= self._pool_sweep_at:
            self._pool_sweep_at = now + max(1.0, context.clock.tick_s)
            self._pools.close_aged()
        self._timer = asyncio.get_running_loop().call_later(context.clock.tick_s, self._tick)

    def _watch_descriptors(self) -> None:
        """Accept only while there are descriptors for what established clients need."""
        is_short = descriptors.is_short()
        if is_short:
            descriptors.note_exhausted("accept")
        if is_short is self.is_paused:
            return
        self.is_paused = is_short
        for port in self._ports:
            if is_short:
                port.listener.pause()
            else:
                port.listener.resume()

    def announce_drain(self) -> None:
        """From now on tell clients with every answer that their connection closes; accepting goes on."""
        self.context.draining = True
        for port in self._ports:
            port.announce_drain()

    async def drain(self, grace_s: float) -> None:
        """Stop accepting, let what is under way finish with `Connection: close`, and abort what is left at the end.

        Under way are requests, tunnels, TLS handshakes, and PROXY headers that have not come yet. Connections that rest
        are closed behind a quiet time (`drain_quiet_s`), unless a request has come by then.
        """
        self.announce_drain()
        await _take_from_kernel()
        for port in self._ports:
            port.stop_accepting()
        resting = asyncio.get_running_loop().create_task(self._close_resting(grace_s))
        try:
            async with asyncio.timeout(grace_s):
                await self._ended()
        except TimeoutError:
            for connection in self._open_connections():
                connection.abort()
        finally:
            resting.cancel()
        for port in self._ports:
            port.close_datagrams()
        self._pools.close_idle()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _close_resting(self, grace_s: float) -> None:
        """Close connections that rest, each when it has had the quiet time: some come out of a handshake only now."""
        context = self.context
        quiet_s = min(max(context.config.drain_quiet_s, context.clock.tick_s), grace_s / 2)
        while True:
            known = self._open_connections()
            await asyncio.sleep(quiet_s)
            for connection in known & self._open_connections():
                connection.drain()

    async def _ended(self) -> None:
        """Wait until no connection is open, nor about to be served."""
        pending: set[asyncio.Task[None]] = self._streams.pending if self._streams is not None else set()
        while True:
            for port in list(self._ports):
                await port.ended()
            if pending:
                await asyncio.wait(pending)
            elif not self.connections:
                return


async def _take_from_kernel() -> None:
    """Let the event loop accept the connections that wait in the kernel, and read what lies there."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
