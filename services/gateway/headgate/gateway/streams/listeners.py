"""The ports of stream routes. Connections keep the route that they began with, whatever becomes of their port."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from headgate.common.table import Listener
from headgate.gateway.net.port_set import OpenPort, PortKey, PortSet
from headgate.gateway.net.sockets import open_listener
from headgate.gateway.streams.acceptor import Acceptor
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.identify import identify
from headgate.gateway.streams.ports import HTTPS_PORT, NO_LISTENERS, PortPlan, plan_ports
from headgate.gateway.streams.route import CompiledStream
from headgate.gateway.streams.tcp import StreamConnection
from headgate.gateway.streams.udp import UdpPort

_log = logging.getLogger(__name__)


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
        http3_port: UDP port that is the gateway's own; 0: there is none.
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
        http3_port: int = 0,
    ) -> None:
        self._context = context
        self._host = host
        self._reuse_port = reuse_port
        self._https = https
        self._reserved = {port: f"the gateway's {owner}" for port, owner in (reserved or {}).items()}
        self.ports: PortSet[PortPlan] = PortSet(
            "stream port",
            host,
            self._open_port,
            self._reserved,
            self._count,
            on_change,
            reserved_udp={http3_port: "the gateway's HTTP/3 port"} if http3_port else {},
        )
        self._retiring: dict[PortKey, UdpPort] = {}
        self._problems: Mapping[str, str] = {}
        context.stats.watch(self._count_bytes)

    @property
    def names(self) -> tuple[str, ...]:
        """The ports as heartbeats show them: `tcp://0.0.0.0:5432`, with the reason if one is not open."""
        return tuple(f"{key.transport}://{shown}" for key, shown in self.ports.shown().items())

    def reserve(self, ports: Mapping[int, str]) -> None:
        """Leave further TCP ports to others from the next `apply` on."""
        self.ports.reserved = {**ports, **self._reserved}

    def apply(
        self,
        routes: Iterable[CompiledStream],
        shared: Collection[PortKey] = (),
        listeners: Mapping[str, Listener] = NO_LISTENERS,
    ) -> Mapping[PortKey, PortPlan]:
        """Open, change and close ports to what these routes ask for, which may be on these listeners. Never raises.

        Returns:
            What is for those of the `shared` ports, which are listeners' of HTTP.
        """
        plan = plan_ports(routes, listeners)
        for route, problem in plan.problems.items():
            if self._problems.get(route) != problem:
                _log.error("a stream route is not served as it asks", extra={"route": route, "problem": problem})
        self._problems = plan.problems
        wanted = dict(plan.ports)
        self._share_https(wanted.pop(PortKey("tcp", HTTPS_PORT), None))
        lent = {key: wanted.pop(key) for key in shared if key in wanted}
        self.ports.apply(wanted)
        return lent

    def _share_https(self, plan: PortPlan | None) -> None:
        if self._https is not None:
            self._https.share(plan)
        elif plan is not None:
            _log.error("stream routes for the HTTPS port are not served: the gateway has none")

    def _count(self) -> None:
        stats = self._context.stats
        stats.ports_open, stats.ports_failed = len(self.ports.open), len(self.ports.failed)

    def _open_port(self, key: PortKey, plan: PortPlan) -> OpenPort[PortPlan]:
        host, may_be_absent = key.address or self._host, bool(key.address)
        # Others may have the number at all addresses: the gateway itself, or a stream of no address of its own.
        reuse_port = self._reuse_port or may_be_absent
        if key.transport == "tcp":
            bound = open_listener(host, key.port, reuse_port=reuse_port, may_be_absent=may_be_absent)
            return TcpPort(self._context, bound, plan)
        assert plan.only is not None, "UDP routes never share a port"
        retiring = self._retiring.pop(key, None)
        if retiring is not None:
            retiring.route = plan.only
            return _UdpListener(retiring, lambda: self._retire(key, retiring))
        bound = open_listener(host, key.port, datagrams=True, reuse_port=reuse_port, may_be_absent=may_be_absent)
        opened = UdpPort(self._context, bound, plan.only, lambda: self._forget_retired(key))
        return _UdpListener(opened, lambda: self._retire(key, opened))

    def _retire(self, key: PortKey, port: UdpPort) -> None:
        self._retiring[key] = port
        port.retire()

    def _forget_retired(self, key: PortKey) -> None:
        self._retiring.pop(key, None)

    def _count_bytes(self) -> None:
        for stream in self._context.open:
            stream.count_bytes()

    async def drain(self, grace_s: float) -> None:
        """Close all ports, let connections finish, and end what is left when the time is over.

        Those too that have not said yet what they want; `preface_timeout_s` bounds these besides.
        """
        self.ports.close()
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

    def __init__(self, port: UdpPort, retire: Callable[[], None]) -> None:
        self._port = port
        self._retire = retire

    def change(self, plan: PortPlan) -> None:
        """Begin new sessions with this route."""
        self._port.route = plan.only

    def close(self) -> None:
        """Take no new sessions; those that are open go on."""
        self._retire()
