"""The kinds of Traefik that make routes of streams, and the table that they make."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fakes.translator.deltas import applied, endpoint_slice, service, tls_secret
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import Certificate, StreamRoute, Upstream
from headgate.translator.offline import translate_all
from headgate.translator.world.entry_points import OWN_ENTRY_POINTS, EntryPoint
from headgate.translator.world.settings import DEFAULT_SETTINGS, TraefikSettings

ENTRY_POINTS = (
    *OWN_ENTRY_POINTS,
    EntryPoint("db", "tcp", 5432),
    EntryPoint("mail", "tcp", 2525, is_default=False),
    EntryPoint("dns", "udp", 5353),
)
SECRET = tls_secret("cert", "a.com")


def resource(kind: str, name: str = "one", **spec: Any) -> Any:
    """Return a resource in the namespace `default`."""
    return {
        "apiVersion": "traefik.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": spec,
    }


def tcp(*routes: Any, name: str = "one", **spec: Any) -> Any:
    """Return an IngressRouteTCP."""
    return resource("IngressRouteTCP", name, routes=list(routes), **spec)


def udp(*routes: Any, name: str = "one", **spec: Any) -> Any:
    """Return an IngressRouteUDP."""
    return resource("IngressRouteUDP", name, routes=list(routes), **spec)


def rule(match: str = "HostSNI(`*`)", *services: Any, **fields: Any) -> Any:
    """Return a route; without services its connections go to the port 80 of `web`."""
    return {"match": match, "services": list(services) or [{"name": "web", "port": 80}], **fields}


class Streams:
    """What some objects make, beside a Service `web` and a certificate of `a.com`."""

    def __init__(
        self, *manifests: Any, entry_points: Sequence[EntryPoint] = ENTRY_POINTS, allow_cross_namespace: bool = False
    ) -> None:
        traefik = TraefikSettings(allow_cross_namespace=allow_cross_namespace)
        settings = replace(DEFAULT_SETTINGS, traefik=traefik, entry_points=tuple(entry_points))
        there = (service(), endpoint_slice("web", "10.0.0.1"), SECRET, *manifests)
        self._offline = translate_all(map(applied, there), settings)

    @property
    def routes(self) -> list[StreamRoute]:
        """By port and server names."""
        found = [entry for entry in self._offline.entries if isinstance(entry, StreamRoute)]
        return sorted(found, key=lambda route: (route.port, route.server_names))

    @property
    def route(self) -> StreamRoute:
        """The only one, of an object of which nothing is wrong."""
        assert self.said() == []
        (route,) = self.routes
        return route

    @property
    def presented(self) -> dict[str, tuple[str, ...]]:
        """Server names of certificates by their keys."""
        return {entry.key: entry.server_names for entry in self._offline.certificates if isinstance(entry, Certificate)}

    def upstream(self, key: str) -> Upstream:
        return next(entry for entry in self._offline.entries if isinstance(entry, Upstream) and entry.key == key)

    def upstreams(self, route: StreamRoute) -> list[Upstream]:
        """Those that a route's connections go to."""
        return [self.upstream(backend.upstream) for backend in route.backends]

    @property
    def accepted(self) -> frozenset[ObjectRef]:
        return self._offline.accepted

    def problems(self) -> list[Problem]:
        return [problem for problems in self._offline.problems.values() for problem in problems]

    def said(self) -> list[tuple[str, str, str | None]]:
        """Severity, reason and field of what is wrong."""
        return [(one.severity, one.reason, one.field) for one in self.problems()]
