"""Listeners compiled: what they add to routes and to TLS policies of the virtual hosts on them."""

from weakref import WeakKeyDictionary

from headgate.common.table import Listener
from headgate.gateway.table.route import CompiledRoute
from headgate.gateway.tls.policy import HostTls, TlsPolicies


class CompiledListener:
    """A listener, and the routes on it as it changes them.

    A route is compiled once, whatever listeners it is on. One that adds something to it keeps a copy of its own, made
    when a request first takes the route there.
    """

    __slots__ = ("_combined", "_policies", "_variants", "entry", "tls")

    def __init__(self, entry: Listener, policies: TlsPolicies) -> None:
        self.entry = entry
        self._policies = policies
        self.tls = policies.compile(entry.tls, entry.key)
        """For server names whose virtual host has no policy."""
        self._variants: WeakKeyDictionary[CompiledRoute, CompiledRoute] = WeakKeyDictionary()
        self._combined: WeakKeyDictionary[HostTls, HostTls] = WeakKeyDictionary()

    @property
    def adapts(self) -> bool:
        """Whether it changes routes at all."""
        return self.tls is not None and self.tls.guard is not None

    def adapt(self, route: CompiledRoute) -> CompiledRoute:
        """Return a route as requests on this listener have it."""
        variant = self._variants.get(route)
        if variant is None:
            variant = self._variants[route] = self._adapted(route)
        return variant

    def _adapted(self, route: CompiledRoute) -> CompiledRoute:
        guard = self.tls.guard if self.tls is not None else None
        if guard is not None and (route.policies is None or route.policies.guard is None):
            route = route.guarded(guard)
        return route

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
