"""The routes of one revision: the virtual hosts of every listener, and what the connections of every port ask."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from headgate.common.snapshot import Version
from headgate.common.table import HTTP_LISTENER, HTTPS_LISTENER, OWN_LISTENERS, HostKey, Listener
from headgate.common.table.hosts import name_in
from headgate.gateway.model.persistent_map import PersistentMap
from headgate.gateway.model.steps import Steps, finish
from headgate.gateway.table.compile import CompiledHost, merge_hosts
from headgate.gateway.table.hosts import HostIndex, index_hosts
from headgate.gateway.table.listener_ports import OWN_HTTP, ListenerPlan, ListenerPort, plan_listeners
from headgate.gateway.table.listeners import CompiledListener, ListenerRoutes
from headgate.gateway.table.route import CompiledRoute
from headgate.gateway.table.routers import (
    AdaptingRouter,
    ChallengeRouter,
    HostRouter,
    Hosts,
    PortRouter,
    RankRouter,
    RedirectingRouter,
    Router,
    ShardRouter,
)
from headgate.gateway.table.shards.elsewhere import Elsewhere
from headgate.gateway.tls.policy import HostTls

_NO_HOSTS: Hosts = HostIndex(PersistentMap.of({}))
_SPECIAL = (b"**.", b"~")
"""What names of hosts begin with that an index has to know of besides."""
_HOSTS_AT_ONCE = 1000
"""Put in their places between two turns of the event loop: about a millisecond."""


class HostChange(NamedTuple):
    """What becomes of the virtual hosts of a table: those that are new or replaced by key, and keys of those gone."""

    arrived: Mapping[str, CompiledHost]
    gone: Collection[str]


Answers = Mapping[tuple[bytes, bytes], CompiledRoute]
"""What answers challenges, by host and path."""
Placed = dict[str, CompiledHost | None]
"""What is new at a listener, by key; None: it is gone."""
_NOTHING_PLACED: Mapping[str, Placed] = {}


Adapt = Callable[[CompiledListener, Placed, ListenerRoutes | None], Steps[ListenerRoutes]]
"""Takes a listener, what is new at it since the revision before, and its routes in that; None: all of it is new."""


class CompiledTable:
    """All listeners and hosts of one revision; immutable."""

    __slots__ = (
        "__weakref__",
        "_answers",
        "_elsewhere",
        "_indexes",
        "_routers",
        "hosts",
        "listeners",
        "match",
        "plan",
        "routes",
        "version",
        "version_label",
    )

    def __init__(
        self,
        version: Version,
        hosts: PersistentMap[bytes, CompiledHost],
        indexes: Mapping[str, Hosts],
        plan: ListenerPlan,
        listeners: Mapping[str, CompiledListener],
        routes: Mapping[str, ListenerRoutes],
        answers: Answers,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.version = version
        self.version_label = str(version)
        self.hosts = hosts
        """Virtual hosts by key."""
        self.plan = plan
        self.listeners = listeners
        """Those that have an entry, by key."""
        self.routes = routes
        """By key of the listener, of those that change routes."""
        self._answers = answers
        self._elsewhere = elsewhere
        """Answers for the hosts of other shards; None: all are held here."""
        self._indexes = indexes
        """By key of the listener; those of the gateway's own two are one object as long as they have the same hosts."""
        self._routers = {port: self._port_router(listeners) for port, listeners in plan.ports.items()}
        self.match = self._routers[OWN_HTTP].match
        """Finds the route of a request on the gateway's own HTTP port; see `Router`."""

    @classmethod
    def empty(cls, version: Version, elsewhere: Elsewhere | None = None) -> "CompiledTable":
        """Return a table without entries."""
        return cls(version, PersistentMap.of({}), {}, finish(plan_listeners((), {})), {}, {}, {}, elsewhere)

    def hosts_of(self, listener: str) -> Hosts:
        """Return the virtual hosts of a listener."""
        return self._indexes.get(listener, _NO_HOSTS)

    def router(self, port: ListenerPort) -> Router | None:
        """Return what the connections of a port ask for routes; None: no listener has the port."""
        return self._routers.get(port)

    def find_tls(self, port: ListenerPort, server_name: bytes) -> HostTls | None:
        """Return the TLS policy for a server name on a port: lower case, empty if none was sent."""
        listener = self._find_listener(port, server_name)
        if listener is None:
            return None
        host = self.hosts_of(listener.key).find(server_name)
        tls = host.tls if host is not None else None
        compiled = self.listeners.get(listener.key)
        return tls if compiled is None else compiled.tls_of(tls)

    def find_certificates(self, port: ListenerPort, server_name: bytes) -> Sequence[str]:
        """Return the keys of certificates among which that for a server name is chosen; none: all of the table."""
        listener = self._find_listener(port, server_name)
        return () if listener is None else listener.certificates

    def _find_listener(self, port: ListenerPort, server_name: bytes) -> Listener | None:
        listeners = self.plan.ports.get(port)
        return listeners.find(server_name) if listeners is not None else None

    def _port_router(self, listeners: HostIndex[Listener]) -> Router:
        by_name = {name: self._listener_router(each) for name, each in listeners.by_name.items()}
        router: Router | None = by_name.get(b"*")
        if router is None or len(by_name) > 1:
            router = PortRouter(
                self.version_label, HostIndex(PersistentMap.of(by_name), listeners.deep, listeners.patterns)
            )
        if self._elsewhere is not None:
            router = ShardRouter(router, self._elsewhere.shard, self._elsewhere.route)
        # Authorities may come to any gateway, and all have the answers.
        return ChallengeRouter(router, self._answers) if self._answers else router

    def _listener_router(self, listener: Listener) -> Router:
        make = RankRouter if listener.host_order == "rank-first" else HostRouter
        router: Router = make(self.version_label, self.hosts_of(listener.key))
        compiled = self.listeners.get(listener.key)
        if listener.key in self.routes:
            router = AdaptingRouter(router, self.routes[listener.key])
        if compiled is not None and compiled.redirect is not None:
            router = RedirectingRouter(router, compiled.redirect)
        return router

    def succeed(
        self,
        version: Version,
        change: HostChange,
        plan: ListenerPlan,
        listeners: Mapping[str, CompiledListener],
        adapt: Adapt,
        answers: Answers,
    ) -> "Steps[CompiledTable]":
        """Return the next revision in steps: what did not change is shared. `adapt` makes the routes of a listener.

        Nothing is done for each host that did not change.
        """
        hosts, indexes, placed = self.hosts, self._indexes, _NOTHING_PLACED
        if change.arrived or change.gone:
            placed = yield from _by_listener(change)
            hosts = yield from self._replace_hosts(change)
            indexes = yield from self._replace_indexes(placed)
        routes = {}
        for key, listener in listeners.items():
            before = self.routes.get(key)
            if before is not None and before.listener is listener:
                routes[key] = (yield from adapt(listener, placed[key], before)) if key in placed else before
            elif listener.adapts:
                index = indexes.get(key, _NO_HOSTS)
                here: Placed = {part.key: part for host in index.by_name.values() for part in host.parts}
                routes[key] = yield from adapt(listener, here, None)
        return CompiledTable(version, hosts, indexes, plan, listeners, routes, answers, self._elsewhere)

    def _replace_hosts(self, change: HostChange) -> Steps[PersistentMap[bytes, CompiledHost]]:
        hosts = self.hosts.edit()
        for key in change.gone:
            hosts.discard(key.encode())
        for number, (key, host) in enumerate(change.arrived.items(), 1):
            hosts.put(key.encode(), host)
            if number % _HOSTS_AT_ONCE == 0:
                yield
        return hosts.done()

    def _replace_indexes(self, placed: Mapping[str, Placed]) -> Steps[Mapping[str, Hosts]]:
        indexes = dict(self._indexes)
        alike = self.hosts_of(HTTP_LISTENER) is self.hosts_of(HTTPS_LISTENER)
        for listener, changes in placed.items():
            if listener == HTTPS_LISTENER and alike and _are_equal(changes, placed.get(HTTP_LISTENER)):
                indexes[listener] = indexes[HTTP_LISTENER]
            else:
                indexes[listener] = yield from _replace(self.hosts_of(listener), changes)
        return {key: index for key, index in indexes.items() if index.by_name}

    def recount(self, key: str) -> None:
        """Find anew where the requests of a virtual host's routes are counted."""
        host = self.hosts.get(key.encode())
        for _, route in host.routes if host is not None else ():
            route.traffic = None
            for routes in self.routes.values():
                routes.recount(route)


