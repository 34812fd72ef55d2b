"""What one object contributes to the table: the dialects' common output and the assembly's input."""

from dataclasses import dataclass
from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import Route


class ServicePortRef(NamedTuple):
    """A port of a Service as a route refers to it."""

    cluster: str
    namespace: str
    service: str
    port: int | str
    """By number or by name; a name has a letter in it, so the two are never mistaken for each other."""

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        return f"{self.cluster}/{self.namespace}/{self.service}:{self.port}"


class ResourceRef(NamedTuple):
    """A backend that is not a Service: routes to it answer 503 and say so."""

    cluster: str
    namespace: str
    api_group: str
    kind: str
    name: str

    @property
    def key(self) -> str:
        """Key of the upstream in the table; the second slash tells it from a Service's."""
        kind = f"{self.kind}.{self.api_group}" if self.api_group else self.kind
        return f"{self.cluster}/{self.namespace}/{kind}/{self.name}"


UpstreamRef = ServicePortRef | ResourceRef


class CertificateRef(NamedTuple):
    """A TLS Secret."""

    cluster: str
    namespace: str
    secret: str

    @property
    def key(self) -> str:
        """Key of the certificate in the table."""
        return f"{self.cluster}/{self.namespace}/{self.secret}"


class Seniority(NamedTuple):
    """Order of objects in conflicts: the least wins, so the oldest, then by namespace, name and cluster."""

    created_at: str
    """As `manifest.creation_time` gives it."""
    namespace: str
    name: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object a fragment comes from, as status writers need to know it."""

    ref: ObjectRef
    api_version: str
    kind: str
    uid: str
    created_at: str = ""

    @property
    def seniority(self) -> Seniority:
        """Place of the object among those that claim the same."""
        return Seniority(self.created_at, self.ref.namespace, self.ref.name, self.ref.cluster)


class RouteClaim(NamedTuple):
    """A route that an object wants at a host."""

    host: str
    route: Route
    field: str
    """Where the path was written."""
    is_default: bool = False
    """Gives way to every claim of the same path that is not, whatever the objects' age."""


class NameClaim(NamedTuple):
    """A server name for which an object wants its certificate presented."""

    name: str
    certificate: CertificateRef
    field: str


class BackendUse(NamedTuple):
    """Where an object refers to an upstream, so that what is wrong with it is said at the right field."""

    upstream: UpstreamRef
    name_field: str
    port_field: str


@dataclass(frozen=True, slots=True)
class Fragment:
    """The contribution of one object that is ours."""

    identity: Identity
    hosts: tuple[str, ...] = ()
    """Hosts that exist because of this object, also where none of its routes can be served: they answer 404 rather than
    let another host's routes take their requests."""
    routes: tuple[RouteClaim, ...] = ()
    backends: tuple[BackendUse, ...] = ()
    names: tuple[NameClaim, ...] = ()
    problems: tuple[Problem, ...] = ()
