"""The listeners of a Gateway, as they are written, and why one cannot be had.

All that is decided here follows from the Gateway and the settings alone, so that routes can ask for it too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

from headgate.common.problems import Problem
from headgate.common.resources import (
    GATEWAY,
    GATEWAY_GROUP,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    TCP_ROUTE,
    TLS_ROUTE,
    UDP_ROUTE,
    JsonObject,
    ObjectRef,
    ResourceKind,
)
from headgate.common.status import RouteKind
from headgate.common.table import OWN_LISTENERS
from headgate.translator.dialects.gateway_api.gateways.ports import (
    TRANSPORTS,
    StreamTransport,
    Transport,
    listener_key,
    stream_port,
    why_unavailable,
)
from headgate.translator.dialects.gateway_api.hostnames import normal, takes
from headgate.translator.dialects.gateway_api.models.gateway import ListenerSpec, RouteGroupKind
from headgate.translator.fragments.own_addresses import key_at
from headgate.translator.manifests.specs import Spec
from headgate.translator.world.entry_points import EntryPoint


def _kinds(*kinds: ResourceKind) -> tuple[RouteKind, ...]:
    return tuple(RouteKind(GATEWAY_GROUP, kind.kind) for kind in kinds)


_KINDS: Final = {
    "HTTP": _kinds(HTTP_ROUTE, GRPC_ROUTE),
    "HTTPS": _kinds(HTTP_ROUTE, GRPC_ROUTE),
    "TLS": _kinds(TLS_ROUTE),
    "TCP": _kinds(TCP_ROUTE),
    "UDP": _kinds(UDP_ROUTE),
}
"""Kinds of routes that are served, by protocol."""
_SPOKEN: Final = {"HTTP": "HTTP", "HTTPS": "TLS", "TLS": "TLS", "TCP": "TCP", "UDP": "UDP"}
"""What is spoken on a port for a protocol."""


def kind_of(ref: ObjectRef) -> str:
    """Return the kind of an object that has listeners: Gateway or ListenerSet."""
    return LISTENER_SET.kind if ref.resource == LISTENER_SET.resource else GATEWAY.kind


class ListenerId(NamedTuple):
    """Which listener of a Gateway it is, among its own and those of its ListenerSets."""

    owner: str
    """Namespace and name of the ListenerSet; empty for the Gateway itself."""
    name: str


class GatewayListener(NamedTuple):
    """A listener of a Gateway. All of it is there at once, as each route of the Gateway asks."""

    spec: ListenerSpec
    field: str
    hostname: str
    """Whose requests it takes."""
    transport: Transport | StreamTransport | None
    """What is spoken there; None for protocols that are not served."""
    key: str
    """Key of the table's listener; empty for a protocol that is not served."""
    kinds: tuple[RouteKind, ...]
    """Kinds of routes that it takes, of those that are served."""
    has_own_address: bool = False
    """Whether it is on addresses of its Gateway's own, where no other Gateway has listeners."""
    owner: str = ""
    """Namespace and name of the ListenerSet that it is of; empty for the Gateway itself."""

    @classmethod
    def of(cls, spec: ListenerSpec, field: str, place: str, owner: str) -> Self:
        """Return a listener by what is written of it; `place` as `own_place` gives it."""
        transport = TRANSPORTS.get(spec.protocol)
        shared = listener_key(transport, spec.port) if transport is not None else ""
        is_apart = bool(place) and transport is not None
        key = key_at(place, f"{owner}/{spec.name}" if owner else spec.name) if is_apart else shared
        allowed, served = set(map(_kind, spec.allowed_routes.kinds)), _KINDS.get(spec.protocol, ())
        kinds = tuple(kind for kind in served if not allowed or kind in allowed)
        return cls(spec, field, normal(spec.hostname), transport, key, kinds, is_apart, owner)

    @property
    def id(self) -> ListenerId:
        """Which one it is."""
        return ListenerId(self.owner, self.spec.name)

    @property
    def own_port(self) -> int:
        """Port that gateways open for it; 0 for their own ports, and for a protocol that is not served."""
        is_theirs = self.key in OWN_LISTENERS or (self.transport == "tls" and not stream_port("tls", self.spec.port))
        return 0 if not self.key or (is_theirs and not self.has_own_address) else self.spec.port

    @property
    def spoken(self) -> str:
        """What is spoken on its port, as far as listeners have to agree on that."""
        return _SPOKEN.get(self.spec.protocol, self.spec.protocol)

    @property
    def ends_tls(self) -> bool:
        """Whether TLS ends there, so that it needs a certificate."""
        is_passed = self.spec.tls is not None and self.spec.tls.mode == "Passthrough"
        return self.transport == "https" or (self.transport == "tls" and not is_passed)

    @property
    def served_kinds(self) -> tuple[RouteKind, ...]:
        """Kinds of routes that are served by its protocol."""
        return _KINDS.get(self.spec.protocol, ())

    @property
    def unknown_kinds(self) -> tuple[RouteGroupKind, ...]:
        """Kinds that it allows and that are not served there."""
        return tuple(kind for kind in self.spec.allowed_routes.kinds if _kind(kind) not in self.kinds)


def _kind(written: RouteGroupKind) -> RouteKind:
    return RouteKind(written.group, written.kind)


class ListenerFault(NamedTuple):
    """Why a listener is not accepted."""

    reason: str
    field: str
    message: str
    value: str
    is_conflict: bool = False
    """Whether other listeners of the Gateway leave no room for it."""


Faults = Mapping[ListenerId, ListenerFault]
MAX_LISTENERS: Final = 512
"""Of a Gateway, with those of its ListenerSets: each is compared with the others."""


