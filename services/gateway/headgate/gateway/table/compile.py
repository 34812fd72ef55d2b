"""From table entries to what requests use.

`CompiledTable` is immutable: a request keeps the route that it was matched to, whatever is swapped in meanwhile. Routes
refer to upstreams through holders, so an endpoint change recompiles one upstream and stores one attribute.
"""

from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.snapshot import Version
from headgate.common.table import Route, VirtualHost
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.table.chunks import FindPrevious
from headgate.gateway.table.match import PathIndex, PathRule, find_host
from headgate.gateway.table.route import CompiledRoute

if TYPE_CHECKING:
    from headgate.gateway.proxy.seam import NeedsBody, RequestSource

ROUTES_AT_ONCE = 64
"""Routes compiled between two turns of the event loop: about a millisecond."""


class CompiledHost(PathIndex[CompiledRoute]):
    """The routes of one host by path."""

    __slots__ = ("routes",)

    def __init__(self, routes: Iterable[CompiledRoute]) -> None:
        self.routes = tuple(routes)
        """In the order of `VirtualHost.routes`."""
        super().__init__(
            (PathRule(route.path_type, route.path, position), route) for position, route in enumerate(self.routes)
        )


class UpstreamHolders:
    """One holder for each upstream key that any live route or table names; collected with the last of them."""

    def __init__(self) -> None:
        self._holders: WeakValueDictionary[str, UpstreamHolder] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._holders)

    def holder(self, key: str) -> UpstreamHolder:
        """Return the holder of a key, making an empty one on first use."""
        holder = self._holders.get(key)
        if holder is None:
            holder = self._holders[key] = UpstreamHolder(key)
        return holder


def compile_host(
    raw: bytes, find_previous: FindPrevious[CompiledHost], holders: UpstreamHolders
) -> Generator[None, None, tuple[str, CompiledHost]]:
    """Compile an encoded virtual host in steps; a host may have thousands of routes, of which one changed.

    Routes that did not change, byte for byte, keep their compiled object.

    Raises:
        DecodeError: it does not follow the contract.
    """
    host, raw_routes = split_host(raw)
    previous = find_previous(host)
    known = dict(zip(split_host(previous.raw)[1], previous.compiled.routes, strict=True)) if previous else {}
    routes: list[CompiledRoute] = []
    for raw_route in raw_routes:
        routes.append(known.get(raw_route) or compile_route(host, decode_route(raw_route), holders))
        if len(routes) % ROUTES_AT_ONCE == 0:
            yield
    return host, CompiledHost(routes)


def split_host(raw: bytes) -> tuple[str, list[bytes]]:
    """Return a virtual host's name and its encoded routes, all else about it validated.

    Raises:
        DecodeError: it does not follow the contract.
    """
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        routes = msgspec.json.decode(fields.pop("routes"), type=list[msgspec.Raw])
        host = VirtualHost.model_validate_json(msgspec.json.encode({**fields, "routes": []})).host
    except (msgspec.MsgspecError, KeyError, ValueError) as error:
        raise DecodeError(f"an entry of hosts cannot be read: {error}") from error
    return host, [bytes(route) for route in routes]


def decode_route(raw: bytes) -> Route:
    """Decode and validate one route.

    Raises:
        DecodeError: it does not follow the contract.
    """
    try:
        return Route.model_validate_json(raw)
    except ValueError as error:
        raise DecodeError(f"a route cannot be read: {error}") from error


def compile_route(host: str, route: Route, holders: UpstreamHolders) -> CompiledRoute:
    """Bind a route to the holders of its upstreams."""
    backends = [(holders.holder(backend.upstream), backend.weight) for backend in route.backends]
    return CompiledRoute(host, route, backends)


class CompiledTable:
    """All hosts of one revision; the proxy's `Router`."""

    __slots__ = ("__weakref__", "_hosts", "version", "version_label")

    def __init__(self, version: Version, hosts: Mapping[bytes, CompiledHost]) -> None:
        self.version = version
        self.version_label = str(version)
        self._hosts = hosts

    @property
    def hosts(self) -> Mapping[bytes, CompiledHost]:
        """Virtual hosts by name."""
        return self._hosts

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> "CompiledRoute | NeedsBody | None":
        """Find the route of a request; None is a 404.

        Args:
            host: lower case, without port and trailing dot; empty if the request named none.
            path: raw, without the query.
            source: the request, for routes that look at more of it.
        """
        found = self._hosts.get(host)
        if found is None:
            found = find_host(self._hosts, host)
            if found is None:
                return None
        return found.match(path)
