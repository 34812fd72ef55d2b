"""Which listener has a request, and which of its virtual hosts would take it."""

from collections.abc import Sequence
from typing import NamedTuple

from headgate.common.table import OWN_LISTENERS, HostKey, Listener, Route, VirtualHost
from headgate.common.table.hosts import is_pattern
from headgate.common.table.route import Unmatched
from headgate.gateway.model.steps import finish
from headgate.gateway.table.hosts import host_candidates, patterns_taking
from headgate.gateway.table.listener_ports import OWN_HTTP, OWN_HTTPS, OwnPorts, plan_listeners
from headgate.gateway.table.view import TableView


class AskedHost(NamedTuple):
    """Routes that are asked as those of one host."""

    host: str
    """As keys of virtual hosts have it, with the listeners where it names some."""
    routes: tuple[Route, ...]
    hosts: tuple[str, ...]
    """Of each route the virtual host, as above."""
    unmatched: Unmatched

    def name_of(self, position: int) -> str:
        """Return what logs and metrics call a route: `host|route name`."""
        return f"{self.hosts[position]}|{self.routes[position].name}"


def find_listener(
    table: TableView, scheme: str, address: str, port: int | None, host: str, own: OwnPorts
) -> Listener | None:
    """Return the listener that has the requests for a host on a port; None: no listener of that port takes such.

    A port that no listener names is the gateway's own, of which clients may see another number. Listeners with an
    address are asked where a URL has that one, which may leave out the usual port.
    """
    plan = finish(plan_listeners(table.entries(Listener), own))
    at_address = [each for each in plan.ports if not each.is_own and each.address == address]
    if at_address and address:
        wanted = port or (443 if scheme == "https" else 80)
        found = next((each for each in at_address if (each.port, each.protocol) == (wanted, scheme)), None)
        return plan.ports[found].find(host.encode()) if found is not None else None
    named = sorted(each for each in plan.ports if each.port == port)
    if not named:
        return plan.ports[OWN_HTTPS if scheme == "https" else OWN_HTTP].find(host.encode())
    at = next((each for each in named if each.protocol == scheme), None)
    return plan.ports[at].find(host.encode()) if at is not None else None


class AskedHosts(NamedTuple):
    """What a listener has for a host."""

    names: Sequence[str]
    """Hosts that would take it, best first, those included that the table lacks."""
    found: Sequence[AskedHost]


def find_hosts(table: TableView, listener: Listener, host: str) -> AskedHosts:
    """Return the virtual hosts of a listener that take a host, best first, and which were looked for."""
    wanted = frozenset(host_candidates(host))
    keys: dict[str, list[str]] = {}
    for key in table.keys(VirtualHost):
        name = key.partition("@")[0]
        if name in wanted or is_pattern(name):
            read = HostKey.read(key)
            if listener.key in (read.listeners or OWN_LISTENERS):
                keys.setdefault(read.host, []).append(key)
    names = host_candidates(host, patterns_taking(host, keys))
    found = [_merge(table, sorted(keys[name])) for name in dict.fromkeys(names) if name in keys]
    if listener.host_order == "rank-first" and found:
        found = [_join(found)]
    elif found and _competes(found[0]):
        last = next((index for index, host in enumerate(found) if host.unmatched == "404"), len(found) - 1)
        found = [_join(found[: last + 1])]
    return AskedHosts(names, found)


def addresses_with(table: TableView, names: Sequence[str]) -> Sequence[str]:
    """Return the addresses of listeners that have one of these hosts; those of the gateway's own ports are none."""
    addresses = {each.key: each.address for each in table.entries(Listener) if each.address}
    keys = (HostKey.read(key) for key in table.keys(VirtualHost)) if addresses else ()
    listeners = {listener for key in keys if key.host in names for listener in key.listeners}
    return sorted({addresses[listener] for listener in listeners & addresses.keys()})


def _competes(host: AskedHost) -> bool:
    """Tell whether routes of the next hosts may go before those of a host."""
    return host.unmatched == "next-host" and any(route.rank.priority for route in host.routes)


def _merge(table: TableView, keys: Sequence[str]) -> AskedHost:
    parts = [part for key in keys if (part := table.entry(VirtualHost, key)) is not None]
    unmatched: Unmatched = "404" if any(part.unmatched == "404" for part in parts) else "next-host"
    routes = tuple(route for part in parts for route in part.routes)
    return AskedHost(keys[0], routes, tuple(part.key for part in parts for _ in part.routes), unmatched)


def _join(hosts: Sequence[AskedHost]) -> AskedHost:
    """Return hosts whose routes compete as one; of equal ranks the better host goes first."""
    routes = tuple(route for host in hosts for route in host.routes)
    return AskedHost(hosts[0].host, routes, tuple(name for host in hosts for name in host.hosts), "404")
