"""Which stream route has a port, and on ports that TLS routes share, which has a server name."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from headgate.common.patterns import Pattern
from headgate.common.table import Condition, Listener
from headgate.common.table.hosts import MAX_HOST_PATTERNS, is_pattern, pattern_order
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.patterns import compile_pattern
from headgate.gateway.net.port_set import PortKey
from headgate.gateway.streams.conditions import Asked
from headgate.gateway.streams.route import CompiledStream

NO_LISTENERS: Final[Mapping[str, Listener]] = MappingProxyType({})
MAX_LISTENER_PORTS: Final = 512
"""Ports, counted by address, that are opened for routes on listeners; those of routes with lesser keys are."""
HTTPS_PORT = 0
"""Stands for the gateway's HTTPS port, whatever its number is."""


class ServerNames:
    """TLS routes by server name, in the order that `StreamRoute` documents.

    Args:
        by_name: those with names and wildcards; of each name those that ask for more first.
        patterns: those with patterns, best first.
        rest: those without names.
    """

    __slots__ = ("_by_name", "_patterns", "_rest")

    def __init__(
        self,
        by_name: Mapping[str, Sequence[CompiledStream]],
        patterns: Sequence[tuple[Pattern, CompiledStream]],
        rest: Sequence[CompiledStream],
    ) -> None:
        self._by_name = by_name
        self._patterns = patterns
        self._rest = rest

    @property
    def has_rest(self) -> bool:
        """Whether a route takes what the others do not."""
        return bool(self._rest)

    def find(
        self, server_name: str, alpn: Collection[str] = (), address: str = "", *, has_rest: bool = True
    ) -> CompiledStream | None:
        """Return the route of a name in lower case, empty if the client sent none.

        Args:
            server_name: that the client asks for.
            alpn: protocols that it offers.
            address: of the client.
            has_rest: it may be one without names.
        """
        asked = Asked(address, server_name, alpn)
        return _best(each for each in self._candidates(server_name, has_rest) if each.takes(asked))

    def _candidates(self, server_name: str, has_rest: bool) -> Iterator[CompiledStream]:
        """Yield the routes that take a name; of equal priority the first is the best."""
        yield from self._by_name.get(server_name, ())
        label, dot, parent = server_name.partition(".")
        if label and dot:
            yield from self._by_name.get(f"*.{parent}", ())
        while label and dot:
            yield from self._by_name.get(f"**.{parent}", ())
            label, dot, parent = parent.partition(".")
        text = server_name.encode()
        yield from (route for pattern, route in self._patterns if pattern.search(text) is not None)
        if has_rest:
            yield from self._rest


def _best(routes: Iterable[CompiledStream]) -> CompiledStream | None:
    return max(routes, key=lambda route: route.entry.priority, default=None)


class PortPlan(NamedTuple):
    """What happens to the connections of a port."""

    only: CompiledStream | None
    """Takes all of them, or, where `names` are, those that are not TLS."""
    names: ServerNames | None
    """Of TLS connections the server name decides."""
    expects_proxy_header: bool
    """Connections begin with one: it comes before anything that could tell routes apart, so one route asks for all."""
    conditional: tuple[CompiledStream, ...] = ()
    """Those of `only` that ask for more; the others' connections are for it."""

    @property
    def has_plain(self) -> bool:
        """Whether connections that are not TLS have a route."""
        return self.only is not None or bool(self.conditional)

    def find_plain(self, address: str) -> CompiledStream | None:
        """Return the route of a client whose connection is not TLS, or need not be."""
        if not self.conditional:
            return self.only
        asked = Asked(address)
        rest = (self.only,) if self.only is not None else ()
        return _best((*(route for route in self.conditional if route.takes(asked)), *rest))


class StreamPlan(NamedTuple):
    """All ports of a table."""

    ports: Mapping[PortKey, PortPlan]
    problems: Mapping[str, str]
    """By route key: why a route has nothing, or not all, of what it asks for."""


def udp_numbers(routes: Iterable[CompiledStream]) -> frozenset[int]:
    """Return the numbers of UDP ports that routes ask for, at whatever address."""
    return frozenset(route.entry.port for route in routes if route.entry.protocol == "udp")


