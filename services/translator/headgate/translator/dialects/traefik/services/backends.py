"""The services of a route as its backends: an upstream, or groups of backends for several and for TraefikServices.

In a group every service keeps its share: one that has no servers fails that share, and the others get no more than
theirs.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.resources.traefik import MIDDLEWARE
from headgate.common.table import Backend, BackendGroup, Provenance, Stickiness
from headgate.common.table.backend_group import Failover, Hashed, Weighted
from headgate.common.table.backend_group import Mirroring as MirroringGroup
from headgate.common.table.mirror import Mirror
from headgate.translator.dialects.traefik.document import TRAEFIK_SERVICES
from headgate.translator.dialects.traefik.middlewares.following import follow_middlewares
from headgate.translator.dialects.traefik.middlewares.onto_backend import onto_backend
from headgate.translator.dialects.traefik.middlewares.resending import ANY_LENGTH
from headgate.translator.dialects.traefik.models.service import LoadBalancer
from headgate.translator.dialects.traefik.models.traefik_service import Mirroring, TraefikServiceSpec
from headgate.translator.dialects.traefik.references import BadReference, Found, find_referenced, use_service
from headgate.translator.dialects.traefik.services.sticky import session_name, stickiness_of
from headgate.translator.dialects.traefik.services.traefik_service import failover_statuses, read_traefik_service
from headgate.translator.dialects.traefik.services.upstreams import BadService, upstream_of
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.world.graph import Lookups

_KINDS: Final = {MIDDLEWARE.resource: MIDDLEWARE.kind}
_MAX_WEIGHT: Final = 1_000_000
_MAX_NESTED: Final = 5
"""TraefikServices within each other; the table has groups of more levels."""
_MAX_SERVICES: Final = 512
"""That one route leads to."""


class RouteBackends(NamedTuple):
    """Where the requests of a route go."""

    backends: tuple[Backend, ...]
    stickiness: Stickiness | None = None
    """With the servers of the only service."""
    groups: tuple[BackendGroup, ...] = ()
    uses: tuple[BackendUse, ...] = ()
    keeps_body: int = 0
    """Bytes of a request's body that are kept, to send it again to a fallback."""


class _Child(NamedTuple):
    """One service, of a route or within a TraefikService."""

    backend: Backend
    stickiness: Stickiness | None = None
    """With the servers of a Service."""


class _Place(NamedTuple):
    """Where services are listed."""

    namespace: str
    key: str
    """That a group there has."""
    field: str
    """Of the route."""
    way: tuple[str, ...] = ()
    """TraefikServices on the way there."""

    def child(self, index: int, field: str = "") -> "_Place":
        return self._replace(key=f"{self.key}/{index}", field=field or self.field)


def read_backends(
    services: Sequence[LoadBalancer], ref: ObjectRef, name: str, field: str, lookups: Lookups, problems: list[Problem]
) -> RouteBackends | None:
    """Return where requests go; None if one of the services cannot be followed, which `problems` then say.

    Args:
        services: as the route has them.
        ref: the object.
        name: of the route, unique within the object.
        field: where the list stands.
        lookups: where Services, TraefikServices and middlewares are found.
        problems: gets what is wrong.
    """
    return _Reading(ref, lookups, problems).read(services, _place(ref, name, field))


def read_service(
    service: LoadBalancer, ref: ObjectRef, name: str, field: str, lookups: Lookups, problems: list[Problem]
) -> RouteBackends | None:
    """Return the same for the only service of a field; a TraefikService is a group with this name."""
    return _Reading(ref, lookups, problems).read_one(service, _place(ref, name, field))


def _place(ref: ObjectRef, name: str, field: str) -> _Place:
    return _Place(ref.namespace, f"{ref.cluster}/{ref.namespace}/{ref.resource}/{ref.name}/{name}", field)


