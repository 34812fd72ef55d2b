"""`stream-snippet`: servers of nginx' stream block, as ports that the gateways open.

All or nothing, as with the other snippets: `server` and `upstream` blocks with the directives below are followed, and
another one refuses the snippet with its line.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.grammar import Directive, parse
from headgate.translator.snippets.values import read_seconds, read_switch

_CONNECT_S: Final = 60.0
_IDLE_S: Final = 600.0
"""nginx' own times."""
_ANY: Final = frozenset(("", "*", "0.0.0.0", "[::]"))  # noqa: S104 - what nginx is told, not where we listen
_LISTEN: Final = re.compile(r"(?:(\*|[0-9.]+|\[[0-9a-fA-F:.]+\]):)?([0-9]{1,5})")
_TARGET: Final = re.compile(r"([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(?::([0-9]{1,5}))?")
_WEIGHT: Final = re.compile(r"weight=([0-9]{1,5})")
_MOST_SERVERS: Final = 100
_LISTEN_OPTIONS: Final = re.compile(r"reuseport|bind|(?:backlog|rcvbuf|sndbuf|fastopen|ipv6only|so_keepalive)=.*")
_INNER: Final = (
    "access_log error_log keepalive preread_buffer_size preread_timeout proxy_buffer_size proxy_next_upstream "
    "proxy_next_upstream_timeout proxy_next_upstream_tries proxy_socket_keepalive resolver resolver_timeout "
    "status_zone tcp_nodelay zone"
)
_NO_COUNTERPART: Final = frozenset(_INNER.split())
"""Directives about nginx' own memory, logs and look-ups: left without effect."""


class Target(NamedTuple):
    """Where connections go."""

    address: str
    """IP address or DNS name."""
    port: int
    weight: int = 1


@dataclass(frozen=True, slots=True)
class StreamServer:
    """One port, and where its connections go."""

    port: int
    is_udp: bool
    targets: tuple[Target, ...]
    takes_proxy_header: bool = False
    sends_proxy_header: bool = False
    connect_timeout_s: float = _CONNECT_S
    idle_timeout_s: float = _IDLE_S
    udp_responses: int | None = None
    networks: tuple[str, ...] = ()
    """Clients that may connect; all without any."""


@dataclass(slots=True)
class _Server:
    """What a server block says, as far as it was read."""

    upstreams: Mapping[str, tuple[Target, ...]]
    listens: dict[tuple[int, bool], bool] = field(default_factory=dict)
    """Whether connections begin with a PROXY header, by port and whether it is of UDP."""
    targets: tuple[Target, ...] = ()
    networks: list[str] = field(default_factory=list)
    is_closed: bool = False
    """`deny all` has come."""
    said: dict[str, Any] = field(default_factory=dict)


def read_streams(text: str) -> tuple[StreamServer, ...]:
    """Return the servers of a snippet. Raises SnippetError."""
    upstreams: dict[str, tuple[Target, ...]] = {}
    blocks: list[Directive] = []
    for directive in parse(text):
        if directive.name == "upstream" and directive.block is not None and len(directive.args) == 1:
            upstreams[directive.args[0]] = _read_upstream(directive, directive.block)
        elif directive.name == "server" and directive.block is not None and not directive.args:
            blocks.append(directive)
        elif directive.block is not None or directive.name not in _NO_COUNTERPART:
            raise directive.error("is not followed here")
    servers = tuple(server for block in blocks for server in _read_server(block, upstreams))
    if len(servers) > _MOST_SERVERS:
        raise SnippetError(f"opens {len(servers)} ports, and at most {_MOST_SERVERS} are taken", 1)
    return servers


def _read_upstream(upstream: Directive, block: tuple[Directive, ...]) -> tuple[Target, ...]:
    targets = []
    for directive in block:
        if directive.name in _NO_COUNTERPART:
            continue
        if directive.name != "server" or directive.block is not None or not directive.args:
            raise directive.error("is not followed here")
        weight = 1
        for option in directive.args[1:]:
            found = _WEIGHT.fullmatch(option)
            if found is None:
                raise directive.error(f"{option[:40]!r} is not followed here")
            weight = int(found[1])
        targets.append(_target(directive, directive.args[0])._replace(weight=weight))
    if not targets:
        raise upstream.error("has no servers")
    return tuple(targets)


