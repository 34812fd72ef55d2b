"""What connections of a port ask for routes: the virtual hosts of its listener, or first which listener it is.

A port with one listener that takes every host is asked as the table was before there were listeners: nothing stands
between a request and its host.
"""

import sys
from collections.abc import Mapping
from itertools import dropwhile
from typing import TYPE_CHECKING, Protocol

from headgate.common.table.shards import Shard
from headgate.gateway.proxy.seam import NeedsBody
from headgate.gateway.table.compile import CompiledHost
from headgate.gateway.table.hosts import HostIndex, find_host
from headgate.gateway.table.listeners import ListenerRoutes
from headgate.gateway.table.route import CompiledRoute

if TYPE_CHECKING:
    from headgate.gateway.proxy.request_source import RequestSource
    from headgate.gateway.table.match import Strength

Hosts = HostIndex[CompiledHost]
_WORST: "Strength" = (True, (sys.maxsize, sys.maxsize, sys.maxsize), ())
"""Behind that of every route."""


class Router(Protocol):
    """A `proxy.seam.Router` that finds routes of a table."""

    @property
    def version_label(self) -> str:
        """`epoch.revision`, for logs."""

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> CompiledRoute | NeedsBody | None:
        """Find the route of a request; None is a 404, `NEEDS_BODY` asks to be called again with the body.

        Args:
            host: lower case, without port and trailing dot; empty if the request named none.
            path: raw, without the query.
            source: the request, for routes that look at more of it.
        """

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host, whatever its routes are."""


class HostRouter:
    """The virtual hosts of a listener that is `host-first`."""

    __slots__ = ("_any_depth", "_hosts", "_index", "_patterns", "version_label")

    def __init__(self, version_label: str, index: Hosts) -> None:
        self.version_label = version_label
        self._index = index
        self._hosts = index.by_name
        self._any_depth = index.any_depth
        self._patterns = index.patterns

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> CompiledRoute | NeedsBody | None:
        """Find the route of a request; see `Router`."""
        found = self._hosts.get(host)
        if found is None:
            found = find_host(self._hosts, host, any_depth=self._any_depth, patterns=self._patterns)
            if found is None:
                return None
        route = found.match(path, source)
        if (route is None or found.competes) and found.unmatched == "next-host":
            return self._match_next(found, host, path, source)
        return route

    def _match_next(
        self, first: CompiledHost, host: bytes, path: bytes, source: "RequestSource"
    ) -> CompiledRoute | NeedsBody | None:
        """Ask a host and those after it, until one takes the request or keeps it to itself.

        Hosts that compete are asked together: the best rank of their routes wins.
        """
        best: CompiledRoute | NeedsBody | None = None
        holder, strength = first, _WORST
        for found in dropwhile(lambda each: each is not first, self._index.candidates(host)):
            route = found.match(path, source)
            if route is not None and (rank := found.strength(route, path, source)) < strength:
                best, holder, strength = route, found, rank
            if found.unmatched == "404" or (best is not None and not holder.competes):
                break
        return first.guard(best) if holder is not first and isinstance(best, CompiledRoute) else best

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host."""
        return self._index.find(host) is not None


class RankRouter:
    """The virtual hosts of a listener that is `rank-first`: of the best routes of all hosts that take the request's
    the best one wins.

    The order among the routes of one host is the one among those of all, so that each host is asked by its own index
    and no route of it but the best is looked at: a request costs as many hosts as take it, however many routes there
    are.
    """

    __slots__ = ("_index", "version_label")

    def __init__(self, version_label: str, index: Hosts) -> None:
        self.version_label = version_label
        self._index = index

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> CompiledRoute | NeedsBody | None:
        """Find the route of a request; see `Router`."""
        best: CompiledRoute | NeedsBody | None = None
        best_strength: Strength | None = None
        first: CompiledHost | None = None
        for found in self._index.candidates(host):
            first = first or found
            route = found.match(path, source)
            if route is None:
                continue
            strength = found.strength(route, path, source)
            if best_strength is None or strength < best_strength:
                best, best_strength = route, strength
        # Clients show what the host that takes them best asks for, whoever has the route.
        return first.guard(best) if first is not None and isinstance(best, CompiledRoute) else best

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host."""
        return self._index.find(host) is not None


class AdaptingRouter:
    """The virtual hosts of a listener that changes routes."""

    __slots__ = ("_router", "_routes", "version_label")

    def __init__(self, router: Router, routes: ListenerRoutes) -> None:
        self.version_label = router.version_label
        self._router = router
        self._routes = routes

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> CompiledRoute | NeedsBody | None:
        """Find the route of a request; see `Router`."""
        route = self._router.match(host, path, source)
        return self._routes.adapt(route) if isinstance(route, CompiledRoute) else route

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host."""
        return self._router.takes(host)


class RedirectingRouter:
    """A listener that redirects requests over plain HTTP."""

    __slots__ = ("_redirect", "_router", "version_label")

    def __init__(self, router: Router, redirect: CompiledRoute) -> None:
        self.version_label = router.version_label
        self._router = router
        self._redirect = redirect

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> CompiledRoute | NeedsBody | None:
        """Find the route of a request; see `Router`."""
        if source.facts().scheme == b"https":
            return self._router.match(host, path, source)
        return self._redirect

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host."""
        return self._router.takes(host)


class ChallengeRouter:
    """A port while certificates are ordered: questions of authorities are answered before all routes."""

    __slots__ = ("_answers", "_router", "version_label")

    def __init__(self, router: Router, answers: Mapping[tuple[bytes, bytes], CompiledRoute]) -> None:
        self.version_label = router.version_label
        self._router = router
        self._answers = answers

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> CompiledRoute | NeedsBody | None:
        """Find the route of a request; see `Router`."""
        answer = self._answers.get((host, path))
        return self._router.match(host, path, source) if answer is None else answer

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host."""
        return self._router.takes(host)


class ShardRouter:
    """A port of a gateway that holds one shard: hosts of the others are answered for want of their routes.

    A wildcard here may take a name whose own host another shard has, so that a name is decided by its shard alone.
    Requests that name no host have none: they get what all shards hold.
    """

    __slots__ = ("_elsewhere", "_router", "_shard", "version_label")

    def __init__(self, router: Router, shard: Shard, elsewhere: CompiledRoute) -> None:
        self.version_label = router.version_label
        self._router = router
        self._shard = shard
        self._elsewhere = elsewhere

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> CompiledRoute | NeedsBody | None:
        """Find the route of a request; see `Router`."""
        if host and not self._shard.has_name(host):
            return self._elsewhere
        return self._router.match(host, path, source)

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host."""
        return (not host or self._shard.has_name(host)) and self._router.takes(host)


class PortRouter:
    """Several listeners of one port, each with its virtual hosts: the one that takes a host best has the request."""

    __slots__ = ("_listeners", "version_label")

    def __init__(self, version_label: str, listeners: HostIndex[Router]) -> None:
        self.version_label = version_label
        self._listeners = listeners

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> CompiledRoute | NeedsBody | None:
        """Find the route of a request; see `Router`."""
        listener = self._listeners.find(host)
        return None if listener is None else listener.match(host, path, source)

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host."""
        listener = self._listeners.find(host)
        return listener is not None and listener.takes(host)
