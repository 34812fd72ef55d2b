"""Where a route is asked: its hosts, on the ports of the listeners that it is attached to."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import GRPC_ROUTE, HTTP_ROUTE
from headgate.common.status import ConditionType
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.attachment import Attachment, attach
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener, is_shadowed, narrower
from headgate.translator.dialects.gateway_api.gateways.misdirected import OtherListeners, other_listeners
from headgate.translator.dialects.gateway_api.gateways.parameters import parameters_of
from headgate.translator.dialects.gateway_api.gateways.ports import StreamTransport, stream_port
from headgate.translator.dialects.gateway_api.hostnames import EVERY_HOST, precedence, takes
from headgate.translator.dialects.gateway_api.hosts import HostKeys
from headgate.translator.dialects.gateway_api.members import lost_at, namespaces_of
from headgate.translator.dialects.gateway_api.parents import find_parent
from headgate.translator.dialects.gateway_api.rivals import Lost, RouteName
from headgate.translator.dialects.gateway_api.routes.redirects import Origin
from headgate.translator.dialects.gateway_api.stored import Parent, RouteFacts
from headgate.translator.fragments.status_part import SaidCondition
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.sources.gateways import GatewayName
from headgate.translator.world.graph import Lookups

_RIVALS: Final = (HTTP_ROUTE.kind, GRPC_ROUTE.kind)


class PlacedHost(NamedTuple):
    """A virtual host."""

    key: str
    """As claims have it."""
    origin: Origin | None
    """Its listener, if it is to be told; None for all that have it."""
    others: OtherListeners | None = None
    """Whose connections its requests must not come by."""
    plugins: tuple[PluginUse, ...] = ()
    """Of the parameters of its Gateways."""
    gateways: tuple[str, ...] = ()
    """Its Gateways, if they are to be told."""
    precedence: int = 0
    """Negative where the route's own hostname is wider than the host; routes of less go last, whatever the path."""


class _Spot(NamedTuple):
    hostname: str
    listener: str
    origin: Origin
    others: OtherListeners | None
    gateway: str
    precedence: int = 0


class StreamSpot(NamedTuple):
    """Connections of one listener that a route wants."""

    transport: StreamTransport
    port: int
    """As stream routes have it."""
    hostname: str
    """Of TLS, that of its server names."""
    without: tuple[str, ...]
    """Hostnames among them that belong to more specific listeners."""
    ends_tls: bool
    listener: str = ""
    """Key of the table's listener, if it is on addresses of its Gateway's own."""
    precedence: int = 0
    """As of hosts."""


class Places(NamedTuple):
    """Where a route is served, and where it is not."""

    spots: tuple[_Spot, ...]
    streams: tuple[StreamSpot, ...]
    """The same for routes of streams."""
    refused: Mapping[str, SaidCondition | None]
    """By the field of each parent that is ours: why the route is not accepted there; None if it is."""
    namespaces: tuple[str, ...]
    """That share its hosts."""
    plugins: Mapping[str, tuple[PluginUse, ...]] = {}
    """Of parameters, by the Gateway."""

    def hosts_of(self, *, by_origin: bool, by_gateway: bool = False) -> Iterator[PlacedHost]:
        """Yield the virtual hosts; those of each listener, or of each Gateway, apart if something depends on it."""
        hosts: dict[tuple[Origin | None, OtherListeners | None, tuple[str, ...], int], HostKeys] = {}
        sharing: dict[tuple[str, str], dict[str, None]] = {}
        for spot in self.spots if self.plugins or by_gateway else ():
            sharing.setdefault((spot.hostname, spot.listener), {})[spot.gateway] = None
        for spot in self.spots:
            all_gateways = sharing.get((spot.hostname, spot.listener), ())
            gateways = tuple(each for each in all_gateways if by_gateway or each in self.plugins)
            apart = spot.origin if by_origin else None, spot.others, gateways, spot.precedence
            hosts.setdefault(apart, HostKeys()).add(spot.hostname, spot.listener)
        for (origin, others, gateways, rank), keys in hosts.items():
            plugins = tuple(use for gateway in gateways for use in self.plugins.get(gateway, ()))
            told = tuple(sorted(gateways)) if by_gateway else ()
            yield from (PlacedHost(key, origin, others, plugins, told, rank) for key in keys)


