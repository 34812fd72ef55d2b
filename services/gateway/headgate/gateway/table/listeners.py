"""Listeners as ports have them: which port belongs to which listeners, and what a listener cannot have."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.common.table import OWN_LISTENERS, Listener, own_listener
from headgate.common.table.hosts import host_name, is_pattern
from headgate.gateway.model.steps import Steps
from headgate.gateway.table.hosts import HostIndex, fault_of_pattern, index_hosts


class ListenerPort(NamedTuple):
    """An address and a port that HTTP is spoken on; of the gateway's own the protocol stands for the address."""

    address: str
    port: int

    @property
    def is_own(self) -> bool:
        """Whether it is one of the gateway's own two."""
        return not self.port


OWN_HTTP, OWN_HTTPS = (ListenerPort(key, 0) for key in OWN_LISTENERS)


class ListenerPlan(NamedTuple):
    """The ports of a table."""

    ports: Mapping[ListenerPort, HostIndex[Listener]]
    """Of each its listeners, all of one protocol, by their host patterns."""
    problems: Mapping[str, str]
    """By key: why a listener is not served."""


OwnPorts = Mapping[tuple[str, int], ListenerPort]
"""The gateway's own ports by protocol and number, those included that clients see."""


def own_ports(http: Iterable[int], https: Iterable[int]) -> OwnPorts:
    """Return the gateway's own ports by their numbers; 0 is none."""
    numbers = {("http", number): OWN_HTTP for number in http} | {("https", number): OWN_HTTPS for number in https}
    return {known: port for known, port in numbers.items() if known[1]}


def plan_listeners(listeners: Iterable[Listener], own: OwnPorts) -> Steps[ListenerPlan]:
    """Give every port to its listeners, in steps. Of several that want the same the one with the least key has it, and
    the gateway's own go before all.
    """
    entries = {key: own_listener(key) for key in OWN_LISTENERS}
    entries |= {each.key: each for each in sorted(listeners, key=lambda each: each.key)}
    ports: dict[ListenerPort, list[Listener]] = {}
    problems: dict[str, str] = {}
    for listener in entries.values():
        if listener.protocol not in OWN_LISTENERS:
            continue
        port = _port_of(listener, own)
        problem = _problem(listener, ports.get(port, ()))
        if problem:
            problems[listener.key] = problem
        else:
            ports.setdefault(port, []).append(listener)
    planned = {}
    for port, group in ports.items():
        by_name = {host_name(listener.host).encode(): listener for listener in group}
        planned[port] = yield from index_hosts(HostIndex({}), by_name, by_name)
    return ListenerPlan(planned, problems)


def _port_of(listener: Listener, own: OwnPorts) -> ListenerPort:
    if not listener.port:
        return ListenerPort(listener.protocol, 0)
    wanted = ListenerPort(listener.address, listener.port)
    return own.get((listener.protocol, listener.port), wanted) if not listener.address else wanted


def _problem(listener: Listener, others: Sequence[Listener]) -> str:
    """Say why a listener cannot be on a port with others; empty if it can."""
    if is_pattern(listener.host) and (fault := fault_of_pattern(listener.host)):
        return fault
    for other in others:
        if other.protocol != listener.protocol:
            return f"port {listener.port} speaks {other.protocol} for listener {other.key}"
        if other.host == listener.host:
            return f"host {listener.host} on this port belongs to listener {other.key}"
    return ""
