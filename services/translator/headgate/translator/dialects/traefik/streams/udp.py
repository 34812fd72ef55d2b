"""One IngressRouteUDP to one fragment."""

from typing import Final

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import Provenance, StreamRoute
from headgate.translator.dialects.traefik.entry_points import entry_points_of
from headgate.translator.dialects.traefik.models.stream import IngressRouteUdpSpec, UdpRule
from headgate.translator.dialects.traefik.streams.services import read_services
from headgate.translator.fragments.fragment import BackendUse, Fragment, StreamClaim
from headgate.translator.manifests.specs import Spec, refuse
from headgate.translator.objects.document import identify
from headgate.translator.world.entry_points import EntryPoint
from headgate.translator.world.graph import Lookups

KIND: Final = "IngressRouteUDP"
_IDLE_S: Final = 3.0
"""After which Traefik ends a session."""


def translate_udp_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what an IngressRouteUDP that is ours contributes. An entry point has one route, as it has no rules."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    settings, rules = spec.rest(_Settings, "routes"), spec.each("routes", UdpRule)
    points: tuple[EntryPoint, ...] = ()
    if settings is not None:
        points = entry_points_of(settings.entry_points, lookups.settings.entry_points, problems, is_udp=True)
    streams: list[StreamClaim] = []
    uses: list[BackendUse] = []
    for rule, field in rules if points else ():
        if streams:
            message = "is never used: datagrams on these entry points go to the route before it"
            problems.append(refuse("StreamConflict", field, message))
            continue
        backends = read_services(rule.services, ref, KIND, field, lookups, problems)
        uses += backends.uses
        provenance = Provenance(cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name, rule=field)
        for point in points:
            route = StreamRoute(
                key=f"{ref.cluster}/{ref.namespace}/{ref.resource}/{ref.name}:{point.port}/udp",
                protocol="udp",
                port=point.port,
                backends=backends.backends,
                idle_timeout_s=point.udp_timeout_s or _IDLE_S,
                provenance=provenance,
            )
            streams.append(StreamClaim(route, field, is_refused=backends.is_refused))
    return Fragment(
        identify(ref, manifest), streams=tuple(streams), backends=tuple(uses), problems=tuple(dict.fromkeys(problems))
    )


class _Settings(IngressRouteUdpSpec):
    """All but the routes."""

    routes: tuple[UdpRule, ...] = ()
