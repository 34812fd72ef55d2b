"""The listeners of a Gateway, as they are written, and why one cannot be had.

All that is decided here follows from the Gateway and the settings alone, so that routes can ask for it too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

from headgate.common.problems import Problem
from headgate.common.resources import (
    GATEWAY_GROUP,
    GRPC_ROUTE,
    HTTP_ROUTE,
    TCP_ROUTE,
    TLS_ROUTE,
    UDP_ROUTE,
    JsonObject,
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

    @classmethod
    def of(cls, spec: ListenerSpec, field: str, place: str) -> Self:
        """Return a listener by what is written of it; `place` as `own_place` gives it."""
        transport = TRANSPORTS.get(spec.protocol)
        shared = listener_key(transport, spec.port) if transport is not None else ""
        is_apart = bool(place) and transport is not None
        key = key_at(place, spec.name) if is_apart else shared
        allowed, served = set(map(_kind, spec.allowed_routes.kinds)), _KINDS.get(spec.protocol, ())
        kinds = tuple(kind for kind in served if not allowed or kind in allowed)
        return cls(spec, field, normal(spec.hostname), transport, key, kinds, is_apart)

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


def read_listeners(manifest: JsonObject, problems: list[Problem], place: str) -> tuple[GatewayListener, ...]:
    """Return the listeners of a Gateway; mistakes go to `problems`. `place` is as `own_place` gives it."""
    parts = Spec(manifest.get("spec"), problems).each("listeners", ListenerSpec)
    return tuple(GatewayListener.of(part.value, part.field, place) for part in parts)


def faults_of(listeners: Sequence[GatewayListener], entry_points: Iterable[EntryPoint]) -> Mapping[str, ListenerFault]:
    """Return which listeners are not accepted, by name. Of listeners in conflict with each other none is."""
    points = tuple(entry_points)
    faults = {each.spec.name: fault for each in listeners if (fault := _fault(each, points)) is not None}
    return faults | {name: fault for name, fault in _conflicts(listeners) if name not in faults}


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


def _conflicts(listeners: Sequence[GatewayListener]) -> Iterator[tuple[str, ListenerFault]]:
    spoken: dict[int, set[str]] = {}
    for each in listeners:
        if each.spoken != "UDP":
            spoken.setdefault(each.spec.port, set()).add(each.spoken)
    places, names = Counter(map(_place, listeners)), Counter(each.spec.name for each in listeners)
    for each in listeners:
        spec = each.spec
        if names[spec.name] > 1:
            message = "is the name of several listeners; give each a name of its own"
            yield spec.name, ListenerFault("UnsupportedValue", f"{each.field}.name", message, spec.name)
            continue
        others = spoken.get(spec.port, set()) - {each.spoken}
        if others and spec.protocol != "UDP":
            message = f"other listeners speak {', '.join(sorted(others))} on port {spec.port}; give it another port"
            yield spec.name, ListenerFault("ProtocolConflict", f"{each.field}.protocol", message, spec.protocol, True)
        elif places[_place(each)] > 1:
            message = f"another listener has this hostname on port {spec.port}; give it another hostname or port"
            yield spec.name, ListenerFault("HostnameConflict", f"{each.field}.hostname", message, spec.hostname, True)


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
