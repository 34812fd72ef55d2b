"""The default backend of an Ingress: what answers for backends without endpoints, and in the place of errors.

It is told of the case in headers; https://kubernetes.github.io/ingress-nginx/user-guide/custom-errors/ lists them.
"""

from typing import Final

from headgate.common.plugins.traffic.proxy_rewrite import HeaderChanges, ProxyRewriteConfig
from headgate.common.plugins.transformation.error_page import ErrorPageConfig, FixedPage
from headgate.common.resources import ObjectRef
from headgate.common.table import Backend, BackendGroup, Failover, PluginUse, Route
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.annotations.nginx import NGINX_TABLE
from headgate.translator.annotations.reading import Reading
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.fragments.upstream_refs import ServicePortRef
from headgate.translator.sources.sharing import find_service
from headgate.translator.world.graph import Lookups

_NO_ENDPOINTS: Final = "503"
_NOBODY: Final = FixedPage(status=404, body="default backend - 404")


class DefaultBackend:
    """That of one Ingress."""

    def __init__(self, ref: ObjectRef, reading: Reading, lookups: Lookups) -> None:
        """Look the Service up; one that is missing is noted, and requests are served without it."""
        self._ref = ref
        self._written = reading.group("errors")
        self._upstream = self._find(reading, lookups)
        self.of_all = default_backend_of_all(ref.cluster, lookups)
        """That of the settings, which answers for paths that no Ingress of a host has."""
        self._answering = self._upstream or self.of_all
        """What answers in the place of errors."""
        self._groups: dict[str, BackendGroup] = {}

    def _find(self, reading: Reading, lookups: Lookups) -> ServicePortRef | None:
        name = self._written.get("service")
        if name is None or lookups.is_assumed:
            return None
        namespace = self._ref.namespace
        service = find_service(lookups, namespace, name)
        if service is None or not service.ports:
            fault = "not found" if service is None else "has no port of TCP"
            reading.refuse("default-backend", f"must be a Service with a port; {namespace}/{name} {fault}")
            return None
        return ServicePortRef(self._ref.cluster, namespace, name, service.ports[0].port)

    @property
    def backends(self) -> tuple[BackendUse, ...]:
        """The upstream that it is, or that answers in its place."""
        field = NGINX_TABLE.field("default-backend")
        own = () if self._upstream is None else (BackendUse(self._upstream, field, field),)
        return own if self.of_all is None else (*own, BackendUse(self.of_all, "spec.rules", "spec.rules"))

    @property
    def groups(self) -> tuple[BackendGroup, ...]:
        """Those that `with_fallback` has made."""
        return tuple(self._groups.values())

    def pages(self, route: Route) -> tuple[PluginUse, ...]:
        """Return what answers in the place of errors of a route."""
        statuses = self._written.get("statuses", ())
        if not statuses:
            return ()
        shown = tuple((status, status) for status in statuses)
        own_only = self._written.get("own_only", False)
        if self._answering is None:
            return (PluginUse.of(ErrorPageConfig(page=_NOBODY, statuses=shown, own_only=own_only)),)
        config = ErrorPageConfig(
            upstream=self._answering.key,
            statuses=shown,
            headers=self._headers(route) | {"X-Forwarded-For": "$remote_addr"},
            forward_request=True,
            own_only=own_only,
        )
        return (PluginUse.of(config),)

    def with_fallback(self, route: Route) -> Route:
        """Return the route with the default backend behind its own."""
        if self._upstream is None or not route.backends or not route.backends[0].upstream:
            return route
        upstream = route.backends[0].upstream
        key = f"{self._ref.cluster}/{self._ref.namespace}/{self._ref.resource}/{self._ref.name}/{upstream}"
        if key not in self._groups:
            told = HeaderChanges(set=self._headers(route) | {"X-Code": _NO_ENDPOINTS, "X-Format": "$http_accept"})
            fallback = Backend(upstream=self._upstream.key, plugins=(PluginUse.of(ProxyRewriteConfig(headers=told)),))
            failover = Failover(main=route.backends[0], fallback=fallback)
            self._groups[key] = BackendGroup(key=key, failover=failover, provenance=route.provenance)
        return route.model_copy(update={"backends": (Backend(group=key),)})

    def _headers(self, route: Route) -> dict[str, str]:
        service, _, port = _target(route).rpartition(":")
        return {
            "X-Namespace": self._ref.namespace,
            "X-Ingress-Name": self._ref.name,
            "X-Service-Name": service,
            "X-Service-Port": port,
        }


def default_backend_of_all(cluster: str, lookups: Lookups) -> ServicePortRef | None:
    """Return the first port of the Service that the settings name; None without one."""
    namespace, _, name = lookups.settings.nginx.default_backend.partition("/")
    service = find_service(lookups, namespace, name) if name and not lookups.is_assumed else None
    return ServicePortRef(cluster, namespace, name, service.ports[0].port) if service and service.ports else None


def _target(route: Route) -> str:
    """Return Service and port of a route's backend."""
    key = UpstreamKey.parse(route.backends[0].upstream) if route.backends else UpstreamKey("", "", "")
    return f"{key.name}:{'' if key.port is None else key.port}"