def _by_listener(change: HostChange) -> Steps[Mapping[str, Placed]]:
    """Return what changes at every listener; the gateway's own are in the order of `OWN_LISTENERS`."""
    own: Placed = {}
    placed: dict[str, Placed] = {}
    everything: Mapping[str, CompiledHost | None] = {**dict.fromkeys(change.gone), **change.arrived}
    for number, (key, host) in enumerate(everything.items(), 1):
        if number % _HOSTS_AT_ONCE == 0:
            yield
        listeners = HostKey.read(key).listeners if "@" in key else ()
        if not listeners:
            own[key] = host
        for listener in listeners:
            placed.setdefault(listener, {})[key] = host
    for listener in OWN_LISTENERS if own else ():
        # One object for both, as nearly always: they are the same hosts.
        placed[listener] = {**own, **placed[listener]} if listener in placed else own
    return dict(sorted(placed.items()))


def _are_equal(changes: Placed, others: Placed | None) -> bool:
    """Compare what is new at two listeners, at once if it is one object: dictionaries do not look at that."""
    return changes is others or changes == others


def _replace(before: Hosts, changes: Placed) -> Steps[Hosts]:
    """Return the hosts of a listener after some changes; several virtual hosts of one host are merged."""
    by_name = before.by_name.edit()
    several: dict[bytes, dict[str, CompiledHost]] = {}
    special: list[bytes] = []
    for number, (key, host) in enumerate(changes.items(), 1):
        name = name_in(key).encode()
        if name.startswith(_SPECIAL):
            special.append(name)
        if number % _HOSTS_AT_ONCE == 0:
            yield
        there = by_name.get(name)
        is_alone = there is None or (len(there.parts) == 1 and there.key == key)
        if is_alone and name not in several:
            if host is not None:
                by_name.put(name, host)
            else:
                by_name.discard(name)
            continue
        parts = several.setdefault(name, {part.key: part for part in there.parts} if there is not None else {})
        parts.pop(key, None)
        if host is not None:
            parts[key] = host
    for name, parts in several.items():
        ordered = [parts[key] for key in sorted(parts)]
        if len(ordered) > 1:
            by_name.put(name, (yield from merge_hosts(ordered)))
        elif ordered:
            by_name.put(name, ordered[0])
        else:
            by_name.discard(name)
    return (yield from index_hosts(before, by_name.done(), special))