def _read_server(server: Directive, upstreams: Mapping[str, tuple[Target, ...]]) -> list[StreamServer]:
    assert server.block is not None
    found = _Server(upstreams)
    for directive in server.block:
        read = _DIRECTIVES.get(directive.name)
        if read is not None and directive.block is None and directive.args:
            read(directive, found)
        elif directive.block is not None or directive.name not in _NO_COUNTERPART:
            raise directive.error("is not followed here")
    if not found.listens or not found.targets:
        raise server.error("needs listen and proxy_pass")
    if found.networks and not found.is_closed:
        raise server.error("allow is followed with deny all behind it only")
    return [
        StreamServer(port, is_udp, found.targets, takes_header, networks=tuple(found.networks), **found.said)
        for (port, is_udp), takes_header in found.listens.items()
    ]


def _listen(directive: Directive, server: _Server) -> None:
    place = _LISTEN.fullmatch(directive.args[0])
    if place is None or not 0 < int(place[2]) < 65536:
        raise directive.error(f"{directive.args[0][:40]!r} is not a port from 1 to 65535")
    if (place[1] or "") not in _ANY:
        raise directive.error("ports are opened at all addresses of a gateway; leave the address out")
    options = set(directive.args[1:])
    unknown = sorted(one for one in options - {"udp", "proxy_protocol"} if not _LISTEN_OPTIONS.fullmatch(one))
    if unknown:
        raise directive.error(f"{unknown[0][:40]!r} is not followed here")
    server.listens[int(place[2]), "udp" in options] = "proxy_protocol" in options


def _pass(directive: Directive, server: _Server) -> None:
    name = directive.args[0]
    server.targets = server.upstreams[name] if name in server.upstreams else (_target(directive, name),)


def _target(directive: Directive, text: str) -> Target:
    found = _TARGET.fullmatch(text)
    if found is None or not found[2] or not 0 < int(found[2]) < 65536:
        raise directive.error(f"{text[:60]!r} is neither an upstream of the snippet nor an address with a port")
    return Target(found[1].strip("[]"), int(found[2]))


def _seconds_to(name: str) -> "_Read":
    def read(directive: Directive, server: _Server) -> None:
        seconds = read_seconds(directive, directive.args[0])
        if not seconds:
            raise directive.error("must be more than 0")
        server.said[name] = seconds

    return read


def _proxy_protocol(directive: Directive, server: _Server) -> None:
    server.said["sends_proxy_header"] = read_switch(directive, directive.args[0])


def _responses(directive: Directive, server: _Server) -> None:
    text = directive.args[0]
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise directive.error(f"{text[:40]!r} is no number")
    server.said["udp_responses"] = int(text)


def _allow(directive: Directive, server: _Server) -> None:
    if server.is_closed:
        raise directive.error("stands behind deny all")
    try:
        server.networks.append(str(ipaddress.ip_network(directive.args[0])))
    except ValueError as error:
        raise directive.error(f"{directive.args[0][:60]!r} is no address or network") from error


def _deny(directive: Directive, server: _Server) -> None:
    if directive.args != ("all",) or not server.networks:
        raise directive.error("is followed as deny all behind allow only")
    server.is_closed = True


_Read = Callable[[Directive, _Server], None]
_DIRECTIVES: Final[Mapping[str, _Read]] = {
    "allow": _allow,
    "deny": _deny,
    "listen": _listen,
    "proxy_connect_timeout": _seconds_to("connect_timeout_s"),
    "proxy_pass": _pass,
    "proxy_protocol": _proxy_protocol,
    "proxy_responses": _responses,
    "proxy_timeout": _seconds_to("idle_timeout_s"),
}
