"""The connections of a port that speak HTTP in one way, plain or over TLS: what they share, and how it changes."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from headgate.gateway.net.proxy_protocol import Addresses
from headgate.gateway.proxy.context import Connection, ProxyContext
from headgate.gateway.proxy.http1.server import ClientConnection
from headgate.gateway.table.listener_ports import PortSettings

NO_SETTINGS: Final = PortSettings()
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


class HttpSide:
    """One way to speak HTTP on a port.

    Args:
        context: for its connections, as the gateway's own settings have it.
        scheme: `http` or `https`.
        number: of the port.
        shown_port: number of the port that clients connect to.
    """

    def __init__(self, context: ProxyContext, scheme: bytes, number: int, shown_port: int) -> None:
        self._own = context
        self._scheme = scheme
        self._number = number
        self._shown = str(shown_port).encode()
        self.settings = NO_SETTINGS
        self.contexts = [context]
        """Of connections that are open, that of new ones last."""

    def accept(self, told: Addresses | None) -> asyncio.Protocol:
        """Return what serves a connection; `told` are both ends as a PROXY header named them."""
        address, shown, names_https = b"", self._shown, False
        if told is not None:
            address, port = told.source[0].encode(), told.destination[1]
            names_https = port == _HTTPS_PORT
            if port != self._number:
                shown = str(port).encode()
        return _Arriving(lambda: self._serve(shown, address, names_https))

    def _serve(self, shown: bytes, address: bytes, names_https: bool) -> asyncio.Protocol:
        connection = ClientConnection(self.contexts[-1], self._scheme, shown, address, names_https=names_https)
        return cast(asyncio.Protocol, connection)

    def configure(self, settings: PortSettings) -> None:
        """Treat connections so that are made from now on, those in a TLS handshake included."""
        self.settings = settings
        own, trusted = self._own, settings.trusted_proxies
        config = own.config
        if settings.connections.model_fields_set:
            config = replace(config, **settings.connections.model_dump(exclude_none=True))
        if trusted is not None:
            config = replace(config, trusted_proxies=trusted, trust_forwarded=False)
        context = own.beside(own.holder, config)
        if settings.access_log is not None and own.access_log is not None:
            context.access_log = own.access_log.formatted(settings.access_log)
            context.times_endpoints = context.access_log.is_detailed
        context.draining = self.contexts[-1].draining
        context.alt_svc = self.contexts[-1].alt_svc
        self.contexts = [each for each in self.contexts if each.connections] + [context]

    def offer(self, alt_svc: bytes) -> None:
        """Offer clients HTTP/3 from now on, by a header line of answers."""
        for context in self.contexts:
            context.alt_svc = alt_svc

    def takes(self, server_name: str) -> bool:
        """Tell whether a virtual host takes a host."""
        router = self._own.holder.router
        return router is not None and router.takes(server_name.encode())

    @property
    def connections(self) -> set[Connection]:
        """Those that are open."""
        if len(self.contexts) == 1:
            return self.contexts[0].connections
        return {connection for context in self.contexts for connection in context.connections}

    def announce_drain(self) -> None:
        """From now on tell clients with every answer that their connection closes."""
        for context in self.contexts:
            context.draining = True
        for connection in list(self.connections):
            connection.announce_drain()