class _Reading:
    """The services of one route, taken apart."""

    def __init__(self, ref: ObjectRef, lookups: Lookups, problems: list[Problem]) -> None:
        self._ref, self._lookups, self._problems = ref, lookups, problems
        self._groups: list[BackendGroup] = []
        self._uses: list[BackendUse] = []
        self._keeps_body = 0

    def read(self, services: Sequence[LoadBalancer], place: _Place) -> RouteBackends | None:
        found = [
            self._child(each, place.child(index, f"{place.field}[{index}]")) for index, each in enumerate(services)
        ]
        whole = [each for each in found if each is not None]
        if len(whole) < len(found):
            return None
        if len(whole) < 2:
            stickiness = whole[0].stickiness if whole else None
            return self._whole(tuple(each.backend for each in whole), stickiness)
        backends = self._in_group(whole, place)
        return self._whole((self._add(place, weighted=Weighted(backends=backends)),), None)

    def read_one(self, written: LoadBalancer, place: _Place) -> RouteBackends | None:
        child = self._child(written, place)
        return self._whole((child.backend,), child.stickiness) if child is not None else None

    def _whole(self, backends: tuple[Backend, ...], stickiness: Stickiness | None) -> RouteBackends:
        return RouteBackends(backends, stickiness, (*self._groups,), (*self._uses,), self._keeps_body)

    def _child(self, written: LoadBalancer, place: _Place) -> _Child | None:
        field = place.field
        try:
            return self._traefik_service(written, place) if _is_group(written) else self._service(written, place)
        except BadReference as error:
            at = f"{field}.name" if _is_group(written) else f"{field}.namespace"
            self._problems.append(refuse(error.reason, at, str(error), written.name))
        except BadService as error:
            self._problems.append(refuse(error.reason, f"{field}.{error.field}", str(error)))
        return None

    def _service(self, written: LoadBalancer, place: _Place) -> _Child | None:
        field = place.field
        upstream, timeouts = upstream_of(written, self._ref.cluster, place.namespace, self._lookups)
        namespace = upstream.namespace
        at = f"{field}.middlewares"
        made = follow_middlewares(written.middlewares, namespace, at, self._lookups, self._problems)
        if made is None:
            return None
        self._uses += made.uses
        if len(self._uses) == _MAX_SERVICES:
            raise BadService("TooMuchWork", "name", f"leads to more than {_MAX_SERVICES} Services")
        self._uses.append(use_service(upstream, field, self._lookups))
        if written.node_port_lb:
            message = "has no effect: gateways ask servers at their own addresses, and have to reach these"
            self._problems.append(warn("UnsupportedField", f"{field}.nodePortLB", message))
        backend = onto_backend(Backend(upstream=upstream.key, weight=_weight(written), timeouts=timeouts), made)
        name = f"{namespace}-{written.name}-{written.port}"
        return _Child(backend, stickiness_of(written.sticky, name, names="url"))

    def _traefik_service(self, written: LoadBalancer, place: _Place) -> _Child | None:
        """Take a TraefikService apart, wherever it is named: each place has groups of its own."""
        lookups = self._lookups
        if lookups.is_assumed:
            return None
        found = find_referenced(TRAEFIK_SERVICES, place.namespace, written.namespace, written.name, lookups)
        name = f"{found.namespace}/{found.name}"
        if name in place.way or len(place.way) == _MAX_NESTED:
            what = "leads back to itself" if name in place.way else f"is nested more than {_MAX_NESTED} levels deep"
            raise BadService("InvalidTraefikService", "name", f"TraefikService {name} {what}")
        theirs: list[Problem] = []
        spec = read_traefik_service(found.manifest, theirs)
        if spec is None:
            raise BadService("InvalidTraefikService", "name", f"TraefikService {name} cannot be followed: {theirs[0]}")
        inner = place._replace(namespace=found.namespace, way=(*place.way, name))
        group = self._group(spec, found, inner)
        return None if group is None else _Child(group.model_copy(update={"weight": _weight(written)}))

    def _group(self, spec: TraefikServiceSpec, found: Found, place: _Place) -> Backend | None:
        """Make the group of a TraefikService; None if one of its services cannot be followed."""
        mirroring, failover = spec.mirroring, spec.failover
        if mirroring is not None:
            return self._mirroring(mirroring, place)
        if failover is not None:
            members = self._members((failover.service, failover.fallback), place)
            if members is None:
                return None
            statuses = failover_statuses(failover.errors)
            if failover.errors is not None and statuses:
                most = failover.errors.max_request_body_bytes
                self._keeps_body = max(self._keeps_body, ANY_LENGTH if most < 0 else most)
            main, fallback = members
            pair = Failover(main=main, fallback=fallback, statuses=statuses, unsafe=bool(statuses))
            return self._add(place, failover=pair)
        listed = spec.weighted or spec.highest_random_weight
        assert listed is not None
        members = self._members(listed.services, place)
        if members is None:
            return None
        if spec.weighted is None:
            return self._add(place, hashed=Hashed(backends=members))
        stickiness = stickiness_of(spec.weighted.sticky, f"{found.namespace}-{found.name}", names="backend")
        if stickiness is not None:
            names = (_session_name(each, found.namespace) for each in listed.services)
            members = tuple(
                member.model_copy(update={"session_name": name}) for member, name in zip(members, names, strict=True)
            )
        return self._add(place, weighted=Weighted(backends=members), stickiness=stickiness)

    def _members(self, services: Sequence[LoadBalancer], place: _Place) -> tuple[Backend, ...] | None:
        """Return services as members of a group; None if one cannot be followed."""
        children = [self._child(each, place.child(index)) for index, each in enumerate(services)]
        whole = [each for each in children if each is not None]
        return self._in_group(whole, place) if len(whole) == len(children) else None

    def _mirroring(self, written: Mirroring, place: _Place) -> Backend | None:
        members = self._members((written, *written.mirrors), place)
        if members is None:
            return None
        main, *copies = members
        if any(copy.plugins or copy.retries or copy.keeps_body for copy in copies):
            message = "copies go to mirrors as they are: take the middlewares of mirrors away"
            raise BadService("UnsupportedMiddleware", "name", message)
        longest = ANY_LENGTH if written.max_body_size < 0 else written.max_body_size
        if not written.mirror_body:
            longest = 0  # As in Traefik, a request with a body is not copied at all then.
        mirrors = tuple(
            Mirror(
                upstream=copy.upstream,
                group=copy.group,
                share=mirror.percent / 100,
                max_body=longest,
            )
            for mirror, copy in zip(written.mirrors, copies, strict=True)
        )
        return self._add(place, mirroring=MirroringGroup(main=main, mirrors=mirrors)) if mirrors else main

    def _in_group(self, children: Sequence[_Child], place: _Place) -> tuple[Backend, ...]:
        """Return children as members of a group; one that keeps clients with its servers gets a group for that."""
        members = []
        for index, (backend, stickiness) in enumerate(children):
            if stickiness is not None:
                alone = Weighted(backends=(Backend(upstream=backend.upstream),))
                kept = self._add(place.child(index), weighted=alone, stickiness=stickiness)
                backend = backend.model_copy(update={"upstream": "", "group": kept.group})
            members.append(backend)
        return tuple(members)

    def _add(self, place: _Place, **fields: Any) -> Backend:
        """Make a group, and return the backend that refers to it."""
        ref = self._ref
        provenance = Provenance(
            cluster=ref.cluster,
            kind=_KINDS.get(ref.resource, "IngressRoute"),
            namespace=ref.namespace,
            name=ref.name,
            rule=place.field,
        )
        self._groups.append(BackendGroup(key=place.key, provenance=provenance, **fields))
        return Backend(group=place.key)


def _is_group(written: LoadBalancer) -> bool:
    return written.is_traefik_service and not written.name.endswith("@internal")


def _session_name(written: LoadBalancer, namespace: str) -> str:
    """Return what Traefik calls a service within a TraefikService of a namespace."""
    name, _, provider = written.name.partition("@")
    where = written.namespace if provider else written.namespace or namespace
    if written.is_traefik_service or not written.port:
        return session_name(where, name)
    return session_name(where, name, str(written.port))


def _weight(written: LoadBalancer) -> int:
    return 1 if written.weight is None else min(written.weight, _MAX_WEIGHT)
