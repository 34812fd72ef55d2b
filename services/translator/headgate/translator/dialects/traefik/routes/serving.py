"""What becomes of the requests of one route of an IngressRoute: its middlewares, and where it sends them."""

from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import Backend, BackendGroup
from headgate.translator.dialects.traefik.middlewares.following import follow_middlewares, in_order
from headgate.translator.dialects.traefik.middlewares.making import Made
from headgate.translator.dialects.traefik.routes.matched import Matched
from headgate.translator.dialects.traefik.routes.on_spot import OnSpot
from headgate.translator.dialects.traefik.services.backends import RouteBackends, read_backends
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.fragments.upstream_refs import RefusalRef
from headgate.translator.manifests.specs import refuse
from headgate.translator.world.graph import Lookups

KIND: Final = "IngressRoute"
NOOP: Final = "noop@internal"
"""Service of a route whose requests a middleware answers."""


class Served(NamedTuple):
    """What becomes of the requests of a route."""

    made: Made
    """Of its middlewares."""
    backends: RouteBackends
    is_refused: bool = False


def serve(
    ref: ObjectRef, one: Matched, fault: str, below: BackendGroup | None, lookups: Lookups, problems: list[Problem]
) -> Served:
    """Return what becomes of the requests of a route.

    Args:
        ref: the object.
        one: the route.
        fault: why none of the object can be followed; empty if they can.
        below: routes of other objects, of which one has the requests where the route has no services.
        lookups: where all is found that the route refers to.
        problems: gets what is wrong.
    """
    own: list[Problem] = []
    rule, field = one.rule, one.field
    made = follow_middlewares(rule.middlewares, ref.namespace, f"{field}.middlewares", lookups, own)
    is_parent = not rule.services and below is not None
    if not (rule.services or is_parent or lookups.is_assumed):
        message = "must have a service, or there must be IngressRoutes with this one in their parentRefs"
        own.append(refuse("NoBackends", f"{field}.services", message))
    is_answered = [service.name for service in rule.services] == [NOOP]
    backends: RouteBackends | None = RouteBackends(())
    if is_parent and below is not None:
        backends = RouteBackends((Backend(group=below.key),))
    elif not is_answered:
        backends = read_backends(rule.services, ref, one.name, f"{field}.services", lookups, own)
    problems += own
    if not fault and made is not None and backends is not None and (rule.services or is_parent):
        return Served(made, backends)
    return refused(ref, one, fault or next((str(problem) for problem in own), ""))


def refused(ref: ObjectRef, one: Matched, why: str) -> Served:
    """Return that all requests of a route are refused, and why."""
    reason = f"{KIND} {ref.namespace}/{ref.name} refuses requests of {one.field}: {why}"
    refusal = RefusalRef(ref.cluster, KIND, ref.namespace, f"{ref.name}/{one.name}", reason)
    uses = (BackendUse(refusal, one.field, one.field),)
    return Served(Made(), RouteBackends((Backend(upstream=refusal.key),), uses=uses), is_refused=True)


def behind(before: OnSpot, served: Served) -> Served:
    """Return what becomes of requests where all routes have middlewares before their own."""
    if served.is_refused or before == OnSpot():
        return served
    if before.refusal is not None:
        return Served(Made(), RouteBackends((Backend(upstream=before.refusal.key),)), is_refused=True)
    return served._replace(made=in_order(before.made.before(served.made)))
