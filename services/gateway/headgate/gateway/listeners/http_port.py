"""One port on which HTTP is spoken, plain, over TLS, or both: how it accepts, and how it ends."""

import logging
import math
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace

from headgate.gateway.listeners.datagrams import DatagramListener
from headgate.gateway.listeners.http_side import NO_SETTINGS, HttpSide
from headgate.gateway.listeners.sharing import SharedListener
from headgate.gateway.model.networks import parse_networks
from headgate.gateway.proxy.context import Connection, ProxyContext
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.table.listener_ports import PortSettings

_log = logging.getLogger(__name__)

HTTP, HTTPS = "http", "https"


class HttpPort:
    """A listening port, and its connections.

    Args:
        context: for its connections, as the gateway's own settings have it.
        streams: for ports that stream routes may share, that speak both ways, or whose connections begin with a PROXY
            header.
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
        settings: PortSettings = NO_SETTINGS,
    ) -> None:
        self.number: int = listening.getsockname()[1]
        self._own = context
        self._streams = streams
        self._proxy_protocol = proxy_protocol
        self.shown = shown_port or self.number
        """Number of the port that clients connect to."""
        self._sides: dict[str, HttpSide] = {}
        self._left: list[HttpSide] = []
        """Those that are not spoken any more, with connections that are open still."""
        self._expects: tuple[bool, tuple[str, ...] | None] = proxy_protocol, None
        self._headers_from = streams
        """Knows who begins with PROXY headers, if they are expected."""
        self._datagrams: DatagramListener | None = None
        """HTTP/3 on the UDP port of the same number; None: it is not spoken."""
        self._offers_http3 = False
        self.closes_at: float | None = None
        """When connections that rest are closed, as the port is; None: it is open."""
        scheme = HTTP if tls is None else HTTPS
        side = self._sides[scheme] = HttpSide(context, scheme.encode(), self.number, self.shown)
        self.listener = SharedListener(
            streams,
            listening,
            side.accept,
            tls,
            expects_proxy_header=proxy_protocol,
            handshake_timeout_s=context.config.tls_handshake_timeout_s,
            is_taken=self._is_taken,
        )
        self.configure(settings)

    @property
    def schemes(self) -> frozenset[str]:
        """What is spoken: `http`, `https`, or both."""
        return frozenset(self._sides)

    def speak(self, scheme: str, context: ProxyContext, tls: ssl.SSLContext | None) -> None:
        """Speak another way too."""
        self._sides[scheme] = HttpSide(context, scheme.encode(), self.number, self.shown)
        if tls is not None:
            self.listener.tls = tls
        self._speak()

    def fall_silent(self, scheme: str) -> None:
        """Stop accepting plain or TLS connections. Open ones finish their requests and are then closed."""
        side = self._sides.pop(scheme)
        side.announce_drain()
        if scheme == HTTPS:
            self._retire_datagrams()
        self._left = [each for each in self._left if each.connections] + [side]
        self._speak()

    def _speak(self) -> None:
        accept = {scheme: side.accept for scheme, side in self._sides.items()}
        self.listener.speak(accept.get(HTTP), accept.get(HTTPS))

    @property
    def context(self) -> ProxyContext:
        """What new connections over TLS share."""
        return self._sides[HTTPS].contexts[-1]

    def serve_datagrams(self, listener: DatagramListener, max_age_s: int) -> None:
        """Speak HTTP/3 too, and offer it to clients of TLS for so long."""
        self._datagrams = listener
        self._offers_http3 = True
        listener.start()
        self._sides[HTTPS].offer(b'Alt-Svc: h3=":%b"; ma=%d\r\n' % (str(self.shown).encode(), max_age_s))

    @property
    def has_datagrams(self) -> bool:
        """Whether the UDP port is open."""
        return self._datagrams is not None

    @property
    def offers_http3(self) -> bool:
        """Whether HTTP/3 is spoken with new clients."""
        return self._offers_http3

    def drop_datagrams(self) -> None:
        """Offer HTTP/3 no more, and close the UDP port at once with the connections on it."""
        self._retire_datagrams()
        if HTTPS in self._sides:
            self._sides[HTTPS].offer(b"")
        self.close_datagrams()

    def _retire_datagrams(self) -> None:
        self._offers_http3 = False
        if self._datagrams is not None:
            self._datagrams.stop_accepting()

    def header_senders(self) -> Callable[[str], bool] | None:
        """Return what tells who begins with PROXY headers; None: nobody does."""
        expected, streams = self._expects[0], self._headers_from
        return streams.trusts if expected and streams is not None else None

    def _is_taken(self, server_name: str) -> bool:
        secure = self._sides.get(HTTPS)
        return secure is not None and secure.takes(server_name)

    def configure(self, settings: PortSettings, scheme: str = "") -> None:
        """Treat connections so that are made from now on, of one way to speak or of all."""
        for side in (self._sides[scheme],) if scheme else self._sides.values():
            if settings != side.settings:
                side.configure(settings)
        self._expect_headers()

    def _expect_headers(self) -> None:
        """Expect PROXY headers as the first of the ways says, as they come before anything that tells these apart."""
        said = [self._sides[each].settings for each in (HTTP, HTTPS) if each in self._sides]
        trusted = next((each.trusted_proxies for each in said if each.trusted_proxies is not None), None)
        told = next((each.proxy_protocol for each in said if each.proxy_protocol is not None), self._proxy_protocol)
        if (expects := (told and trusted != (), trusted)) == self._expects:
            return
        self._expects = expects
        streams = self._streams
        if trusted is not None and streams is not None:
            streams = replace(streams, proxy_networks=parse_networks(trusted))
        self._headers_from = streams
        self.listener.expect_headers(streams, expects=expects[0])

    def _every_side(self) -> list[HttpSide]:
        return [*self._sides.values(), *self._left]

    @property
    def connections(self) -> set[Connection]:
        """Those that are open."""
        sides = self._every_side()
        if len(sides) == 1:
            return sides[0].connections
        return {connection for side in sides for connection in side.connections}

    def announce_drain(self) -> None:
        """From now on tell clients with every answer that their connection closes; accepting goes on."""
        for side in self._every_side():
            side.announce_drain()

    def sweep(self, now: float) -> None:
        """Look at every deadline."""
        for connection in [each for each in self.connections if each.deadline < now]:
            try:
                connection.timed_out()
            except Exception:
                # Else no other connection of the server would ever be looked at again.
                _log.exception("a connection is cut off, as what is late in it could not be told")
                connection.deadline = math.inf
                connection.abort()
        if self._datagrams is not None:
            self._datagrams.sweep(now)
            if not (self._offers_http3 or self._datagrams.is_used):
                self.close_datagrams()
        if self.closes_at is not None and self.closes_at < now:
            for connection in list(self.connections):
                connection.drain()

    def retire(self, now: float) -> None:
        """Take no new connections; requests under way go on, and connections that rest close behind a quiet time."""
        self.stop_accepting()
        self.announce_drain()
        self.closes_at = now + self._own.config.drain_quiet_s

    def stop_accepting(self) -> None:
        """Take no new connections."""
        self.listener.close()
        self._retire_datagrams()

    def close_datagrams(self) -> None:
        """Close the UDP port; connections that are open there are cut off."""
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None

    async def ended(self) -> None:
        """Wait until no connection is open on a port that drains."""
        await self.listener.ended()
        for context in [context for side in self._every_side() for context in side.contexts]:
            if context.connections:
                context.emptied.clear()
                await context.emptied.wait()

    @property
    def has_ended(self) -> bool:
        """Whether the port is closed and nothing of it is left, nor about to be."""
        if self.closes_at is None or self.connections or self.listener.is_accepting:
            return False
        return self._streams is None or not self._streams.pending
