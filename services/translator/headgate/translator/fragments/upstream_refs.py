"""References to upstreams: an object refers to an upstream by a value, and the table by its key."""

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from headgate.common.table.upstream_key import UpstreamKey

if TYPE_CHECKING:
    from headgate.translator.upstreams.resolution import ResolvedUpstream
    from headgate.translator.world.graph import Lookups

Stream = Literal["", "tcp", "udp", "tls"]


class ServicePortRef(NamedTuple):
    """A port of a Service as a route refers to it."""

    cluster: str
    namespace: str
    service: str
    port: int | str
    """By number or by name."""
    stream: Stream = ""
    """For stream routes, what is spoken with the endpoints."""

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        # Every route of every table asks for it.
        key = f"{self.cluster}/{self.namespace}/{self.service}:{self.port}"
        return f"{key}/{self.stream}" if self.stream else key

    @classmethod
    def of_key(cls, key: UpstreamKey) -> "ServicePortRef | None":
        """Return the reference with this key, if it is of this kind."""
        if key.port is None or len(key.variant) > 1:
            return None
        stream = key.variant[0] if key.variant else ""
        if stream not in get_args(Stream):
            return None
        return cls(key.cluster, key.namespace, key.name, key.port, stream)  # type: ignore[arg-type]


class ResourceRef(NamedTuple):
    """A backend that is not a Service. Routes to it answer 503 and say so, unless it stands for Services."""

    cluster: str
    namespace: str
    api_group: str
    kind: str
    name: str

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        kind = f"{self.kind}.{self.api_group}" if self.api_group else self.kind
        return str(UpstreamKey(self.cluster, self.namespace, self.name, kind))


class RefusalRef(NamedTuple):
    """The upstream without endpoints of an object whose requests must be refused."""

    cluster: str
    kind: str
    namespace: str
    name: str
    reason: str
    """The text of the 503."""

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        return str(UpstreamKey(self.cluster, self.namespace, self.name, self.kind, variant=("refused",)))


class DialectRef(Protocol):
    """An upstream that a dialect resolves by rules of its own; hashable, and equal to none with another key."""

    @property
    def cluster(self) -> str:
        """Cluster of the object that refers to it."""
        ...

    @property
    def kind(self) -> str:
        """Kind of the object that it is made of."""
        ...

    @property
    def namespace(self) -> str:
        """Namespace of that object."""
        ...

    @property
    def name(self) -> str:
        """Name of that object."""
        ...

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        ...

    @property
    def port(self) -> int | str | None:
        """Port of the Service that is meant, as it was written; None where it is none."""
        ...

    def __hash__(self) -> int: ...

    def resolve(self, lookups: "Lookups") -> "ResolvedUpstream":
        """Find what the table has under the key."""
        ...

    def resolve_endpoints(self, lookups: "Lookups") -> "ResolvedUpstream | None":
        """Find the endpoints that it has now, whatever its settings have become; None where those have to tell.

        A table that is held follows these, and keeps its own settings.
        """
        ...


UpstreamRef = ServicePortRef | ResourceRef | RefusalRef | DialectRef
