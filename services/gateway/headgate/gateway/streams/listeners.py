"""Ports that open and close with the table.

`apply` compares what is open with what a table asks for and changes the difference, in one synchronous step: ports that
stay are not touched, connections keep the route that they began with. A port that cannot be bound costs its own routes
only; it is shown, and tried again until the table drops it.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from headgate.gateway.net.sockets import open_listener
from headgate.gateway.streams.acceptor import Acceptor
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.identify import identify
from headgate.gateway.streams.ports import HTTPS_PORT, PortKey, PortPlan, plan_ports
from headgate.gateway.streams.route import CompiledStream
from headgate.gateway.streams.tcp import StreamConnection
from headgate.gateway.streams.udp import UdpPort

_log = logging.getLogger(__name__)

RETRY_S = 5.0
"""Between two tries to bind a port."""


class OpenPort(Protocol):
    """A port that is open."""

    def change(self, plan: PortPlan) -> None:
        """Do this with connections from now on."""

    def close(self) -> None:
        """Take no new connections; those that are open go on."""


class SharesHttps(Protocol):
    """The gateway's HTTPS port, which stream routes may share by server name."""

    def share(self, plan: PortPlan | None) -> None:
        """Hand connections for the plan's server names over; None: there are none."""


class StreamListeners:
    """All stream ports of one worker.

    Args:
        host: address to listen on; `::` takes IPv4 too.
        reuse_port: other workers listen on the same ports.
        reserved: TCP ports that are the gateway's own, and whose: with `reuse_port` the kernel would not refuse them.
        https: where routes of port 0 go; None: there is no such listener.
        on_change: called when `names` changed outside of `apply`.
    """

    def __init__(
        self,
        context: StreamContext,
        host: str,
        *,
        reuse_port: bool = False,
        reserved: Mapping[int, str] | None = None,
        https: SharesHttps | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._context = context
        self._host = host
        self._reuse_port = reuse_port
        self._reserved = dict(reserved or {})
        self._https = https
        self._on_change = on_change
        self._open: dict[PortKey, OpenPort] = {}
        self._failed: dict[PortKey, tuple[PortPlan, str]] = {}
        self._retiring: dict[PortKey, UdpPort] = {}
        self._problems: Mapping[str, str] = {}
        self._retry: asyncio.TimerHandle | None = None
        context.stats.watch(self._count_bytes)

    @property
    def names(self) -> tuple[str, ...]:
        """The ports as heartbeats show them: `tcp://0.0.0.0:5432`, with the reason if one is not open."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        shown = {key: "" for key in self._open} | {key: f" not open: {why}" for key, (_, why) in self._failed.items()}
        return tuple(f"{key.transport}://{host}:{key.port}{shown[key]}" for key in sorted(shown))

    def apply(self, routes: Iterable[CompiledStream]) -> None:
        """Open, change and close ports to what these routes ask for. Never raises."""
        plan = plan_ports(routes)
        for route, problem in plan.problems.items():
            if self._problems.get(route) != problem:
                _log.error("a stream route is not served as it asks", extra={"route": route, "problem": problem})
        self._problems = plan.problems
        wanted = dict(plan.ports)
        self._share_https(wanted.pop(PortKey("tcp", HTTPS_PORT), None))
        for key in self._open.keys() - wanted.keys():
            self._close(key)
        for key in self._failed.keys() - wanted.keys():
            del self._failed[key]
        for key, port_plan in wanted.items():
            if key in self._open:
                self._open[key].change(port_plan)
            else:
                self._try_open(key, port_plan)
        self._settle()

    def _share_https(self, plan: PortPlan | None) -> None:
        if self._https is not None:
            self._https.share(plan)
        elif plan is not None:
            _log.error("stream routes for the HTTPS port are not served: the gateway has none")

    def _try_open(self, key: PortKey, plan: PortPlan) -> None:
        try:
            if key.transport == "tcp" and key.port in self._reserved:
                raise OSError(f"port {key.port} is the gateway's {self._reserved[key.port]}")
            self._open[key] = self._open_port(key, plan)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            if self._failed.get(key, (plan, ""))[1] != reason:
                fields = {"port": f"{key.transport}/{key.port}", "host": self._host, "error": reason}
                _log.error("a stream port cannot be opened, it is tried again", extra=fields)
            self._failed[key] = (plan, reason)
        else:
            self._failed.pop(key, None)
            _log.info("stream port opened", extra={"port": f"{key.transport}/{key.port}"})

    def _open_port(self, key: PortKey, plan: PortPlan) -> OpenPort:
        if key.transport == "tcp":
            return TcpPort(self._context, open_listener(self._host, key.port, reuse_port=self._reuse_port), plan)
        assert plan.only is not None, "UDP routes never share a port"
        retiring = self._retiring.pop(key, None)
        if retiring is not None:
            retiring.route = plan.only
            return _UdpListener(retiring)
        bound = open_listener(self._host, key.port, datagrams=True, reuse_port=self._reuse_port)
        return _UdpListener(UdpPort(self._context, bound, plan.only, lambda: self._forget_retired(key)))

    def _close(self, key: PortKey) -> None:
        closed = self._open.pop(key)
        if isinstance(closed, _UdpListener):
            self._retiring[key] = closed.port
        closed.close()
        _log.info("stream port closed", extra={"port": f"{key.transport}/{key.port}"})

    def _forget_retired(self, key: PortKey) -> None:
        self._retiring.pop(key, None)

    def _settle(self) -> None:
        """Tell what is open, and see to what is not."""
        stats = self._context.stats
        stats.ports_open, stats.ports_failed = len(self._open), len(self._failed)
        if self._failed and self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        before = self.names
        for key, (plan, _) in list(self._failed.items()):
            self._try_open(key, plan)
        self._settle()
        if self.names != before:
            self._on_change()

    def _count_bytes(self) -> None:
        for stream in self._context.open:
            stream.count_bytes()

    async def drain(self, grace_s: float) -> None:
        """Close all ports, let connections finish, and end what is left when the time is over.

        Those too that have not said yet what they want; `preface_timeout_s` bounds these besides.
        """
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._failed.clear()
        for key in list(self._open):
            self._close(key)
        self._settle()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._context.ended(), grace_s)
        for task in list(self._context.pending):
            task.cancel()
        for stream in list(self._context.open):
            stream.abort()


class TcpPort:
    """A listening TCP port."""

    def __init__(self, context: StreamContext, listener: socket.socket, plan: PortPlan) -> None:
        self._context = context
        self._listener = listener
        self._plan = plan
        self._acceptor = Acceptor(listener, self._serve, context.pending)
        self._acceptor.start()

    def change(self, plan: PortPlan) -> None:
        """Do this with connections from now on."""
        self._plan = plan

    def close(self) -> None:
        """Take no new connections; those that are open go on."""
        self._acceptor.stop(final=True)
        self._listener.close()

    async def _serve(self, accepted: socket.socket) -> None:
        context, plan = self._context, self._plan
        found = await identify(accepted, context, plan, expects_proxy_header=plan.expects_proxy_header)
        if found is None:
            return
        if found.route is None:
            context.stats.unrouted += 1
            accepted.close()
            return
        await StreamConnection(context, found.route, found.addresses, found.server_name).open(accepted)


class _UdpListener:
    """A UDP port that is open."""

    def __init__(self, port: UdpPort) -> None:
        self.port = port

    def change(self, plan: PortPlan) -> None:
        """Begin new sessions with this route."""
        self.port.route = plan.only

    def close(self) -> None:
        """Take no new sessions; those that are open go on."""
        self.port.retire()
