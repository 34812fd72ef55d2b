"""Listeners as ports have them: which port belongs to which listeners, and what a listener cannot have."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from headgate.common.table import OWN_LISTENERS, Listener, own_listener
from headgate.common.table.hosts import host_name, is_pattern
from headgate.common.table.listener import AccessLogFormat, ClientConnections, ListenerProtocol
from headgate.gateway.model.networks import parse_networks
from headgate.gateway.model.persistent_map import PersistentMap
from headgate.gateway.model.steps import Steps
from headgate.gateway.table.hosts import HostIndex, fault_of_pattern, index_hosts

_NOTHING_SAID: Final = ClientConnections()
MAX_PORTS: Final = 512
"""Ports that a table may have opened besides the gateway's own; those of listeners with lesser keys are. Enough for two
at each address of a /24."""

_AT_ONCE: Final = 16
"""Listeners that are looked at in one step; some have a pattern to compile."""


class ListenerPort(NamedTuple):
    """An address and a port that HTTP is spoken on; of the gateway's own the protocol stands for the address.

    A port may speak both plain and over TLS, told apart by what a connection begins with. It is two of these then.
    """

    address: str
    port: int
    protocol: ListenerProtocol = "http"

    @property
    def is_own(self) -> bool:
        """Whether it is one of the gateway's own two."""
        return not self.port


OWN_HTTP, OWN_HTTPS = ListenerPort("http", 0), ListenerPort("https", 0, "https")


class PortSettings(NamedTuple):
    """What holds for all connections of a port, as it is needed before anything tells its listeners apart."""

    proxy_protocol: bool | None = None
    trusted_proxies: tuple[str, ...] | None = None
    connections: ClientConnections = _NOTHING_SAID
    access_log: AccessLogFormat | None = None


def port_settings(listeners: HostIndex[Listener]) -> PortSettings:
    """Return the settings of a port: of each the first that a listener says."""
    ordered = sorted(listeners.by_name.values(), key=lambda each: (each.key not in OWN_LISTENERS, each.key))
    said: dict[str, Any] = {}
    for each in ordered:
        said = each.connections.model_dump(exclude_none=True) | said
    return PortSettings(
        next((each.proxy_protocol for each in ordered if each.proxy_protocol is not None), None),
        next((each.trusted_proxies for each in ordered if each.trusted_proxies is not None), None),
        ClientConnections(**said) if said else _NOTHING_SAID,
        next((each.access_log for each in ordered if each.access_log is not None), None),
    )


class ListenerPlan(NamedTuple):
    """The ports of a table."""

    ports: Mapping[ListenerPort, HostIndex[Listener]]
    """Of each its listeners by their host patterns."""
    problems: Mapping[str, str]
    """By key: why a listener is not served."""
    refused: Mapping[ListenerPort, str] = {}
    """Why a port that a listener asks for is not opened for it."""


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
    ports: dict[ListenerPort, dict[str, Listener]] = {}
    problems: dict[str, str] = {}
    refused: dict[ListenerPort, str] = {}
    for number, listener in enumerate(entries.values(), 1):
        if listener.protocol not in OWN_LISTENERS:
            continue
        for port, wanted in _ports_of(listener, own):
            others = ports.get(port, {})
            problem = _problem(listener, others) or _excess(port, ports)
            if problem:
                problems[listener.key] = problem
                refused[wanted] = problem
            else:
                ports.setdefault(port, {})[listener.host] = listener
        if number % _AT_ONCE == 0:
            yield
    planned = {}
    for port, group in ports.items():
        by_name = {host_name(host).encode(): listener for host, listener in group.items()}
        planned[port] = yield from index_hosts(HostIndex(PersistentMap.of({})), PersistentMap.of(by_name), by_name)
    return ListenerPlan(planned, problems, {wanted: why for wanted, why in refused.items() if wanted.port})


def _excess(port: ListenerPort, ports: Mapping[ListenerPort, object]) -> str:
    if port in ports or len(ports) < MAX_PORTS + len(OWN_LISTENERS):
        return ""
    return f"port {port.port} is one too many: {MAX_PORTS} besides the gateway's own are opened"


def _ports_of(listener: Listener, own: OwnPorts) -> Iterator[tuple[ListenerPort, ListenerPort]]:
    """Yield the ports of a listener, each with what the listener says of it: of the gateway's own that is a number."""
    for address in (listener.address, *listener.further_addresses):
        wanted = ListenerPort(address, listener.port, listener.protocol)
        if not listener.port:
            yield (OWN_HTTPS if listener.protocol == "https" else OWN_HTTP), wanted
        else:
            yield (wanted if address else own.get((listener.protocol, listener.port), wanted)), wanted


def _problem(listener: Listener, others: Mapping[str, Listener]) -> str:
    """Say why a listener cannot be on a port with others; empty if it can."""
    try:
        parse_networks(listener.trusted_proxies or ())
    except ValueError as error:
        return f"trusted_proxies: {error}"
    if is_pattern(listener.host) and (fault := fault_of_pattern(listener.host)):
        return fault
    same = others.get(listener.host)
    return f"host {listener.host} on this port belongs to listener {same.key}" if same is not None else ""
