"""The ports of the table's HTTP listeners: open, changed and closed with the table, besides the gateway's own two."""

import ssl
from collections.abc import Callable, Mapping
from functools import partial

from headgate.gateway.listeners.http_port import HttpPort
from headgate.gateway.listeners.server import ProxyServer
from headgate.gateway.net.port_set import PortKey, PortSet
from headgate.gateway.net.sockets import open_listener
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.listener_ports import (
    OWN_HTTP,
    OWN_HTTPS,
    ListenerPlan,
    ListenerPort,
    PortSettings,
    port_settings,
    protocol_of,
)
from headgate.gateway.table.port_routers import PortRouters
from headgate.gateway.tls import CertificateStore

HttpPlan = tuple[str, PortSettings]
"""Scheme and settings of a port."""


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
    ) -> None:
        self._server = server
        self._routers = routers
        self._compiler = compiler
        self._certificates = certificates
        self._metrics = metrics
        self._host = host
        self._reuse_port = reuse_port
        self._schemes: dict[PortKey, str] = {}
        owners = {port: f"the gateway's {owner}" for port, owner in reserved.items()}
        self._ports: PortSet[HttpPlan] = PortSet("listener's port", host, self._open, owners, self._count, on_change)

    @property
    def names(self) -> tuple[str, ...]:
        """The ports as heartbeats show them: `http://0.0.0.0:8000`, with the reason if one is not open."""
        return tuple(f"{self._schemes[key]}://{shown}" for key, shown in self._ports.shown().items())

    def apply(self, plan: ListenerPlan) -> None:
        """Open, change and close ports to what a plan asks for. Never raises."""
        wanted: dict[PortKey, HttpPlan] = {}
        for port, listeners in plan.ports.items():
            scheme, settings = protocol_of(listeners), port_settings(listeners)
            if port in (OWN_HTTP, OWN_HTTPS):
                self._server.configure_own(scheme, settings)
            else:
                wanted[PortKey("tcp", port.port, port.address)] = scheme, settings
        self._schemes = {key: scheme for key, (scheme, _) in wanted.items()}
        self._ports.apply(wanted)

    def stop(self) -> None:
        """Try no port again; those that are open end with the server."""
        self._ports.stop()

    def _open(self, key: PortKey, plan: HttpPlan) -> "_ListenerPort":
        scheme, settings = plan
        port = ListenerPort(key.address, key.port)
        listening = open_listener(key.address or self._host, key.port, reuse_port=self._reuse_port)
        opened = self._server.open_port(self._routers.holder(port), listening, self._tls(scheme, port), settings)
        return _ListenerPort(plan, opened, partial(self._close, port, opened), partial(self._reopen, key))

    def _reopen(self, key: PortKey, plan: HttpPlan) -> None:
        """Speak another scheme on a port."""
        self._ports.reopen(key, plan)

    def _close(self, port: ListenerPort, opened: HttpPort) -> None:
        self._server.close_port(opened)
        self._routers.drop(port)

    def _tls(self, scheme: str, port: ListenerPort) -> ssl.SSLContext | None:
        if scheme == "http":
            return None
        compiler = self._compiler
        return self._certificates.listener_context(
            partial(compiler.find_tls, port=port), partial(compiler.find_certificates, port=port)
        )

    def _count(self) -> None:
        self._metrics.count_ports(len(self._ports.open), len(self._ports.failed))


class _ListenerPort:
    """A listener's port that is open."""

    def __init__(
        self, plan: HttpPlan, port: HttpPort, close: Callable[[], None], reopen: Callable[[HttpPlan], None]
    ) -> None:
        self._scheme = plan[0]
        self._port = port
        self._close = close
        self._reopen = reopen

    def change(self, plan: HttpPlan) -> None:
        """Treat new connections so."""
        scheme, settings = plan
        if scheme == self._scheme:
            self._port.configure(settings)
        else:
            self._reopen(plan)

    def close(self) -> None:
        """Take no new connections; those that are open go on."""
        self._close()
