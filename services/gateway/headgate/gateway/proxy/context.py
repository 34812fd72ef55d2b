"""What all connections of one port share."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Protocol

from headgate.gateway.counting.tally import Tally
from headgate.gateway.model.memory_budget import MemoryBudget
from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.connection_limits import ConnectionLimits
from headgate.gateway.proxy.exchange.buffers import body_budget
from headgate.gateway.proxy.heads.origin import TrustedPeers
from headgate.gateway.proxy.heads.special_fields import RequestRules
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.reports import RequestLog, Tracing
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.proxy.short_deadlines import ShortDeadlines
from headgate.gateway.proxy.stats import ProxyStats


class Connection(Protocol):
    """A client's connection: of HTTP/1.1, HTTP/2 or HTTP/3."""

    deadline: float
    """Coarse monotonic time at which `timed_out` is called."""
    peer: Peer

    def timed_out(self) -> None:
        """Look what is late."""

    def announce_drain(self) -> None:
        """Tell the client that requests should go elsewhere, where its protocol has a word for that."""

    def drain(self) -> None:
        """Close, if it rests."""

    def abort(self) -> None:
        """Close at once."""


@dataclass(slots=True)
class ProxyContext:
    """Handed to every connection; the set of connections and `draining` are the only things that change."""

    holder: RouterHolder
    config: ProxyConfig
    stats: ProxyStats
    access_log: RequestLog | None
    clock: Clock
    outbox: Outbox
    short_deadlines: ShortDeadlines = field(default_factory=ShortDeadlines)
    connections: set[Connection] = field(default_factory=set)
    tracing: Tracing | None = None
    """None: no request is traced."""
    times_endpoints: bool = False
    """Measure for every request how long its endpoint takes to answer, as the access log wants to say so."""
    alt_svc: bytes = b""
    """Header line that offers clients of TLS the same port by HTTP/3 (RFC 7838); empty: it does not speak that."""
    draining: bool = False
    """Every answer closes its connection."""
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last connection closes while draining."""
    trusted: TrustedPeers | None = None
    """None: there are none."""
    clients: Tally | None = None
    """Where connections of an address are counted; None: with this worker alone."""
    limits: ConnectionLimits | None = None
    """None: there are none."""
    buffers: MemoryBudget = field(init=False)
    """Bytes of bodies that are held in memory."""
    first_look_s: float = field(init=False)
    """How long after an answer a connection that rests is looked at, whether its client has taken everything."""
    rules: RequestRules = field(init=False)
    """What requests' headers are special."""

    def __post_init__(self) -> None:
        config = self.config
        self.first_look_s = min(config.idle_timeout_s, config.body_timeout_s) / 4
        self.buffers = body_budget(config.max_buffered_bytes)
        self.rules = RequestRules(config.underscore_names, config.real_ip_header)
        believes = config.forwarded_address or config.forwarded_headers
        if believes and (config.trust_forwarded or config.trusted_proxies):
            self.trusted = TrustedPeers(config)
        if config.max_connections is not None or config.max_connections_per_client is not None:
            self.limits = ConnectionLimits(config.max_connections, config.max_connections_per_client, self.clients)

    def beside(self, holder: RouterHolder, config: ProxyConfig) -> "ProxyContext":
        """Return the context of another port of the same server: what bounds both together is shared."""
        other = replace(
            self,
            holder=holder,
            config=config,
            connections=set(),
            emptied=asyncio.Event(),
            alt_svc=b"",
            trusted=None,
            limits=None,
        )
        other.limits = self.limits
        other.buffers = self.buffers
        return other

    def forget(self, connection: Connection) -> None:
        """Take a connection off the list, as it closed."""
        if self.limits is not None and connection in self.connections:
            self.limits.leave(connection.peer)
        self.connections.discard(connection)
        if self.draining and not self.connections:
            self.emptied.set()
