"""Which stream route has a port, and on ports that TLS routes share, which has a server name."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from headgate.gateway.net.port_set import PortKey
from headgate.gateway.streams.route import CompiledStream

HTTPS_PORT = 0
"""Stands for the gateway's HTTPS port, whatever its number is."""


class ServerNames:
    """TLS routes by server name: the exact name, then the wildcard for one label, then the route without names."""

    __slots__ = ("_by_name", "_rest")

    def __init__(self, by_name: Mapping[str, CompiledStream], rest: CompiledStream | None) -> None:
        self._by_name = by_name
        self._rest = rest

    def find(self, server_name: str) -> CompiledStream | None:
        """Return the route of a name in lower case, empty if the client sent none."""
        if found := self._by_name.get(server_name):
            return found
        label, dot, parent = server_name.partition(".")
        return (self._by_name.get(f"*.{parent}") if label and dot else None) or self._rest


class PortPlan(NamedTuple):
    """What happens to the connections of a port."""

    only: CompiledStream | None
    """Takes all of them; None: their server name decides."""
    names: ServerNames | None
    expects_proxy_header: bool
    """Connections begin with one: it comes before anything that could tell routes apart, so one route asks for all."""


class StreamPlan(NamedTuple):
    """All ports of a table."""

    ports: Mapping[PortKey, PortPlan]
    problems: Mapping[str, str]
    """By route key: why a route has nothing, or not all, of what it asks for."""


def plan_ports(routes: Iterable[CompiledStream]) -> StreamPlan:
    """Give every port to its routes. Of several that want the same the one with the least key has it."""
    groups: dict[PortKey, list[CompiledStream]] = {}
    for route in sorted(routes, key=lambda route: route.entry.key):
        transport: Literal["tcp", "udp"] = "udp" if route.entry.protocol == "udp" else "tcp"
        groups.setdefault(PortKey(transport, route.entry.port), []).append(route)
    problems = {route.entry.key: route.problem for group in groups.values() for route in group if route.problem}
    return StreamPlan({key: _plan_port(group, problems) for key, group in groups.items()}, problems)


def _plan_port(group: list[CompiledStream], problems: dict[str, str]) -> PortPlan:
    first = group[0]
    if first.entry.protocol == "tls":
        return _plan_shared(group, problems)
    for other in group[1:]:
        problems[other.entry.key] = f"port {first.entry.port} belongs to {first.entry.key}"
    return PortPlan(first, None, first.entry.accept_proxy_protocol)


def _plan_shared(group: list[CompiledStream], problems: dict[str, str]) -> PortPlan:
    by_name: dict[str, CompiledStream] = {}
    rest: CompiledStream | None = None
    expects_proxy_header = False
    for route in group:
        entry = route.entry
        if entry.protocol != "tls":
            problems[entry.key] = f"port {entry.port} belongs to {group[0].entry.key}, which is for TLS"
            continue
        expects_proxy_header |= entry.accept_proxy_protocol
        if not entry.server_names:
            if entry.port == HTTPS_PORT:
                problems[entry.key] = "a route on the HTTPS port needs server names: the rest is HTTP"
            elif rest is not None:
                problems[entry.key] = f"the rest of port {entry.port} belongs to {rest.entry.key}"
            else:
                rest = route
        for name in entry.server_names:
            owner = by_name.setdefault(name, route)
            if owner is not route:
                problems[entry.key] = f"{name} on port {entry.port} belongs to {owner.entry.key}"
    return PortPlan(None, ServerNames(by_name, rest), expects_proxy_header)
