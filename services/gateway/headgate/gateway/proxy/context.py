"""What all connections of one `ProxyServer` share."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.gateway.proxy.buffers import BufferBudget
from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.connection_limits import ConnectionLimits
from headgate.gateway.proxy.head import RequestRules
from headgate.gateway.proxy.origin import TrustedPeers
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.seam import RequestLog, RouterHolder, Tracing
from headgate.gateway.proxy.stats import ProxyStats

if TYPE_CHECKING:
    from headgate.gateway.proxy.downstream import ClientConnection
    from headgate.gateway.proxy.http2.server import Http2Connection


@dataclass(slots=True)
class ProxyContext:
    """Handed to every connection; the set of connections and `draining` are the only things that change."""

    holder: RouterHolder
    config: ProxyConfig
    stats: ProxyStats
    access_log: RequestLog | None
    clock: Clock
    outbox: Outbox
    connections: "set[ClientConnection | Http2Connection]" = field(default_factory=set)
    tracing: Tracing | None = None
    """None: no request is traced."""
    times_endpoints: bool = False
    """Measure for every request how long its endpoint takes to answer, as the access log wants to say so."""
    draining: bool = False
    """Every answer closes its connection."""
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last connection closes while draining."""
    trusted: TrustedPeers | None = None
    """None: there are none."""
    limits: ConnectionLimits | None = None
    """None: there are none."""
    buffers: BufferBudget = field(init=False)
    """Bytes of bodies that are held in memory."""
    first_look_s: float = field(init=False)
    """How long after an answer a connection that rests is looked at, whether its client has taken everything."""
    rules: RequestRules = field(init=False)
    """What requests' headers are special."""

    def __post_init__(self) -> None:
        config = self.config
        self.first_look_s = min(config.idle_timeout_s, config.body_timeout_s) / 4
        self.buffers = BufferBudget(config.max_buffered_bytes)
        self.rules = RequestRules(config.underscore_names, config.real_ip_header)
        if config.trust_forwarded or config.trusted_proxies:
            self.trusted = TrustedPeers(config)
        if config.max_connections is not None or config.max_connections_per_client is not None:
            self.limits = ConnectionLimits(config.max_connections, config.max_connections_per_client)

    def forget(self, connection: "ClientConnection | Http2Connection") -> None:
        """Take a connection off the list, as it closed."""
        if self.limits is not None and connection in self.connections:
            self.limits.leave(connection.peer)
        self.connections.discard(connection)
        if self.draining and not self.connections:
            self.emptied.set()
