"""Virtual host entries taken apart, so that of thousands of routes only those are decoded that changed.

Most virtual hosts say no more than which paths lead to which upstream. These are read without their models, which were
half of the work that a first table is. Tests hold the two ways to each other.
"""

import re
from typing import Annotated, NamedTuple

import msgspec

from headgate.common.errors import DecodeError
from headgate.common.plugins.route_fields import plugins_as_fields
from headgate.common.table import PathType, Route, Unmatched, VirtualHost
from headgate.common.table.hosts import MAX_HOST_PATTERN, HostKey, is_pattern
from headgate.gateway.table.encoded.upstream import EncodedProvenance


class _PlainPath(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: PathType
    value: str


class _PlainBackend(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    upstream: Annotated[str, msgspec.Meta(min_length=1)]


class _PlainRoute(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str
    path: _PlainPath
    backends: tuple[_PlainBackend]
    provenance: EncodedProvenance


class _PlainHost(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    host: Annotated[str, msgspec.Meta(max_length=MAX_HOST_PATTERN)]
    routes: list[_PlainRoute]
    listeners: tuple[str, ...] = ()
    unmatched: Unmatched = "404"


_decode_plain = msgspec.json.Decoder(_PlainHost).decode
_PLAIN_LISTENER = re.compile(r"[!-+\--?A-{}~]+").fullmatch
"""Of the keys of listeners those in ASCII, where all engines of patterns agree on what a space is."""


class PlainRoute(NamedTuple):
    """A route that takes the requests of a path to an upstream, and says nothing else."""

    name: str
    type: PathType
    """Any but a pattern."""
    path: str
    upstream: str


class PlainHost(NamedTuple):
    """A host without a policy for TLS, all of whose routes are plain."""

    key: str
    routes: list[PlainRoute]
    unmatched: Unmatched


def read_plain_host(raw: bytes) -> PlainHost | None:
    """Return what there is of a plain virtual host; None where there is more to it, or something is wrong.

    What is wrong is left to be said by `split_host` and `decode_route`, which read everything.
    """
    try:
        found = _decode_plain(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    host, routes = found.host, []
    if "@" in host or is_pattern(host) or not all(map(_PLAIN_LISTENER, found.listeners)):
        return None
    for each in found.routes:
        path = each.path
        if path.type is PathType.REGEX:
            return None
        routes.append(PlainRoute(each.name, path.type, path.value, each.backends[0].upstream))
    return PlainHost(str(HostKey(host, found.listeners)) if found.listeners else host, routes, found.unmatched)


def split_host(raw: bytes) -> tuple[VirtualHost, list[bytes]]:
    """Return a virtual host without its routes, validated, and the encoded routes.

    Raises:
        DecodeError: it does not follow the contract.
    """
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        routes = msgspec.json.decode(fields.pop("routes"), type=list[msgspec.Raw])
        host = VirtualHost.model_validate_json(msgspec.json.encode({**fields, "routes": []}))
    except (msgspec.MsgspecError, KeyError, ValueError, RecursionError) as error:
        raise DecodeError(f"an entry of hosts cannot be read: {error}") from error
    return host, [bytes(route) for route in routes]


def decode_route(raw: bytes) -> Route:
    """Decode and validate one route; tables up to schema 6 have plugins where this one has fields.

    Raises:
        DecodeError: it does not follow the contract.
    """
    try:
        return plugins_as_fields(Route.model_validate_json(raw))
    except ValueError as error:
        raise DecodeError(f"a route cannot be read: {error}") from error
