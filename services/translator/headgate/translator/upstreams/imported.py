"""A port of a ServiceImport."""

from typing import Final, NamedTuple

from headgate.common.resources import SERVICE_IMPORT
from headgate.common.table import BackendProtocol
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.upstreams.overridden import stream_of
from headgate.translator.upstreams.resolution import ResolvedUpstream, resolve_import
from headgate.translator.world.graph import Lookups

_KIND: Final = f"{SERVICE_IMPORT.kind}.{SERVICE_IMPORT.group}"


class ImportedService(NamedTuple):
    """A port of a ServiceImport, perhaps with the protocol that is spoken there whatever the port says."""

    cluster: str
    namespace: str
    name: str
    port: int
    protocol: BackendProtocol | None = None

    @property
    def kind(self) -> str:
        """Kind of the object that it is made of."""
        return SERVICE_IMPORT.kind

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        variant = (str(self.port), *((str(self.protocol),) if self.protocol is not None else ()))
        return str(UpstreamKey(self.cluster, self.namespace, self.name, _KIND, variant=variant))

    @classmethod
    def of_key(cls, key: UpstreamKey) -> "ImportedService | None":
        """Return the reference with this key, if it is of this kind."""
        port, *rest = key.variant or ("",)
        if key.kind != _KIND or not port.isdecimal():
            return None
        protocol = BackendProtocol(rest[0]) if rest else None
        return cls(key.cluster, key.namespace, key.name, int(port), protocol)

    def resolve(self, lookups: Lookups) -> ResolvedUpstream:
        """Find the endpoints."""
        resolved = resolve_import(lookups, self, self.port, stream_of(self.protocol))
        if self.protocol is None:
            return resolved
        return resolved._replace(entry=resolved.entry.model_copy(update={"protocol": self.protocol}))

    def resolve_endpoints(self, lookups: Lookups) -> ResolvedUpstream:
        """Find the endpoints."""
        return self.resolve(lookups)
