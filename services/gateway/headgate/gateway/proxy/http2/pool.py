"""Connections of HTTP/2 per endpoint: few, shared, and kept over swaps of the route table like those of HTTP/1.1."""

import asyncio
import errno
from typing import cast

from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.http2.client import UpstreamLink
from headgate.gateway.proxy.http2.upstream import Http2Upstream
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.sides import UpstreamSide


class Http2Pool(EndpointPool):
    """Requests go to the first connection that has room, so that surplus ones age out."""

    __slots__ = ("_links", "_opening")

    def __init__(
        self, address: str, port: int, spec: ConnectionSpec, config: ProxyConfig, outbox: Outbox, dialler: Dialler
    ) -> None:
        super().__init__(address, port, spec, config, outbox, dialler)
        self._links: list[UpstreamLink] = []
        self._opening: asyncio.Task[None] | None = None
        """Opens a connection that all may use who wait for one."""

    @property
    def idle_count(self) -> int:
        """Connections without a stream."""
        return sum(1 for link in self._links if not link.flows and not link.closed)

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        return sum(1 for link in self._links if not link.closed)

    def acquire(self, *, certain: bool) -> UpstreamSide | None:
        """Open a stream on a connection that has room; None: connect a new one."""
        for link in self._links:
            if link.has_room:
                return Http2Upstream(self, link)
        return None

    async def connect(self, peer: Peer) -> UpstreamSide:
        """Wait for a connection with room; raises OSError (ssl.SSLError is one), or UnicodeError."""
        if self.spec.proxy_protocol:
            # The connection is one client's.
            link = await self._open_link(peer, 1)
            return Http2Upstream(self, link)
        while True:
            side = self.acquire(certain=False)
            if side is not None:
                return side
            opening = self._opening
            if opening is None:
                opening = asyncio.get_running_loop().create_task(self._open_shared(peer), name=f"h2 {self.label}")
                self._opening = opening
            await asyncio.shield(opening)
            if not any(link.has_room or link.flows for link in self._links):
                # A connection of its own would fare no better.
                raise ConnectionRefusedError(errno.ECONNREFUSED, "the endpoint allows no streams")

    async def _open_shared(self, peer: Peer) -> None:
        try:
            async with asyncio.timeout(self.config.connect_timeout_s):
                link = await self._open_link(peer, self.max_requests)
        finally:
            self._opening = None
        self._links = [each for each in self._links if not each.closed]
        self._links.append(link)
        if self._retired:
            link.leaving = True

    async def _open_link(self, peer: Peer, max_requests: int) -> UpstreamLink:
        link = UpstreamLink(self.config, self.outbox, max_requests)
        try:
            await self.open(cast(asyncio.Protocol, link), peer)
            self._check_protocol(link)
            await link.ready
        except BaseException:
            link.abort()
            raise
        return link

    def _check_protocol(self, link: UpstreamLink) -> None:
        tls = link.transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            raise ConnectionResetError(errno.EPROTO, "the endpoint did not agree to HTTP/2 (no h2 by ALPN)")

    def close_idle(self) -> None:
        """Close the connections without streams."""
        for link in list(self._links):
            if not link.flows:
                link.leave()
        self._links = [each for each in self._links if not each.closed]

    def close_aged(self, now: float) -> None:
        """Close those that have had no stream for too long at a monotonic time."""
        if not self._links:
            return
        before = now - self._idle_timeout_s
        for link in list(self._links):
            if not link.flows and link.idle_since < before:
                link.leave()
        self._links = [each for each in self._links if not each.closed]

    def retire(self) -> None:
        """No table names this endpoint any more: let what is under way finish."""
        self._retired = True
        for link in self._links:
            link.leave()
