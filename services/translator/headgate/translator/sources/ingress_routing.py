"""How another dialect reads an Ingress that is written for its controller: where its routes are, what they take and do.

The dialect of Ingresses asks, with what the object says, and the other one answers with routes in the table's
vocabulary. Backends, certificates and everything else stay as for all Ingresses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.table import Condition, PathMatch, TlsPolicy
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.fragments.spots import Spot
from headgate.translator.fragments.upstream_refs import UpstreamRef
from headgate.translator.manifests.patches import NO_ROUTE_PATCH, RoutePatch
from headgate.translator.world.attachments import AttachmentPoint


class IngressPath(NamedTuple):
    """A path of an Ingress, as it is written."""

    field: str
    host: str
    path: str
    type: str
    service: str
    port: int | str
    """0 without a Service."""


class RoutingQuestion(NamedTuple):
    """An Ingress."""

    namespace: str
    annotations: tuple[tuple[str, Any], ...]
    """Those of the controller."""
    paths: tuple[IngressPath, ...]


class RoutePlace(NamedTuple):
    """What a route takes."""

    host: str
    path: PathMatch
    when: Condition | None


@dataclass(frozen=True, slots=True)
class PathRouting:
    """What becomes of the requests of a path."""

    places: tuple[RoutePlace, ...]
    priority: int
    patch: RoutePatch = NO_ROUTE_PATCH
    upstream: UpstreamRef | None = None
    refusal: str = ""
    """Why its requests are refused."""
    is_dropped: bool = False
    """Whether it has no route at all."""


@dataclass(frozen=True, slots=True)
class IngressRouting:
    """What becomes of an Ingress at one spot."""

    spot: Spot | None
    """None: nowhere."""
    paths: Mapping[str, PathRouting]
    """By their fields."""
    patch: RoutePatch
    """For all of its routes."""
    refusal: str = ""
    """Why all requests are refused."""
    tls: TlsPolicy | None = None
    """For its hosts."""
    tls_field: str = ""
    resolver: str = ""
    """Who is asked for certificates; empty for none."""
    resolver_field: str = ""
    domains: tuple[tuple[str, ...], ...] = ()
    """Names of each of them; none: those of the hosts."""
    uses: tuple[BackendUse, ...] = ()
    problems: tuple[Problem, ...] = ()


INGRESS_ROUTING: Final[AttachmentPoint[RoutingQuestion, tuple[IngressRouting, ...]]] = AttachmentPoint("routing", ())
