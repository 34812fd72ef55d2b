"""Listeners compiled: what they add to routes and to TLS policies of the virtual hosts on them.

A route is compiled once, whatever listeners it is on. One whose defaults change a route has a copy of its own, compiled
from the entry that the route would be if it said them itself.
"""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from headgate.common.plugins.observability.opentelemetry import OpentelemetryConfig
from headgate.common.plugins.route_fields import plugins_as_fields
from headgate.common.plugins.traffic.proxy_mirror import ProxyMirrorConfig
from headgate.common.table import Listener, ListenerDefaults, Route, Tracing
from headgate.gateway.model.persistent_map import PersistentMap
from headgate.gateway.table.route import CompiledRoute
from headgate.gateway.tls.policy import ClientGuard, HostTls, TlsPolicies

NO_DEFAULTS = ListenerDefaults()


def with_defaults(route: Route, defaults: ListenerDefaults) -> Route:
    """Return a route as it would be if it said itself what a listener has for those that do not."""
    said = {use.name for use in route.plugins}
    if route.mirrors:
        said.add(ProxyMirrorConfig.plugin)
    if route.tracing != Tracing():
        said.add(OpentelemetryConfig.plugin)
    plugins = tuple(use for use in defaults.plugins if use.name not in said)
    spare = {name: value for name, value in defaults.timeouts if getattr(route.timeouts, name) is None}
    changed = route.model_copy(
        update={
            "plugins": (*plugins, *route.plugins),
            "max_body": defaults.max_body if route.max_body is None else route.max_body,
            "timeouts": route.timeouts.model_copy(update=spare),
        }
    )
    return route if changed == route else plugins_as_fields(changed)


class CompiledListener:
    """A listener.

    Args:
        entry: of the table.
        policies: compiles TLS policies.
        redirect: answers all requests over plain HTTP; None: routes do.
    """

    __slots__ = ("_combined", "_policies", "entry", "redirect", "tls")

    def __init__(self, entry: Listener, policies: TlsPolicies, redirect: CompiledRoute | None = None) -> None:
        self.entry = entry
        self.redirect = redirect
        self._policies = policies
        self.tls = policies.compile(entry.tls, entry.key)
        """For server names whose virtual host has no policy."""
        self._combined: WeakKeyDictionary[HostTls, HostTls] = WeakKeyDictionary()

    @property
    def has_defaults(self) -> bool:
        """Whether routes here may have to be other ones than elsewhere."""
        return self.entry.defaults != NO_DEFAULTS

    @property
    def adapts(self) -> bool:
        """Whether it changes routes at all."""
        return self.has_defaults or (self.tls is not None and self.tls.guard is not None)

    def tls_of(self, host: HostTls | None) -> HostTls | None:
        """Return the policy for connections to a virtual host: its own, with this one's client validation if that has
        none.
        """
        if host is None or self.tls is None:
            return host or self.tls
        auth = self.tls.policy.client_auth
        if auth is None or host.policy.client_auth is not None:
            return host
        combined = self._combined.get(host)
        if combined is None:
            policy = host.policy.model_copy(update={"client_auth": auth})
            combined = self._policies.compile(policy, self.entry.key)
            assert combined is not None, "there is a policy"
            self._combined[host] = combined
        return combined


Changed = PersistentMap[str, Mapping[str, CompiledRoute]]
"""Routes that a listener's defaults made others: by key of the host, then by name."""


class ListenerRoutes:
    """The routes on a listener that changes them.

    Args:
        listener: of the table.
        changed: those that its defaults made others.
        adapted: those that requests asked for before; the routes of one listener in all revisions share it, as what
            becomes of a route depends on these two alone. None: as it is.
    """

    __slots__ = ("_adapted", "changed", "listener")

    def __init__(
        self,
        listener: CompiledListener,
        changed: Changed,
        adapted: WeakKeyDictionary[CompiledRoute, CompiledRoute | None] | None = None,
    ) -> None:
        self.listener = listener
        self.changed = changed
        self._adapted = WeakKeyDictionary() if adapted is None else adapted

    def succeed(self, changed: Changed) -> "ListenerRoutes":
        """Return the routes of the next revision."""
        return ListenerRoutes(self.listener, changed, self._adapted)

    def adapt(self, route: CompiledRoute) -> CompiledRoute:
        """Return a route as requests on this listener have it."""
        try:
            return self._adapted[route] or route
        except KeyError:
            adapted = self._make(route)
            # A value that is its own key would never go.
            self._adapted[route] = None if adapted is route else adapted
            return adapted

    def _make(self, route: CompiledRoute) -> CompiledRoute:
        adapted = self._find_changed(route) or route
        guard = self._guard_of(route)
        if guard is not None and (adapted.policies is None or adapted.policies.guard is None):
            return adapted.guarded(guard)
        return adapted

    def _find_changed(self, route: CompiledRoute) -> CompiledRoute | None:
        of_host = self.changed.get(route.name.partition("|")[0])
        return of_host.get(route.name) if of_host is not None else None

    def _guard_of(self, route: CompiledRoute) -> ClientGuard | None:
        own = route.policies.guard if route.policies is not None else None
        tls = self.listener.tls
        return own or (tls.guard if tls is not None else None)

    def recount(self, route: CompiledRoute) -> None:
        """Find anew where the requests of a route are counted."""
        for copied in (self._adapted.get(route), self._find_changed(route)):
            if copied is not None:
                copied.traffic = None
