"""The ports of the table's HTTP listeners: open, changed and closed with the table, besides the gateway's own two."""

import logging
import os
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from headgate.common.heartbeats import NOT_OPEN
from headgate.gateway.listeners.http_port import HttpPort
from headgate.gateway.listeners.server import ProxyServer
from headgate.gateway.net.port_set import PortKey, PortSet
from headgate.gateway.net.sockets import open_listener
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.streams.ports import PortPlan
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.listener_ports import ListenerPlan, ListenerPort, PortSettings, port_settings
from headgate.gateway.table.port_routers import PortRouters
from headgate.gateway.tls import CertificateStore
from headgate.gateway.tls.handshake import ListenerContext
from headgate.gateway.tls.server import FindPolicy

_log = logging.getLogger(__name__)

ServeHttp3 = Callable[[HttpPort, str, ListenerContext, FindPolicy], None]
"""Speaks HTTP/3 beside a port, at an address, with these certificates and policies. Raises OSError."""
_NOTHING_LENT: Final[Mapping[PortKey, PortPlan]] = MappingProxyType({})


class HttpPlan(NamedTuple):
    """What happens to the connections of a port."""

    spoken: Mapping[str, PortSettings]
    """Settings by scheme: `http`, `https`, or both."""
    streams: PortPlan | None = None
    """Stream routes that share the port."""


