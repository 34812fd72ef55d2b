"""The server that a `forwardAuth` with TLS of its own asks, as an upstream of the table."""

from dataclasses import dataclass, field

from headgate.common.table import BackendProtocol, BackendTls, Endpoint, Provenance, Upstream
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.upstreams.resolution import ResolvedUpstream
from headgate.translator.world.graph import Lookups


@dataclass(frozen=True, slots=True)
class AuthServer:
    """An address outside, of one Middleware."""

    cluster: str
    namespace: str
    name: str
    """Of the Middleware."""
    address: str
    server_port: int
    host: str
    """Sent as `Host`."""
    protocol: BackendProtocol
    tls: BackendTls | None = field(hash=False)

    @property
    def kind(self) -> str:
        """Kind of the object that it is made of."""
        return "Middleware"

    @property
    def port(self) -> None:
        """It is no port of a Service."""
        return None

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        return str(UpstreamKey(self.cluster, self.namespace, self.name, self.kind))

    def resolve(self, lookups: Lookups) -> ResolvedUpstream:
        """Return the upstream: all of it is known."""
        entry = Upstream(
            key=self.key,
            endpoints=(Endpoint(address=self.address, port=self.server_port, cluster=self.cluster),),
            protocol=self.protocol,
            tls=self.tls,
            host=self.host,
            provenance=Provenance(
                cluster=self.cluster, kind=self.kind, namespace=self.namespace, name=self.name, rule="forwardAuth"
            ),
        )
        return ResolvedUpstream(entry, None)

    def resolve_endpoints(self, lookups: Lookups) -> ResolvedUpstream:
        """Return the same."""
        return self.resolve(lookups)