def plan_ports(routes: Iterable[CompiledStream], listeners: Mapping[str, Listener] = NO_LISTENERS) -> StreamPlan:
    """Give every port to its routes. Of several that want the same the one with the least key has it.

    Args:
        routes: all of the table.
        listeners: that routes may be on, by key.
    """
    groups: dict[PortKey, list[CompiledStream]] = {}
    on_listeners: set[PortKey] = set()
    refused: dict[str, str] = {}
    for route in sorted(routes, key=lambda route: route.entry.key):
        transport: Literal["tcp", "udp"] = "udp" if route.entry.protocol == "udp" else "tcp"
        for address in _addresses_of(route, listeners):
            key = PortKey(transport, route.entry.port, address)
            if route.entry.listener and key not in groups:
                if len(on_listeners) >= MAX_LISTENER_PORTS:
                    refused[route.entry.key] = f"{key} is one too many: {MAX_LISTENER_PORTS} of listeners are opened"
                    continue
                on_listeners.add(key)
            groups.setdefault(key, []).append(route)
    problems = refused | {
        route.entry.key: route.problem for group in groups.values() for route in group if route.problem
    }
    return StreamPlan({key: _plan_port(group, problems) for key, group in groups.items()}, problems)


def _addresses_of(route: CompiledStream, listeners: Mapping[str, Listener]) -> tuple[str, ...]:
    if not route.entry.listener:
        return (route.entry.address,)
    listener = listeners.get(route.entry.listener)
    return (listener.address, *listener.further_addresses) if listener is not None else ()


def _plan_port(group: list[CompiledStream], problems: dict[str, str]) -> PortPlan:
    over_tls = [route for route in group if route.entry.protocol == "tls"]
    plain: dict[Condition | None, CompiledStream] = {}
    for route in group:
        if route.entry.protocol == "tls":
            continue
        owner = plain.setdefault(route.entry.when, route)
        if owner is not route:
            problems[route.entry.key] = f"port {route.entry.port} belongs to {owner.entry.key}"
    names = _plan_names(over_tls, problems) if over_tls else None
    expects = any(route.entry.accept_proxy_protocol for route in [*plain.values(), *over_tls])
    only = plain.pop(None, None)
    return PortPlan(only, names, expects, tuple(plain.values()))


def _plan_names(group: list[CompiledStream], problems: dict[str, str]) -> ServerNames:
    by_name: dict[str, dict[tuple[tuple[str, ...], Condition | None], CompiledStream]] = {}
    for route in sorted(group, key=lambda each: not (each.entry.alpn or each.entry.when)):
        entry = route.entry
        for name in entry.server_names or ("",):
            owner = by_name.setdefault(name, {}).setdefault((entry.alpn, entry.when), route)
            if owner is not route:
                what = name or "the rest"
                where = f"{'of' if not name else 'on'} {_shown(entry.port)}"
                problems[entry.key] = f"{what} {where} belongs to {owner.entry.key}"
    routes = {name: [*each.values()] for name, each in by_name.items()}
    rest = routes.pop("", [])
    patterns = _compile_patterns({name: routes.pop(name) for name in [*routes] if is_pattern(name)}, problems)
    return ServerNames(routes, patterns, rest)


def _shown(port: int) -> str:
    return "the HTTPS port" if port == HTTPS_PORT else f"port {port}"


def _compile_patterns(
    by_name: Mapping[str, Sequence[CompiledStream]], problems: dict[str, str]
) -> list[tuple[Pattern, CompiledStream]]:
    """Return patterns with their routes, best first, and leave out those that cannot be had."""
    compiled: list[tuple[Pattern, CompiledStream]] = []
    ordered = ((name, route) for name in sorted(by_name, key=pattern_order) for route in by_name[name])
    for name, route in ordered:
        if len(compiled) == MAX_HOST_PATTERNS:
            problems[route.entry.key] = f"a port has at most {MAX_HOST_PATTERNS} patterns; {name!r} is one too many"
            continue
        try:
            compiled.append((compile_pattern(name[1:], "server_names"), route))
        except BadMatch as bad:
            problems[route.entry.key] = str(bad)
    return compiled
