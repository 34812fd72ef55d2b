"""What the names of routes and the keys of upstreams say, for logs and metrics that name things otherwise."""

from functools import lru_cache
from typing import Final, NamedTuple

from headgate.common.table import HostKey
from headgate.common.table.upstream_key import UpstreamKey

_REMEMBERED: Final = 4096
_OTHER_HOSTS: Final = "default backend"
"""The route of a ConfigMap for hosts that no object has."""
_REST: Final = "rest"
"""The route of an Ingress for paths that no object of a host has."""
_ANSWERED: Final = "location"
"""Stands before the type of a path that a snippet answers."""


class RouteName(NamedTuple):
    """The name of a route, `host|cluster/namespace/name type path`, read; what it does not say is empty."""

    host: str = ""
    namespace: str = ""
    object: str = ""
    """The name of the object that the route is of."""
    path: str = ""


@lru_cache(maxsize=_REMEMBERED)
def read_route(route: str) -> RouteName:
    """Return what the name of a route says."""
    key, bar, name = route.partition("|")
    host = HostKey.read(key).host if name and key != "*" else ""
    place, _, said = (name if bar else key).partition(" ")
    parts = place.split("/")
    if len(parts) != 3:
        return RouteName(host)
    if said == _OTHER_HOSTS:
        return RouteName(host, path="/")
    return RouteName(host, parts[1], parts[2], _path(said))


def _path(said: str) -> str:
    """Return the path of a route: `/`, `prefix /cart` or `location exact /cart`."""
    if said == _REST:
        return "/"
    kind, _, path = said.partition(" ")
    return (path.partition(" ")[2] or path) if kind == _ANSWERED else path


@lru_cache(maxsize=_REMEMBERED)
def read_upstream(key: str) -> UpstreamKey | None:
    """Return the parts of an upstream's key; None: it is no such key."""
    try:
        return UpstreamKey.parse(key)
    except ValueError:
        return None
