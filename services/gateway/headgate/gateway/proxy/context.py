"""What all connections of one `ProxyServer` share."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.seam import RequestLog, RouterHolder
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
    draining: bool = False
    """Every answer closes its connection."""
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last connection closes while draining."""

    def forget(self, connection: "ClientConnection | Http2Connection") -> None:
        """Take a connection off the list, as it closed."""
        self.connections.discard(connection)
        if self.draining and not self.connections:
            self.emptied.set()
