"""The connections to one endpoint, whatever version of HTTP they speak."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from headgate.common.traffic import endpoint_name
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.net.proxy_protocol import write_proxy_header
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.traffic import EndpointTraffic

if TYPE_CHECKING:
    from headgate.gateway.proxy.sides import UpstreamSide


class MeasuresLatency(Protocol):
    """What balances by latency: `balancing.latency.PeakLatency`."""

    def observe(self, seconds: float, now: float) -> None:
        """Note how long an answer took; `now` is monotonic."""


class EndpointPool:
    """One address, port and spec; `Http1Pool` and `Http2Pool` keep its connections."""

    __slots__ = (
        "_idle_timeout_s",
        "_retired",
        "address",
        "config",
        "connects",
        "dialler",
        "in_flight",
        "is_hop",
        "label",
        "latency",
        "max_requests",
        "outbox",
        "port",
        "spec",
        "traffic",
    )

    def __init__(
        self, address: str, port: int, spec: ConnectionSpec, config: ProxyConfig, outbox: Outbox, dialler: Dialler
    ) -> None:
        self.address = address
        self.port = port
        self.spec = spec
        self.config = config
        self.outbox = outbox
        self.dialler = dialler
        self.label = endpoint_name(address, port)
        self.is_hop = spec.is_hop
        self.in_flight = 0
        """Requests that are under way on connections of this pool."""
        self.connects = 0
        """Connections opened, or tried to."""
        self.traffic = EndpointTraffic(self.label)
        self.latency: MeasuresLatency | None = None
        """Learns how long answers take; None while nobody balances by that."""
        self._idle_timeout_s = spec.idle_timeout_s or config.upstream_idle_timeout_s
        self.max_requests = spec.max_requests or 1 << 62
        """On one connection."""
        self._retired = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.label} idle={self.idle_count} in_flight={self.in_flight}>"

    @property
    def idle_count(self) -> int:
        """Connections at rest."""
        raise NotImplementedError

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        raise NotImplementedError

    def acquire(self, *, certain: bool) -> "UpstreamSide | None":
        """Take a connection that has room; None: connect a new one.

        `certain` asks the kernel whether the peer has closed or spoken meanwhile, for requests that could not be sent
        again: one system call.
        """
        raise NotImplementedError

    async def connect(self, peer: Peer) -> "UpstreamSide":
        """Open a connection for a request of a client.

        Raises OSError (ssl.SSLError is one), or UnicodeError for a name that is none.
        """
        raise NotImplementedError

    async def open(self, protocol: asyncio.Protocol, peer: Peer) -> None:
        """Connect a protocol to the endpoint; raises as `connect`."""
        self.connects += 1
        spec, dialler = self.spec, self.dialler
        if not spec.proxy_protocol:
            await dialler.connect(lambda: protocol, self.address, self.port, spec.tls, spec.server_name)
            return
        transport, _ = await dialler.connect(asyncio.Protocol, self.address, self.port)
        try:
            transport.write(write_proxy_header(2 if spec.proxy_protocol == 2 else 1, peer.addresses))
            if spec.tls is None:
                transport.set_protocol(protocol)
                protocol.connection_made(transport)
            else:
                loop, name = asyncio.get_running_loop(), spec.server_name or self.address
                secured = await loop.start_tls(transport, protocol, spec.tls, server_hostname=name)
                assert secured is not None
                protocol.connection_made(secured)
        except BaseException:
            transport.abort()
            raise

    def close_idle(self) -> None:
        """Close the connections at rest."""
        raise NotImplementedError

    def close_aged(self, now: float) -> None:
        """Close those that have rested for too long at a monotonic time."""
        raise NotImplementedError

    def retire(self) -> None:
        """No table names this endpoint any more: close what rests, let what is under way finish."""
        self._retired = True
        self.close_idle()
