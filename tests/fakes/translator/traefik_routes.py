"""What resources of Traefik and annotated Ingresses make of requests: routes, upstreams, and what is reported."""

from dataclasses import replace
from typing import Any

from fakes.translator.deltas import applied, endpoint_slice, service
from headgate.common.problems import Problem
from headgate.common.table import BackendGroup, PluginUse, Route, Upstream, VirtualHost
from headgate.translator.offline import translate_all
from headgate.translator.world.settings import DEFAULT_SETTINGS, TraefikSettings


class Routes:
    """The table of some objects, beside a Service `web` with one server."""

    def __init__(self, *manifests: Any, **traefik: Any) -> None:
        settings = replace(DEFAULT_SETTINGS, traefik=TraefikSettings(**traefik))
        there = (service(), endpoint_slice("web", "10.0.0.1"), *manifests)
        self.offline = translate_all(map(applied, there), settings)

    @property
    def all(self) -> list[Route]:
        return [route for entry in self.offline.entries if isinstance(entry, VirtualHost) for route in entry.routes]

    @property
    def route(self) -> Route:
        """The only one, of objects of which nothing is wrong."""
        assert self.said() == []
        (route,) = self.all
        return route

    @property
    def plugins(self) -> list[PluginUse]:
        """Those of the only route."""
        return list(self.route.plugins)

    @property
    def groups(self) -> list[BackendGroup]:
        return [entry for entry in self.offline.entries if isinstance(entry, BackendGroup)]

    @property
    def upstreams(self) -> list[Upstream]:
        return [entry for entry in self.offline.entries if isinstance(entry, Upstream)]

    @property
    def upstream(self) -> Upstream:
        """The only one."""
        (upstream,) = self.upstreams
        return upstream

    def problems(self) -> list[Problem]:
        return [problem for problems in self.offline.problems.values() for problem in problems]

    def said(self) -> list[tuple[str, str, str | None]]:
        """Severity, reason and field of what is wrong."""
        return [(one.severity, one.reason, one.field) for one in self.problems()]

    def refused(self) -> list[tuple[str, str | None]]:
        """Reason and field of errors, of objects whose only route answers nothing but errors."""
        (route,) = self.all
        (backend,) = route.backends
        assert any(each.key == backend.upstream and each.unavailable for each in self.upstreams)
        return [(one.reason, one.field) for one in self.problems() if one.severity == "error"]
