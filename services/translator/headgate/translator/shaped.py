"""A port of a Service that is spoken to in another way than its own objects say."""

from typing import NamedTuple

from headgate.common.table import BackendProtocol
from headgate.translator.fragment import ServicePortRef
from headgate.translator.graph import Lookups
from headgate.translator.upstreams import ResolvedUpstream, resolve_upstream


class ShapedService(NamedTuple):
    """A port of a Service with a protocol that whoever refers to it chose."""

    cluster: str
    namespace: str
    name: str
    port: int | str
    protocol: BackendProtocol

    @property
    def kind(self) -> str:
        """Kind of the object that it is made of."""
        return "Service"

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        return f"{self.cluster}/{self.namespace}/{self.name}:{self.port}/as={self.protocol}"

    def resolve(self, lookups: Lookups) -> ResolvedUpstream:
        """Find the endpoints."""
        resolved = resolve_upstream(lookups, ServicePortRef(self.cluster, self.namespace, self.name, self.port))
        entry = resolved.entry.model_copy(update={"key": self.key, "protocol": self.protocol})
        return ResolvedUpstream(entry, resolved.fault)
