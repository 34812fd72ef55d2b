"""What one object contributes to the table: the dialects' common output and the assembly's input."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.status import ListenerReport, LoadBalancerAddress
from headgate.common.table import (
    BackendGroup,
    Canary,
    Consumer,
    ConsumerGroup,
    Listener,
    PathMatch,
    PluginUse,
    Route,
    StreamRoute,
    TlsPolicy,
    Unmatched,
)
from headgate.translator.fragments.own_addresses import place_of
from headgate.translator.fragments.status_part import SaidCondition, StatusPart
from headgate.translator.fragments.upstream_refs import UpstreamRef
from headgate.translator.world.last_good import ObjectVersions, VersionId


class CertificateRef(NamedTuple):
    """A TLS Secret, or a certificate that is ordered by ACME."""

    cluster: str
    namespace: str
    secret: str
    resolver: str = ""
    """Who is asked for it, where it is no Secret: the cluster is `ACME_CLUSTER` then, the namespace is the table."""
    names: tuple[str, ...] = ()
    """That it is ordered for."""

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
    generation: int = 0
    """`metadata.generation` of its present version; 0 where versions are not counted."""

    @property
    def seniority(self) -> Seniority:
        """Place of the object among those that claim the same."""
        return Seniority(self.created_at, self.ref.namespace, self.ref.name, self.ref.cluster)


class RouteClaim(NamedTuple):
    """A route that an object wants at a host."""

    host: str
    """The host, or the host on some listeners as `HostKey` writes it. All claims and hosts of fragments are so."""
    route: Route
    field: str
    """Where the path was written."""
    is_refused: bool = False
    """Answers 503 whatever the request: no canary takes a part of it."""
    is_alias: bool = False
    """Counts only as long as no object has the host as its own."""
    when_secured: tuple[PluginUse, ...] = ()
    """Plugins that the route has besides while the host has TLS: of the host's owner or of the object's namespace."""
    is_rest: bool = False
    """Answers what no route of the host takes. That of the owner's oldest object counts, which is no loss to others; it
    is served if it has plugins or backends."""
    is_for_all: bool = False
    """It is the operator's, so that it counts for the rest of a host whoever owns it."""


class CanaryClaim(NamedTuple):
    """A part of the requests of other objects' routes that an object wants."""

    host: str
    path: PathMatch
    canary: Canary
    field: str
    """Where the path was written."""
    is_alias: bool = False
    """Counts only for routes that are there as an alias."""


class TlsClaim(NamedTuple):
    """How an object wants TLS to be spoken for a host."""

    host: str
    policy: TlsPolicy | None
    """None: that of hosts of which nothing is said."""
    field: str
    is_default: bool = False
    """The object itself says nothing of it: counts only as long as no other one does."""
    is_alias: bool = False
    """Counts only as long as no object has the host as its own."""
    must_agree: bool = False
    """Counts only as long as no other such claim says something else."""


class StreamClaim(NamedTuple):
    """A port, or some server names of one, that an object wants."""

    route: StreamRoute
    field: str
    is_refused: bool = False
    """Whether it refuses its connections, as something of it cannot be followed."""
    precedence: int = 0
    """Those of more go before others that want the same, whatever the objects' age."""
    gives_way: bool = False
    """Whether server names that are those of hosts over TLS on the port are left to these."""

    @property
    def port(self) -> "StreamPort":
        """The port that it is about."""
        return StreamPort(self.route.protocol == "udp", self.route.port, place_of(self.route.listener))


class StreamPort(NamedTuple):
    """A port of the gateways."""

    is_udp: bool
    port: int
    """0 for the HTTPS port."""
    place: str = ""
    """Of addresses that are an object's own, as `place_of` gives it."""


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
    may_be_empty: bool = False
    """Whether a Service without ready endpoints is as it should be, and is not reported."""


class InnerClaim(NamedTuple):
    """A route of the object that requests come to by routes of others alone, and that is none of the table."""

    field: str
    is_refused: bool = False


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
    certificates: tuple[CertificateRef, ...] = ()
    """That listeners of its own name, whatever server names they are presented for elsewhere."""
    canaries: tuple[CanaryClaim, ...] = ()
    tls: tuple[TlsClaim, ...] = ()
    streams: tuple[StreamClaim, ...] = ()
    inner: tuple[InnerClaim, ...] = ()
    entries: tuple[Consumer | ConsumerGroup | Listener | BackendGroup, ...] = ()
    """Entries that no other object can claim, as their keys have the object's name in them."""
    problems: tuple[Problem, ...] = ()
    errors: tuple[Problem, ...] = ()
    """Those of the problems that its present version has by itself."""
    unmatched: Unmatched = "404"
    """Requests for its hosts that no route takes go to the next host only if all objects that speak of the host say
    so."""
    inherits_tls: bool = False
    """TLS that is set for a wildcard holds for its hosts too, if nothing is set for them."""
    secures_hosts: bool = False
    """It has TLS for its hosts, and for those that its wildcards take: see `RouteClaim.when_secured`."""
    settles_tls: bool = False
    """It says all that is asked of clients at the names of its certificates: no wildcard's TLS holds for them."""
    shares_hosts_with: tuple[str, ...] = ()
    """Namespaces, or `cluster/namespace`, that count as this object's own where its namespace owns a host."""
    shares_routes_with: tuple[str, ...] = ()
    """The same for objects of this one's API group alone: others of these namespaces stay guests."""
    own_listeners: tuple[Listener, ...] = ()
    """What it says of listeners that objects share: the gateways' own, and those of a port. Of several objects that say
    something of one the oldest counts."""
    global_plugins: tuple[PluginUse, ...] = ()
    """For the requests of all routes of the table."""
    said: tuple[SaidCondition, ...] = ()
    """Conditions of the object as a whole, in the place of those that follow from its problems and beside them."""
    parts: tuple[StatusPart, ...] = ()
    """What has conditions of its own in its status."""
    listener_reports: tuple[ListenerReport, ...] = ()
    """What its status says of its listeners."""
    features: tuple[str, ...] = ()
    """That its status lists as supported."""
    attached_listener_sets: int = 0
    """ListenerSets that are accepted at it, if it is a Gateway."""
    stand_in: VersionId | None = None
    """Version that all of this comes from, if it is not the present one."""
    addresses: tuple[LoadBalancerAddress, ...] | None = None
    """That its status shows; None: those of the table's gateways."""
    leaves_addresses: bool = False
    """Another controller still writes the addresses of its status."""


def with_versions(fragment: Fragment, versions: ObjectVersions) -> Fragment:
    """Return what an object contributes by the version that is served, with what has to be said of its present one."""
    version, errors, good = versions.present.version, versions.errors, versions.good
    known = fragment.identity
    is_same = (known.uid, known.generation) == (version.uid, version.generation)
    identity = known if is_same else replace(known, uid=version.uid, generation=version.generation)
    if not errors:
        return fragment if is_same else replace(fragment, identity=identity)
    if good is None:
        return replace(fragment, identity=identity, problems=_union(fragment.problems, errors), errors=errors)
    kept = Problem(
        severity=Severity.WARNING,
        reason="LastGoodServed",
        message=f"this version is not served; {good.version} goes on being served until it is mended or deleted",
    )
    return replace(
        fragment,
        identity=identity,
        problems=_union((*errors, kept), fragment.problems),
        errors=errors,
        stand_in=good.version,
    )


def _union(*several: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple(dict.fromkeys(problem for problems in several for problem in problems))
