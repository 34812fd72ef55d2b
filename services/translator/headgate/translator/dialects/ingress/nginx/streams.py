"""Ports that a `stream-snippet` opens, of an Ingress or of the ConfigMap, and where their connections go."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headgate.common.resources import ObjectRef
from headgate.common.table import BackendProtocol, Endpoint, Provenance, StreamRoute, Upstream, WeightedUpstream
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.fragments.fragment import BackendUse, StreamClaim
from headgate.translator.snippets.streams import StreamServer, Target
from headgate.translator.upstreams.resolution import ResolvedUpstream
from headgate.translator.world.graph import Lookups

_PROXY_VERSION: Final = 1
"""nginx' own."""


class StreamTargets(NamedTuple):
    """Addresses that a snippet names: an upstream without a Service. Names are looked up by gateways."""

    cluster: str
    kind: str
    namespace: str
    name: str
    targets: tuple[Target, ...]
    is_udp: bool
    sends_proxy_header: bool

    @property
    def port(self) -> None:
        """It is no port of a Service."""
        return None

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        said = repr((self.targets, self.is_udp, self.sends_proxy_header)).encode()
        variant = ("stream", hashlib.blake2b(said, digest_size=9).hexdigest())
        return str(UpstreamKey(self.cluster, self.namespace, self.name, self.kind, variant=variant))

    def resolve(self, lookups: Lookups) -> ResolvedUpstream:
        """Return the addresses."""
        endpoints = tuple(Endpoint(address=each.address, port=each.port, weight=each.weight) for each in self.targets)
        entry = Upstream(
            key=self.key,
            protocol=BackendProtocol.UDP if self.is_udp else BackendProtocol.TCP,
            endpoints=tuple(sorted(endpoints, key=lambda endpoint: (endpoint.address, endpoint.port))),
            proxy_protocol=_PROXY_VERSION if self.sends_proxy_header else None,
            provenance=Provenance(cluster=self.cluster, kind=self.kind, namespace=self.namespace, name=self.name),
        )
        return ResolvedUpstream(entry, None)

    def resolve_endpoints(self, lookups: Lookups) -> ResolvedUpstream:
        """Return the same: no object has other ones."""
        return self.resolve(lookups)


def stream_claims(
    ref: ObjectRef, kind: str, field: str, servers: Iterable[StreamServer]
) -> Iterator[tuple[BackendUse, StreamClaim]]:
    """Yield the ports of a snippet, which is written in a field of an object."""
    for server in servers:
        protocol = BackendProtocol.UDP if server.is_udp else BackendProtocol.TCP
        sends = server.sends_proxy_header and not server.is_udp
        upstream = StreamTargets(ref.cluster, kind, ref.namespace, ref.name, server.targets, server.is_udp, sends)
        route = StreamRoute(
            key=f"{ref.cluster}/{ref.namespace}/{kind}/{ref.name}:{server.port}/{protocol}",
            protocol="udp" if server.is_udp else "tcp",
            port=server.port,
            backends=(WeightedUpstream(upstream=upstream.key),),
            accept_proxy_protocol=server.takes_proxy_header and not server.is_udp,
            allowed_networks=server.networks,
            connect_timeout_s=server.connect_timeout_s,
            idle_timeout_s=server.idle_timeout_s,
            udp_responses=server.udp_responses if server.is_udp else None,
            provenance=Provenance(cluster=ref.cluster, kind=kind, namespace=ref.namespace, name=ref.name, rule=field),
        )
        yield BackendUse(upstream, field, field), StreamClaim(route, field)
