"""Endpoints that are DNS names, as the addresses behind them.

A name is replaced by all addresses that are known of it, each an endpoint of its own with the name's weight, so that
they are balanced, checked and ejected one by one. Of the name remains what is said to the endpoint: server name, and
Host where an upstream wants its endpoint's own. The alternative, one endpoint whose connections look the name up, makes
requests wait for name servers, and keeps failing addresses in turn.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from headgate.common.table import BackendProtocol, Endpoint, Upstream
from headgate.gateway.model.connection import ConnectionSpec

_DEFAULT_PORTS = {
    BackendProtocol.HTTP: 80,
    BackendProtocol.H2C: 80,
    BackendProtocol.HTTPS: 443,
    BackendProtocol.H2: 443,
}


class FollowsNames(Protocol):
    """What keeps names fresh: `health.resolve.Resolver`."""

    on_change: Callable[[str], None]
    """Called with a name of which something else is known now."""

    def addresses(self, name: str) -> tuple[str, ...]:
        """Return what is known of a name; nothing before its first answer."""

    def problem(self, name: str) -> str:
        """Say why nothing is known of a name."""

    def follow(self, name: str, resolve_s: float | None = None) -> None:
        """Keep a name fresh."""

    def unfollow(self, name: str, resolve_s: float | None = None) -> None:
        """Undo a `follow` with the same arguments."""


class NamedUpstream(NamedTuple):
    """An upstream some of whose endpoints are names."""

    entry: Upstream
    spec: ConnectionSpec
    names: frozenset[str]


def named_upstream(upstream: Upstream, spec: ConnectionSpec) -> NamedUpstream | None:
    """Return what has to be kept of an upstream with names; None for one without."""
    names = frozenset(endpoint.address for endpoint in upstream.endpoints if is_name(endpoint.address))
    return NamedUpstream(upstream, spec, names) if names else None


def is_name(address: str) -> bool:
    """Tell names from addresses, which are all digits and dots, or have colons."""
    return ":" not in address and not address.replace(".", "").isdigit()


class NameFollower:
    """Follows the names of all upstreams of a table.

    Args:
        resolver: keeps names fresh.
        renew: called with the key of each upstream that is to be expanded anew.
    """

    def __init__(self, resolver: FollowsNames, renew: Callable[[str], None]) -> None:
        self._resolver = resolver
        self._renew = renew
        self._followed: dict[str, NamedUpstream] = {}
        """By key of the upstream."""
        self._users: dict[str, dict[str, None]] = {}
        """Keys of upstreams by name."""
        resolver.on_change = self._note_change

    def adopt(self, key: str, named: NamedUpstream | None) -> None:
        """Follow the names of this revision of an upstream, and no others of it; None: it has none, or is gone."""
        before = self._followed.pop(key, None)
        if named is not None:
            self._followed[key] = named
            for name in named.names:
                self._resolver.follow(name, named.entry.resolve_s)
                self._users.setdefault(name, {})[key] = None
        if before is not None:
            for name in before.names:
                self._resolver.unfollow(name, before.entry.resolve_s)
                if named is None or name not in named.names:
                    self._drop_user(name, key)

    def _drop_user(self, name: str, key: str) -> None:
        users = self._users[name]
        del users[key]
        if not users:
            del self._users[name]

    def _note_change(self, name: str) -> None:
        for key in list(self._users.get(name, ())):
            self._renew(key)

    def expand(self, named: NamedUpstream) -> tuple[Upstream, dict[tuple[str, int], ConnectionSpec]]:
        """Return an upstream with addresses in the place of names, and how those are connected to that had a name."""
        endpoints: dict[tuple[str, int, str], Endpoint] = {}
        specs: dict[tuple[str, int], ConnectionSpec] = {}
        for endpoint in named.entry.endpoints:
            # Pods of two clusters may have one address where only their own cluster reaches them.
            own = endpoint.cluster if endpoint.is_local else ""
            if not is_name(endpoint.address):
                endpoints[endpoint.address, endpoint.port, own] = endpoint
                specs.pop((endpoint.address, endpoint.port), None)
                continue
            for address in self._resolver.addresses(endpoint.address):
                place = address, endpoint.port
                if (*place, own) not in endpoints:
                    endpoints[*place, own] = endpoint.model_copy(update={"address": address})
                    specs[place] = _spec_of(named, endpoint)
        update: dict[str, object] = {"endpoints": tuple(endpoints.values())}
        if not endpoints:
            update["unavailable"] = named.entry.unavailable or "; ".join(self._problems(named.names))
        return named.entry.model_copy(update=update), specs

    def _problems(self, names: Collection[str]) -> list[str]:
        return [self._resolver.problem(name) for name in sorted(names)]


def _spec_of(named: NamedUpstream, endpoint: Endpoint) -> ConnectionSpec:
    spec, name = named.spec, endpoint.address.removesuffix(".")
    host = spec.host
    if host == "":
        is_default = endpoint.port == _DEFAULT_PORTS.get(named.entry.protocol)
        host = name if is_default else f"{name}:{endpoint.port}"
    return spec._replace(host=host, server_name=spec.server_name or name, name=name)