def read_listeners(
    manifest: JsonObject, problems: list[Problem], place: str, owner: str = ""
) -> tuple[GatewayListener, ...]:
    """Return the listeners of a Gateway or a ListenerSet; mistakes go to `problems`.

    Args:
        manifest: the object.
        problems: takes mistakes.
        place: of the Gateway, as `own_place` gives it.
        owner: as `GatewayListener.owner`.
    """
    parts = Spec(manifest.get("spec"), problems).each("listeners", ListenerSpec)
    return tuple(GatewayListener.of(part.value, part.field, place, owner) for part in parts)


def faults_of(groups: Iterable[Sequence[GatewayListener]], entry_points: Iterable[EntryPoint]) -> Faults:
    """Return which listeners are not accepted.

    Args:
        groups: those of the Gateway, then those of each of its ListenerSets in their order. Of listeners of one group
            that are in conflict none is accepted; those of an earlier one go before.
        entry_points: whose ports are taken.
    """
    points = tuple(entry_points)
    faults: dict[ListenerId, ListenerFault] = {}
    accepted: list[GatewayListener] = []
    for group in groups:
        faults |= {each.id: fault for each in group if (fault := _fault(each, points)) is not None}
        earlier = {each.id: fault for each, fault in _later(group, accepted)}
        among = ((each.id, fault) for each, fault in _conflicts([each for each in group if each.id not in earlier]))
        for listener, fault in (*earlier.items(), *among):
            faults.setdefault(listener, fault)
        accepted += (each for each in group if each.id not in faults)
        for each in accepted[MAX_LISTENERS:]:
            message = f"a Gateway and its ListenerSets have {MAX_LISTENERS} listeners at most; leave some out"
            faults[each.id] = ListenerFault("TooManyListeners", each.field, message, each.spec.name)
        del accepted[MAX_LISTENERS:]
    return faults


def _later(
    group: Iterable[GatewayListener], accepted: Sequence[GatewayListener]
) -> Iterator[tuple[GatewayListener, ListenerFault]]:
    """Yield those of a group that conflict with listeners that go before. What these are is their owner's affair."""
    spoken = {each.spec.port: each.spoken for each in accepted if each.spoken != "UDP"}
    places = set(map(_place, accepted))
    for each in group:
        port = each.spec.port
        if each.spoken != "UDP" and spoken.get(port, each.spoken) != each.spoken:
            message = f"{spoken[port]} is spoken on port {port} of the Gateway already; give it another port"
            fault = ListenerFault("ProtocolConflict", f"{each.field}.protocol", message, each.spec.protocol, True)
            yield each, fault
        elif _place(each) in places:
            message = f"an earlier listener of the Gateway has this hostname on port {port}; give it another one"
            yield each, ListenerFault("HostnameConflict", f"{each.field}.hostname", message, each.spec.hostname, True)


def _fault(listener: GatewayListener, entry_points: Sequence[EntryPoint]) -> ListenerFault | None:
    spec, field, transport = listener.spec, listener.field, listener.transport
    if transport is None:
        message = f"protocol {spec.protocol} is not served; {' and '.join(TRANSPORTS)} are"
        return ListenerFault("UnsupportedProtocol", f"{field}.protocol", message, spec.protocol)
    if not listener.has_own_address and (why := why_unavailable(transport, spec.port, entry_points)):
        return ListenerFault("PortUnavailable", f"{field}.port", why, str(spec.port))
    if spec.tls is not None and spec.tls.mode == "Passthrough" and transport == "https":
        message = "TLS is ended on HTTPS listeners: the mode must be Terminate"
        return ListenerFault("UnsupportedValue", f"{field}.tls.mode", message, spec.tls.mode)
    return None


def _conflicts(listeners: Sequence[GatewayListener]) -> Iterator[tuple[GatewayListener, ListenerFault]]:
    spoken: dict[int, set[str]] = {}
    for each in listeners:
        if each.spoken != "UDP":
            spoken.setdefault(each.spec.port, set()).add(each.spoken)
    places, names = Counter(map(_place, listeners)), Counter(each.spec.name for each in listeners)
    for each in listeners:
        spec = each.spec
        if names[spec.name] > 1:
            message = "is the name of several listeners; give each a name of its own"
            yield each, ListenerFault("UnsupportedValue", f"{each.field}.name", message, spec.name)
            continue
        others = spoken.get(spec.port, set()) - {each.spoken}
        if others and spec.protocol != "UDP":
            message = f"other listeners speak {', '.join(sorted(others))} on port {spec.port}; give it another port"
            yield each, ListenerFault("ProtocolConflict", f"{each.field}.protocol", message, spec.protocol, True)
        elif places[_place(each)] > 1:
            message = f"another listener has this hostname on port {spec.port}; give it another hostname or port"
            yield each, ListenerFault("HostnameConflict", f"{each.field}.hostname", message, spec.hostname, True)


def _place(listener: GatewayListener) -> tuple[int, str, str]:
    return listener.spec.port, listener.spoken, listener.hostname


def narrower(listener: GatewayListener, listeners: Iterable[GatewayListener]) -> Iterator[str]:
    """Yield hostnames of other listeners of a port that are among those of a listener, and more specific."""
    for other in listeners:
        is_of_port = (other.spec.port, other.spoken) == (listener.spec.port, listener.spoken)
        if is_of_port and other.hostname != listener.hostname and takes(listener.hostname, other.hostname):
            yield other.hostname


def is_shadowed(listener: GatewayListener, hostname: str, listeners: Iterable[GatewayListener]) -> bool:
    """Whether a hostname of a listener belongs to another one of its port, which takes it more specifically."""
    return any(takes(other, hostname) for other in narrower(listener, listeners))
