"""The ports of a worker: kept from the start, opened with the first table, drained at the end."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from headgate.common.errors import SettingsError
from headgate.gateway import ENGINE
from headgate.gateway.listeners.http_listeners import HttpListeners, ServeHttp3
from headgate.gateway.net.reserved_port import reserve_port
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.role import WorkerRole
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.streams.listeners import StreamListeners
from headgate.gateway.streams.ports import udp_numbers
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.listener_ports import OWN_HTTPS
from headgate.gateway.worker.wiring import ServingParts

_log = logging.getLogger(__name__)


class Ports:
    """HTTP, HTTPS and what the table's stream routes listen on.

    Args:
        settings: of the gateway.
        role: of the worker; one that is alone keeps the ports by itself.
        compiler: has the table whose ports are served.
        serving: what serves on them.
        metrics: where ports are counted.
        on_change: called when ports of the table open or close.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        role: WorkerRole,
        compiler: TableCompiler,
        serving: ServingParts,
        metrics: TableMetrics,
        on_change: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._role = role
        self._compiler = compiler
        self._serving = serving
        self._metrics = metrics
        self._on_change = on_change
        self._listeners: tuple[str, ...] = ()
        self._http: HttpListeners | None = None
        self._streams: StreamListeners | None = None
        self._is_closing = False

    @property
    def are_open(self) -> bool:
        """Whether the gateway's own are."""
        return bool(self._listeners)

    def names(self) -> tuple[str, ...]:
        """Return what is listened on: `http://0.0.0.0:80`."""
        of_table = (self._http, self._streams)
        return self._listeners + sum((each.names for each in of_table if each is not None), ())

    def reserve(self, stack: ExitStack) -> None:
        """Keep the ports before anything listens, so that one that is taken is reported at once."""
        settings, role = self._settings, self._role
        if role.is_alone:
            http = stack.enter_context(reserve_port("http_port", settings.http_host, settings.http_port))
            https = (
                stack.enter_context(reserve_port("https_port", settings.http_host, settings.https_port))
                if settings.https
                else None
            )
            self._role = role.model_copy(update={"http_port": http, "https_port": https})

    async def open(self) -> None:
        """Listen, for the table's listeners and stream routes too."""
        settings, role, server = self._settings, self._role, self._serving.server
        with naming("http_port", settings.http_port, settings.http_host):
            port = await server.listen_http(
                settings.http_host,
                role.http_port or settings.http_port,
                reuse_port=True,
                public_port=settings.public_http_port,
            )
        listeners = [f"http://{settings.http_host}:{port}"]
        reserved = {port: "HTTP port", settings.admin_port: "admin port"}
        serve_http3: ServeHttp3 | None = None
        if settings.https:
            with naming("https_port", settings.https_port, settings.http_host):
                port = await server.listen_https(
                    settings.http_host,
                    role.https_port or settings.https_port,
                    self._serving.certificates,
                    reuse_port=True,
                    public_port=settings.public_https_port,
                    holder=self._serving.routers.holder(OWN_HTTPS),
                )
            listeners.append(f"https://{settings.http_host}:{port}")
            reserved[port] = "HTTPS port"
            if settings.http3:
                serve_http3 = self._open_http3(port)
                listeners.append(f"h3://{settings.http_host}:{port}")
        self._listeners = tuple(listeners)
        self._http = HttpListeners(
            server,
            self._serving.routers,
            self._compiler,
            self._serving.certificates,
            self._metrics,
            settings.http_host,
            reuse_port=not role.is_alone,
            reserved=reserved,
            on_change=self._on_change,
            serve_http3=serve_http3,
        )
        self._streams = StreamListeners(
            self._serving.streams,
            settings.http_host,
            reuse_port=not role.is_alone,
            reserved=reserved,
            https=server if settings.https else None,
            on_change=self._on_change,
            http3_port=server.https_port().number if settings.http3 else 0,
        )
        self.serve_table()
        self._on_change()
        _log.info("listening", extra={"listeners": " ".join(listeners), "worker": role.index, "engine": ENGINE})

    def _open_http3(self, number: int) -> ServeHttp3:
        """Speak HTTP/3 on the gateway's own port; return what speaks it on those of the table."""
        # Loaded only where it is wanted.
        from headgate.gateway.listeners.http3 import Http3Ports
        from headgate.gateway.quic.forwarding import NO_FORWARDING, Forwarding, WorkerForwarding

        settings, role, serving = self._settings, self._role, self._serving
        socket = role.admin_socket

        def forwarding(name: str) -> Forwarding:
            return WorkerForwarding(socket.parent, role.index, role.workers, name) if socket else NO_FORWARDING

        ports = Http3Ports(
            serving.certificates, settings.http3_max_age_s, reuse_port=not role.is_alone, forwarding=forwarding
        )
        with naming("http3", number, settings.http_host):
            ports.serve_own(serving.server.https_port(), settings.http_host)
        return ports.serve

    def serve_table(self) -> None:
        """Open and close ports of the table; those of the table on disk once the gateway's own are open."""
        table, http, streams = self._compiler.table, self._http, self._streams
        if table is None or http is None or streams is None or self._is_closing:
            return
        streams.reserve(
            {port.port: "an HTTP listener's" for port in table.plan.ports if not port.is_own and not port.address}
        )
        routes = [stream for _, stream in self._compiler.streams.compiled()]
        http.leave_udp(udp_numbers(routes))
        lent = streams.apply(routes, http.keys(table.plan), self._compiler.listener_entries)
        http.apply(table.plan, lent)
        if streams.ports.failed:  # Perhaps for a port that was a listener's until now.
            streams.ports.try_again()

    async def drain(self) -> None:
        """Say that the end is near, go on for the delay, and let finish what is under way."""
        server, streams, drain_s = self._serving.server, self._streams, self._settings.drain_s
        server.announce_drain()
        await asyncio.sleep(self._settings.drain_delay_s)
        self._is_closing = True
        if self._http is not None:
            self._http.stop()
        await asyncio.gather(server.drain(drain_s), *([streams.drain(drain_s)] if streams is not None else []))


@contextmanager
def naming(setting: str, port: int, host: str) -> Iterator[None]:
    """Turn a failure to bind into one line that names the setting."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SettingsError(f"{setting}: {port} cannot be bound on {host}: {reason}") from error
