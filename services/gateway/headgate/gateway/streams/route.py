"""Stream routes as connections use them.

A connection keeps the route that it began with, whatever is swapped in meanwhile; endpoints are found through upstream
holders, as for requests.
"""

import ssl
from collections.abc import Collection
from typing import TYPE_CHECKING

from headgate.common.table import StreamRoute
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.networks import Network, is_within, parse_networks
from headgate.gateway.streams.conditions import Asked, Decide, compile_condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.request_source import RequestSource
    from headgate.gateway.tls.policy import HostTls


class CompiledStream:
    """A stream route, bound to the holders of its upstreams.

    Args:
        entry: the route.
        find_holder: finds the holder of an upstream key.
        offset: how many turns the split begins with.
        tls: how TLS is spoken where it ends here; None: as the gateway thinks right.
    """

    __slots__ = ("__weakref__", "_decide", "_split", "entry", "networks", "problem", "server_tls", "tls")

    def __init__(
        self,
        entry: StreamRoute,
        find_holder: "Callable[[str], UpstreamHolder]",
        offset: int = 0,
        tls: "HostTls | None" = None,
    ) -> None:
        self.entry = entry
        self.tls = tls
        self.server_tls: ssl.SSLContext | None = None
        """Made of `tls` by the first connection."""
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
        if tls is not None and tls.problem:
            self.problem = f"{entry.provenance}: {tls.problem}"
        self._decide: Decide | None = None
        try:
            self._decide = compile_condition(entry.when) if entry.when is not None else None
        except BadMatch as bad:
            self.problem = f"{entry.provenance}: {bad}"

    def takes(self, asked: Asked) -> bool:
        """Tell whether a connection satisfies what the route asks besides its server names."""
        offered = self.entry.alpn
        if offered and not any(each in asked.alpn for each in offered):
            return False
        return self._decide is None or self._decide(asked)

    def allows(self, address: str) -> bool:
        """Tell whether a client may connect."""
        return not self.networks or is_within(address, self.networks)

    def choose_upstream(self) -> UpstreamHolder | None:
        """Choose by weight; None if all backends have weight 0. As for requests, nobody takes over another's share."""
        return self._split.choose()


def choose_endpoint(
    holder: UpstreamHolder, tried: "Collection[EndpointPool]", source: "RequestSource"
) -> "EndpointPool | None":
    """Return the next endpoint of an upstream that was not tried; None if there is none."""
    pool = holder.balancer.choose(tried, source)
    return None if pool in tried else pool
