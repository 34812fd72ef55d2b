"""One port on which HTTP is spoken: what its connections share, and how it ends."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from headgate.gateway.listeners.sharing import SharedListener
from headgate.gateway.model.networks import parse_networks
from headgate.gateway.net.proxy_protocol import Addresses
from headgate.gateway.proxy.context import Connection, ProxyContext
from headgate.gateway.proxy.http1.server import ClientConnection
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.table.listener_ports import PortSettings

_NO_SETTINGS = PortSettings()
_HTTPS_PORT: Final = 443


class _Arriving(asyncio.Protocol):
    """A connection that was accepted, until it is made, which is after the TLS handshake.

    Only then is it served, with the settings of that time, so that a port knows every connection that has a context.
    """

    def __init__(self, serve: Callable[[], asyncio.Protocol]) -> None:
        self._serve = serve

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand the transport to what serves it."""
        protocol = self._serve()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


class HttpPort:
    """A listening port, and its connections.

    Args:
        context: for its connections, as the gateway's own settings have it.
        streams: for ports that stream routes may share, or whose connections begin with a PROXY header.
        listening: nonblocking, listening; becomes the object's to close.
        tls: spoken with clients; None: plain.
        shown_port: number of the port that clients connect to.
        proxy_protocol: the gateway's own setting: every connection of a trusted peer begins with a PROXY header.
        settings: of the listeners of the port.
    """

    def __init__(
        self,
        context: ProxyContext,
        streams: StreamContext | None,
        listening: socket.socket,
        tls: ssl.SSLContext | None,
        shown_port: int = 0,
        *,
        proxy_protocol: bool = False,
        settings: PortSettings = _NO_SETTINGS,
    ) -> None:
        self.number: int = listening.getsockname()[1]
        self._own = context
        self._streams = streams
        self._proxy_protocol = proxy_protocol
        self._scheme = b"http" if tls is None else b"https"
        self._shown = str(shown_port or self.number).encode()
        self._settings = _NO_SETTINGS
        self._contexts = [context]
        """Of connections that are open, that of new ones last."""
        self.closes_at: float | None = None
        """When connections that rest are closed, as the port is; None: it is open."""
        self.listener = SharedListener(
            streams,
            listening,
            self._accept,
            tls,
            expects_proxy_header=proxy_protocol,
            handshake_timeout_s=context.config.tls_handshake_timeout_s,
        )
        self.configure(settings)

    def _accept(self, told: Addresses | None) -> asyncio.Protocol:
        address, shown, names_https = b"", self._shown, False
        if told is not None:
            address, port = told.source[0].encode(), told.destination[1]
            names_https = port == _HTTPS_PORT
            if port != self.number:
                shown = str(port).encode()
        return _Arriving(lambda: self._serve(shown, address, names_https))

    def _serve(self, shown: bytes, address: bytes, names_https: bool) -> asyncio.Protocol:
        connection = ClientConnection(self._contexts[-1], self._scheme, shown, address, names_https=names_https)
        return cast(asyncio.Protocol, connection)

    def configure(self, settings: PortSettings) -> None:
        """Treat connections so that are made from now on, those in a TLS handshake included."""
        if settings == self._settings:
            return
        self._settings = settings
        own, trusted = self._own, settings.trusted_proxies
        config, streams = own.config, self._streams
        if settings.connections.model_fields_set:
            config = replace(config, **settings.connections.model_dump(exclude_none=True))
        if trusted is not None:
            config = replace(config, trusted_proxies=trusted, trust_forwarded=False)
            streams = replace(streams, proxy_networks=parse_networks(trusted)) if streams is not None else None
        context = own.beside(own.holder, config)
        if settings.access_log is not None and own.access_log is not None:
            context.access_log = own.access_log.formatted(settings.access_log)
            context.times_endpoints = context.access_log.is_detailed
        context.draining = self._contexts[-1].draining
        self._contexts = [each for each in self._contexts if each.connections] + [context]
        expects = self._proxy_protocol if settings.proxy_protocol is None else settings.proxy_protocol
        self.listener.expect_headers(streams, expects=expects and trusted != ())

    @property
    def connections(self) -> set[Connection]:
        """Those that are open."""
        if len(self._contexts) == 1:
            return self._contexts[0].connections
        return {connection for context in self._contexts for connection in context.connections}

    def announce_drain(self) -> None:
        """From now on tell clients with every answer that their connection closes; accepting goes on."""
        for context in self._contexts:
            context.draining = True
        for connection in list(self.connections):
            connection.announce_drain()

    def sweep(self, now: float) -> None:
        """Look at every deadline."""
        for connection in [each for each in self.connections if each.deadline < now]:
            connection.timed_out()
        if self.closes_at is not None and self.closes_at < now:
            for connection in list(self.connections):
                connection.drain()

    def retire(self, now: float) -> None:
        """Take no new connections; requests under way go on, and connections that rest close behind a quiet time."""
        self.listener.close()
        self.announce_drain()
        self.closes_at = now + self._own.config.drain_quiet_s

    async def ended(self) -> None:
        """Wait until no connection is open on a port that drains."""
        await self.listener.ended()
        for context in self._contexts:
            if context.connections:
                context.emptied.clear()
                await context.emptied.wait()

    @property
    def has_ended(self) -> bool:
        """Whether the port is closed and nothing of it is left, nor about to be."""
        if self.closes_at is None or self.connections or self.listener.is_accepting:
            return False
        return self._streams is None or not self._streams.pending