def find_places(route: RouteFacts, lookups: Lookups, problems: list[Problem]) -> Places:
    """Return where a route is served; why it is not served at a parent goes to `problems`."""
    spots: dict[_Spot, None] = {}
    streams: dict[StreamSpot, None] = {}
    refused: dict[str, SaidCondition | None] = {}
    namespaces: set[str] = set()
    plugins: dict[str, tuple[PluginUse, ...]] = {}
    for parent in route.parents:
        known = find_parent(parent, lookups)
        if known is None:
            continue
        parameters = parameters_of(lookups, known.gateway.namespace, known.gateway.name)
        gateway = str(known.gateway)
        if parameters.plugins:
            plugins[gateway] = parameters.plugins
        attached = attach(route, parent, known.listeners, lookups)
        if not attached.reason and known.pending:
            attached = Attachment({}, "Pending", known.pending)
        elif not attached.reason and parameters.fault is not None:
            attached = Attachment({}, "Pending", f"Gateway {gateway} is not accepted; its status says why")
        if attached.hosts and route.kind in _RIVALS:
            attached = _but_for_rivals(attached, route, parent, lost_at(lookups, parent), problems)
        refused[parent.field] = _why_refused(attached, parent, problems)
        everything = known.merged.accepted
        served = [each for each in known.listeners if each.id not in known.merged.faults]
        found = tuple(_spots(route, attached, served, everything, gateway))
        spots |= dict.fromkeys(found)
        connections = tuple(_stream_spots(route, attached, served, everything))
        streams |= dict.fromkeys(connections)
        problems += _shadowed(
            attached,
            served,
            {spot.hostname for spot in found} | {spot.hostname for spot in connections},
            parent,
            known.gateway,
        )
        if attached.hosts:
            namespaces |= namespaces_of(lookups, known.gateway)
    return Places(tuple(spots), tuple(streams), refused, tuple(sorted(namespaces - {route.namespace})), plugins)


def _but_for_rivals(
    attached: Attachment, route: RouteFacts, parent: Parent, lost: Lost, problems: list[Problem]
) -> Attachment:
    """Return how a route stands without the listeners whose hosts an older route of the other kind has."""
    own = RouteName.of(route)
    winners = {name: lost[own, name] for name in attached.hosts if (own, name) in lost}
    if not winners:
        return attached
    listener, winner = next(iter(winners.items()))
    message = (
        f"{winner}, which goes before, has hosts of this route at listener {listener} of {parent}: of HTTPRoutes and "
        "GRPCRoutes the oldest has them alone; give this one other hostnames, or another listener"
    )
    left = {name: hosts for name, hosts in attached.hosts.items() if name not in winners}
    if not left:
        return Attachment({}, "HostnameConflict", message)
    problems.append(warn("HostnameConflict", parent.field, message, parent.ref.name))
    return Attachment(left)


def _shadowed(
    attached: Attachment,
    served: Sequence[GatewayListener],
    placed: Collection[str],
    parent: Parent,
    gateway: GatewayName,
) -> Iterator[Problem]:
    """Warn of hostnames that the route has in vain, as a more specific listener has their requests."""
    hostnames = {name: each.spec.name for each in served for name in attached.hosts.get(each.spec.name, ())}
    for hostname, listener in hostnames.items():
        if hostname not in placed:
            message = (
                f"requests for {hostname} belong to a more specific listener of Gateway {gateway} than "
                f"{listener}; attach the route to that one"
            )
            yield warn("HostnameOfOtherListener", parent.field, message, hostname)


def _why_refused(attached: Attachment, parent: Parent, problems: list[Problem]) -> SaidCondition | None:
    if not attached.reason:
        return None
    problems.append(refuse(attached.reason, parent.field, attached.message, parent.ref.name))
    return SaidCondition(ConditionType.ACCEPTED, "False", attached.reason, attached.message)


def _spots(
    route: RouteFacts,
    attached: Attachment,
    own: Sequence[GatewayListener],
    listeners: Sequence[GatewayListener],
    gateway: str,
) -> Iterator[_Spot]:
    for listener in own:
        transport = listener.transport
        if listener.spec.name not in attached.hosts or not (transport == "http" or transport == "https"):
            continue
        others = other_listeners(listener, listeners)
        for hostname in attached.hosts[listener.spec.name]:
            if not is_shadowed(listener, hostname, listeners):
                rank = precedence(hostname, route.hostnames)
                yield _Spot(hostname, listener.key, Origin(transport, listener.spec.port), others, gateway, rank)


def _stream_spots(
    route: RouteFacts, attached: Attachment, own: Sequence[GatewayListener], listeners: Sequence[GatewayListener]
) -> Iterator[StreamSpot]:
    for listener in own:
        transport = listener.transport
        if transport is None or transport == "http" or transport == "https":
            continue
        at = listener.key if listener.has_own_address else ""
        port = listener.spec.port if at else stream_port(transport, listener.spec.port)
        for hostname in attached.hosts.get(listener.spec.name, ()):
            if transport != "tls":
                yield StreamSpot(transport, port, EVERY_HOST, (), False, at)
            elif not is_shadowed(listener, hostname, listeners):
                without = {name for name in narrower(listener, listeners) if takes(hostname, name)}
                rank = precedence(hostname, route.hostnames)
                yield StreamSpot(transport, port, hostname, tuple(sorted(without)), listener.ends_tls, at, rank)
