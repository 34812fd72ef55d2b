"""Compiling listeners, and the routes that their defaults change."""

from collections.abc import Mapping
from functools import partial

from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.table import HttpsRedirect, Listener, PathMatch, PathType, PluginUse, Route, VirtualHost
from headgate.gateway.model.persistent_map import PersistentMap
from headgate.gateway.model.steps import Steps
from headgate.gateway.table.backends import Holders, MakeHooks
from headgate.gateway.table.chunks import ChunkStage, FindPrevious, decode_entry
from headgate.gateway.table.compile import CompiledHost, compile_changed, compile_route
from headgate.gateway.table.listeners import CompiledListener, ListenerRoutes, with_defaults
from headgate.gateway.table.route import CompiledRoute
from headgate.gateway.tls.policy import TlsPolicies


class ListenerCompiler:
    """Compiles the listeners of one table.

    Args:
        policies: compiles TLS policies.
        holders: where routes find upstreams.
        make_hooks: makes the plugins of routes.
    """

    def __init__(self, policies: TlsPolicies, holders: Holders, make_hooks: MakeHooks) -> None:
        self._policies = policies
        self._holders = holders
        self._make_hooks = make_hooks

    def compile(self, raw: bytes, find_previous: FindPrevious[CompiledListener]) -> Steps[tuple[str, CompiledListener]]:
        """Compile an encoded listener in steps.

        Raises:
            DecodeError: it does not follow the contract.
        """
        entry = decode_entry(Listener, raw)
        redirect = None
        if entry.https_redirect is not None:
            redirect = yield from self._compile_redirect(entry, entry.https_redirect)
        return entry.key, CompiledListener(entry, self._policies, redirect)

    def _compile_redirect(self, entry: Listener, redirect: HttpsRedirect) -> Steps[CompiledRoute]:
        """Return what answers the requests of a listener that redirects them."""
        config = RedirectConfig(
            http_to_https=True,
            https_port=redirect.port,
            ret_code=redirect.status,
            keep_method=redirect.keep_method,
        )
        everything = PathMatch(type=PathType.PREFIX, value="/")
        route = Route(name="redirect", path=everything, plugins=(PluginUse.of(config),), provenance=entry.provenance)
        _, compiled = yield from compile_route(entry.key, route, self._holders, None, self._make_hooks)
        # It is counted apart from the routes of hosts, and as long as there is a gateway.
        compiled.name = f"listener {entry.key}"
        return compiled

    def adapt_routes(
        self,
        stage: ChunkStage[VirtualHost, CompiledHost],
        listener: CompiledListener,
        hosts: Mapping[str, CompiledHost | None],
        before: ListenerRoutes | None,
    ) -> Steps[ListenerRoutes]:
        """Compile the routes that a listener's defaults change, in steps, of hosts that are not as before.

        Args:
            stage: has the entries of the hosts.
            listener: of the table.
            hosts: the virtual hosts on it that are new, by key; None: one is gone.
            before: its routes in the revision before; None: it had none, and `hosts` are all.
        """
        if before is None:
            before = ListenerRoutes(listener, PersistentMap.of({}))
        if not listener.has_defaults:
            return before
        changed = before.changed.edit()
        for key in hosts:
            changed.discard(key)
        new = {key: host for key, host in hosts.items() if host is not None}
        change = partial(with_defaults, defaults=listener.entry.defaults)
        for key, raw in stage.raw_entries(new):
            found = yield from compile_changed(raw, new[key], change, self._holders, self._make_hooks)
            if found:
                changed.put(key, found)
        return before.succeed(changed.done())
