"""Stream routes as connections use them.

A connection keeps the route that it began with, whatever is swapped in meanwhile; endpoints are found through upstream
holders, as for requests.
"""

from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Literal, NamedTuple

from headgate.common.table import BackendProtocol, StreamRoute, Upstream
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.tls.backend import BackendContext, BackendContexts
from headgate.gateway.tls.errors import TlsConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headgate.gateway.proxy.pool import EndpointPool
    from headgate.gateway.proxy.seam import RequestSource

Network = IPv4Network | IPv6Network


class CompiledStream:
    """A stream route, bound to the holders of its upstreams.

    Args:
        entry: the route.
        find_holder: finds the holder of an upstream key.
        backends: by upstream key, kept up to date by the compiler; upstreams that it lacks are spoken to plainly.
        offset: how many turns the split begins with.
    """

    __slots__ = ("__weakref__", "_backends", "_split", "entry", "networks", "problem")

    def __init__(
        self,
        entry: StreamRoute,
        find_holder: "Callable[[str], UpstreamHolder]",
        backends: "Mapping[str, StreamBackend]",
        offset: int = 0,
    ) -> None:
        self.entry = entry
        self._backends = backends
        self._split = SmoothRoundRobin(
            ((find_holder(backend.upstream), backend.weight) for backend in entry.backends), offset
        )
        self.problem = ""
        """Why the route refuses every connection, naming the field; empty if it does not."""
        self.networks: tuple[Network, ...] = ()
        try:
            self.networks = parse_networks(entry.allowed_networks)
        except ValueError as error:
            self.problem = f"{entry.provenance}: allowed_networks: {error}"

    def allows(self, address: str) -> bool:
        """Tell whether a client may connect."""
        return not self.networks or is_within(address, self.networks)

    def choose_upstream(self) -> UpstreamHolder | None:
        """Choose by weight; None if all backends have weight 0. As for requests, nobody takes over another's share."""
        return self._split.choose()

    def backend(self, holder: UpstreamHolder) -> "StreamBackend":
        """Return how the endpoints of an upstream are spoken with, as the current table says."""
        return self._backends.get(holder.key, PLAIN)


def choose_endpoint(
    holder: UpstreamHolder, tried: "Collection[EndpointPool]", source: "RequestSource"
) -> "EndpointPool | None":
    """Return the next endpoint of an upstream that was not tried; None if there is none."""
    pool = holder.balancer.choose(tried, source)
    return None if pool in tried else pool


def parse_networks(texts: Collection[str]) -> tuple[Network, ...]:
    """Read networks in CIDR notation, host bits allowed. Raises ValueError with the wrong one."""
    return tuple(ip_network(text, strict=False) for text in texts)


def is_within(address: str, networks: Collection[Network]) -> bool:
    """Tell whether an address is in one of the networks."""
    parsed = ip_address(address.partition("%")[0])
    return any(parsed in network for network in networks)


class StreamBackend(NamedTuple):
    """How streams speak with the endpoints of one upstream."""

    proxy_protocol: Literal[1, 2] | None = None
    tls: BackendContext | None = None
    """None: plain."""
    problem: str = ""
    """Why they cannot be spoken with; empty if they can."""


PLAIN = StreamBackend()


def compile_backend(upstream: Upstream, contexts: BackendContexts) -> StreamBackend:
    """Read what concerns streams from an upstream."""
    try:
        tls = contexts.backend_context(upstream) if upstream.protocol is BackendProtocol.TLS else None
    except TlsConfigError as error:
        return StreamBackend(problem=f"{upstream.provenance}: {error}")
    return StreamBackend(upstream.proxy_protocol, tls) if upstream.proxy_protocol or tls else PLAIN
