"""The route table's vocabulary: what every dialect translates into and what gateways compile.

A table is a set of entries of a few kinds, each with a key of its own. Endpoints live in `Upstream` entries only, so
endpoint churn never touches a route. Values are frozen and hold no reference to each other except by key.

Grows with the data plane: what is here is served today.
"""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from headgate.common.sealing import SealedValue

DEFAULT_TABLE = "default"
ANY_HOST = "*"


class Entry(BaseModel):
    """Base of all table values."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Provenance(Entry):
    """The object, and the place in it, that an entry comes from."""

    cluster: str
    kind: str
    namespace: str
    name: str
    rule: str = ""
    """Field path within the object: `spec.rules[0].http.paths[1]`."""
    resource_version: str = ""

    def __str__(self) -> str:
        where = f"{self.kind} {self.namespace}/{self.name}"
        return f"{where} {self.rule}" if self.rule else where


class PathType(StrEnum):
    """How a path is compared with the request's path, after percent-decoding of neither."""

    EXACT = "exact"
    """Byte-equal."""
    PREFIX = "prefix"
    """Element-wise on `/`; a trailing slash is ignored on both sides (Kubernetes `Prefix`)."""


class PathMatch(Entry):
    """Which request paths a route takes."""

    type: PathType
    value: str


class WeightedBackend(Entry):
    """One choice of a route's split."""

    upstream: str
    """Key of an `Upstream` entry."""
    weight: int = Field(default=1, ge=0, le=1_000_000)


class Timeouts(Entry):
    """Seconds; None leaves the gateway's own setting in force."""

    connect_s: float | None = Field(default=None, gt=0)
    send_s: float | None = Field(default=None, gt=0)
    """Between two successful writes to the upstream."""
    read_s: float | None = Field(default=None, gt=0)
    """Between two successful reads from the upstream."""


class Route(Entry):
    """What happens to the requests of one host that match.

    Of the routes of a virtual host that match a request the first in this order wins: exact before prefix, longer
    path, position in `VirtualHost.routes`.
    """

    name: str
    """Unique within the virtual host and stable over revisions."""
    path: PathMatch
    backends: tuple[WeightedBackend, ...] = Field(min_length=1)
    timeouts: Timeouts = Timeouts()
    provenance: Provenance


class VirtualHost(Entry):
    """The routes of one host.

    The host is decided first, then the path: a path that no route of the matched host takes is a 404, never another
    host's business. Exact hosts go before wildcards; of wildcards the longer suffix goes first.
    """

    host: str
    """Lower case. `foo.com`; `*.foo.com` for exactly one more label; `*` for requests that no other host takes."""
    routes: tuple[Route, ...]


class BackendProtocol(StrEnum):
    """What a gateway speaks with an endpoint."""

    HTTP = "http"
    HTTPS = "https"


class Endpoint(Entry):
    """One address that answers for an upstream."""

    address: str
    """IPv4 or IPv6 address, or a DNS name that the gateway resolves."""
    port: int = Field(ge=1, le=65535)
    weight: int = Field(default=1, ge=0, le=65535)
    zone: str = ""
    cluster: str = ""
    ready: bool = True
    serving: bool = True
    """May still answer although not ready, as a terminating pod that drains."""
    terminating: bool = False


class Upstream(Entry):
    """A group of endpoints, as one port of a Service is."""

    key: str
    """Unique in the table: `<cluster>/<namespace>/<service>:<port as referred to>`."""
    protocol: BackendProtocol = BackendProtocol.HTTP
    endpoints: tuple[Endpoint, ...] = ()
    """Sorted by address and port."""
    unavailable: str | None = None
    """Why there is nothing to send to, for the 503's log line and header: `Service default/web not found`."""
    provenance: Provenance


class Certificate(Entry):
    """A TLS certificate, its sealed key and the server names that it is presented for."""

    key: str
    """Unique in the table: `<cluster>/<namespace>/<secret>`."""
    server_names: tuple[str, ...]
    """Lower case, sorted; `*.foo.com` for exactly one more label."""
    chain_pem: str
    private_key: SealedValue
    fingerprint: str
    not_after: str = ""
    """RFC 3339."""
    provenance: Provenance


EntryKind = Literal["hosts", "upstreams", "certificates"]
ENTRY_KINDS: tuple[EntryKind, ...] = ("hosts", "upstreams", "certificates")
TableEntry = VirtualHost | Upstream | Certificate

ENTRY_TYPES: dict[EntryKind, type[VirtualHost] | type[Upstream] | type[Certificate]] = {
    "hosts": VirtualHost,
    "upstreams": Upstream,
    "certificates": Certificate,
}


def entry_key(entry: TableEntry) -> str:
    """Key of an entry among those of its kind."""
    return entry.host if isinstance(entry, VirtualHost) else entry.key


def entry_kind(entry: TableEntry) -> EntryKind:
    """Kind that an entry belongs to."""
    match entry:
        case VirtualHost():
            return "hosts"
        case Upstream():
            return "upstreams"
        case Certificate():
            return "certificates"