class HttpListeners:
    """The ports of HTTP listeners of one worker.

    Args:
        server: serves on them.
        routers: where their connections find routes.
        compiler: finds TLS policies by server name.
        certificates: what is presented.
        metrics: where ports are counted.
        host: address of listeners that name none.
        reuse_port: other workers listen on the same ports.
        reserved: TCP ports that are the gateway's own, and whose.
        on_change: called when `names` changed outside of `apply`.
        serve_http3: speaks HTTP/3 beside a port for TLS; None: it is not wanted.
    """

    def __init__(
        self,
        server: ProxyServer,
        routers: PortRouters,
        compiler: TableCompiler,
        certificates: CertificateStore,
        metrics: TableMetrics,
        host: str,
        *,
        reuse_port: bool = False,
        reserved: Mapping[int, str],
        on_change: Callable[[], None] = lambda: None,
        serve_http3: ServeHttp3 | None = None,
    ) -> None:
        self._server = server
        self._routers = routers
        self._compiler = compiler
        self._certificates = certificates
        self._metrics = metrics
        self._host = host
        self._reuse_port = reuse_port
        self._schemes: dict[PortKey, list[str]] = {}
        self._refused: Sequence[tuple[ListenerPort, str]] = ()
        self._serve_http3 = serve_http3
        self._udp: Collection[int] = ()
        """UDP ports that are others'."""
        self._over_udp: dict[PortKey, HttpPort] = {}
        """Those that HTTP/3 was begun on."""
        self._without_http3: dict[PortKey, str] = {}
        """Why it is not spoken."""
        owners = {port: f"the gateway's {owner}" for port, owner in reserved.items()}
        self._ports: PortSet[HttpPlan] = PortSet("listener's port", host, self._open, owners, self._count, on_change)

    @property
    def names(self) -> tuple[str, ...]:
        """The ports as heartbeats show them: `http://0.0.0.0:8000`, with the reason if one is not open."""
        shown = self._ports.shown().items()
        opened = (f"{scheme}://{where}" for key, where in shown for scheme in self._schemes[key])
        return (
            *opened,
            *(f"h3://{self._ports.where(key)}" for key, port in sorted(self._over_udp.items()) if port.offers_http3),
            *(f"{port.protocol}://{self._ports.where(_key(port))}{NOT_OPEN}{why}" for port, why in self._refused),
        )

    @staticmethod
    def keys(plan: ListenerPlan) -> frozenset[PortKey]:
        """Return the ports that a plan asks for, besides the gateway's own."""
        return frozenset(_key(port) for port in plan.ports if not port.is_own)

    def leave_udp(self, numbers: Collection[int]) -> None:
        """Speak no HTTP/3 on UDP ports that stream routes ask for by name, as these say so and HTTP/3 is an offer."""
        self._udp = numbers
        for key in [key for key in self._over_udp if key.port in numbers]:
            self._over_udp.pop(key).drop_datagrams()

    def apply(self, plan: ListenerPlan, lent: Mapping[PortKey, PortPlan] = _NOTHING_LENT) -> None:
        """Open, change and close ports to what a plan asks for. Never raises.

        Args:
            plan: of all listeners.
            lent: stream routes that share these ports.
        """
        self._refused = sorted(plan.refused.items())
        spoken: dict[PortKey, dict[str, PortSettings]] = {}
        for port, listeners in sorted(plan.ports.items()):
            settings = port_settings(listeners)
            if port.is_own:
                self._server.configure_own(port.protocol, settings)
            else:
                spoken.setdefault(_key(port), {})[port.protocol] = settings
        self._schemes = {key: list(schemes) for key, schemes in spoken.items()}
        self._ports.apply({key: HttpPlan(schemes, lent.get(key)) for key, schemes in spoken.items()})

    def stop(self) -> None:
        """Try no port again; those that are open end with the server."""
        self._ports.stop()

    def _open(self, key: PortKey, plan: HttpPlan) -> "_ListenerPort":
        # The gateway's own port may have the same number: it has the connections to all other addresses then.
        reuse_port = self._reuse_port or (bool(key.address) and key.port in self._ports.reserved)
        host = key.address or self._host
        listening = open_listener(host, key.port, reuse_port=reuse_port, may_be_absent=bool(key.address))
        (scheme, settings), *_ = plan.spoken.items()
        opened = self._server.open_port(*self._spoken(key, scheme), listening, settings)
        port = _ListenerPort(key, opened, self)
        port.change(plan)
        return port

    def _spoken(self, key: PortKey, scheme: str) -> tuple[RouterHolder, ssl.SSLContext | None]:
        """Return where connections find routes, and the TLS that is spoken with them."""
        port = _port(key, scheme)
        if scheme == "http":
            return self._routers.holder(port), None
        compiler = self._compiler
        tls = self._certificates.listener_context(
            partial(compiler.find_tls, port=port), partial(compiler.find_certificates, port=port)
        )
        return self._routers.holder(port), tls

    def offer_http3(self, key: PortKey, opened: HttpPort) -> None:
        """Speak HTTP/3 beside a port for TLS, if it is wanted and the UDP port can be had; else try with each table."""
        if self._serve_http3 is None or opened.offers_http3:
            return
        port = _port(key, "https")
        find = partial(self._compiler.find_tls, port=port)
        tls = self._certificates.listener_context(find, partial(self._compiler.find_certificates, port=port))
        reason = ""
        try:
            if key.port in self._udp:
                raise OSError("a stream route has the UDP port")
            self._serve_http3(opened, key.address or self._host, tls, find)
            self._over_udp[key] = opened
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
        if reason and reason != self._without_http3.get(key):
            _log.error("a listener's port does not speak HTTP/3", extra={"port": str(key), "error": reason})
        self._without_http3[key] = reason

    def speak(self, key: PortKey, opened: HttpPort, scheme: str) -> None:
        """Speak another way on a port too."""
        self._server.speak(opened, scheme, *self._spoken(key, scheme))

    def fall_silent(self, key: PortKey, opened: HttpPort, scheme: str) -> None:
        """Stop accepting plain or TLS connections."""
        opened.fall_silent(scheme)
        self._routers.drop(_port(key, scheme))

    def close(self, key: PortKey, opened: HttpPort) -> None:
        """Close a port."""
        self._server.close_port(opened)
        self._over_udp.pop(key, None)
        self._without_http3.pop(key, None)
        for scheme in opened.schemes:
            self._routers.drop(_port(key, scheme))

    def _count(self) -> None:
        self._metrics.count_ports(len(self._ports.open), len(self._ports.failed))


def _key(port: ListenerPort) -> PortKey:
    return PortKey("tcp", port.port, port.address)


def _port(key: PortKey, scheme: str) -> ListenerPort:
    return ListenerPort(key.address, key.port, "https" if scheme == "https" else "http")


class _ListenerPort:
    """A listener's port that is open."""

    def __init__(self, key: PortKey, port: HttpPort, listeners: HttpListeners) -> None:
        self._key = key
        self._port = port
        self._listeners = listeners

    def change(self, plan: HttpPlan) -> None:
        """Treat new connections so."""
        before = self._port.schemes
        for scheme in plan.spoken.keys() - before:
            self._listeners.speak(self._key, self._port, scheme)
        for scheme in before - plan.spoken.keys():
            self._listeners.fall_silent(self._key, self._port, scheme)
        for scheme, settings in plan.spoken.items():
            self._port.configure(settings, scheme)
        self._port.listener.share(plan.streams)
        if "https" in plan.spoken:
            self._listeners.offer_http3(self._key, self._port)

    def close(self) -> None:
        """Take no new connections; those that are open go on."""
        self._listeners.close(self._key, self._port)
