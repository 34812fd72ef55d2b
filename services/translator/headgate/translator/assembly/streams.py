"""Who gets a port of the gateways, or a server name on it: the oldest object, as with routes, unless claims say else.

TLS routes share a port as long as their server names differ; of others a port has one. On ports of HTTP they go before
that, so that a server name there is for the owner of the host of this name, and all plain connections for the owner of
all hosts there.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Protocol

from headgate.common.patterns import compile_pattern
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import StreamRoute
from headgate.common.table.hosts import HostKey, is_pattern
from headgate.translator.assembly.host_names import name_of
from headgate.translator.assembly.losses import HTTPS
from headgate.translator.assembly.namesakes import by_namesake, is_for_both
from headgate.translator.assembly.ownership import Sharing
from headgate.translator.fragments.fragment import Fragment, Identity, StreamClaim, StreamPort
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown

STREAM_CONFLICT = "StreamConflict"


class StreamVerdict(NamedTuple):
    """The stream routes of a port, and what the losers hear."""

    routes: tuple[StreamRoute, ...]
    lost: dict[ObjectRef, tuple[Problem, ...]]


class PortListeners(Protocol):
    """Listeners that settings or objects open."""

    def on_port(self, port: StreamPort, *, is_tls: bool) -> frozenset[str]:
        """Return the keys of the listeners that have connections of a port: plain ones, or those over TLS."""


class Rights(Protocol):
    """What the hosts of the port say about claims."""

    def refuse(self, claim: StreamClaim, fragment: Fragment) -> Problem | None:
        """Say why a claim is not the object's to make; None where it is."""

    def leave(self, claim: StreamClaim, fragment: Fragment) -> tuple[StreamClaim | None, Problem | None]:
        """Return what is left of a claim beside hosts, and what is said of the rest."""


def award_port(port: StreamPort, fragments: Iterable[Fragment], sharing: Sharing, rights: Rights) -> StreamVerdict:
    """Decide which claims of one port are served; `sharing` is as for `merge_host`."""
    claims = [
        (fragment.identity.seniority, claim, fragment)
        for fragment in fragments
        for claim in fragment.streams
        if claim.port == port
    ]
    claims.sort(key=lambda each: (-each[1].precedence, each[0]))
    winners: list[tuple[StreamClaim, Identity]] = []
    lost: dict[ObjectRef, tuple[Problem, ...]] = {}
    for _, whole, fragment in claims:
        identity = fragment.identity
        refused = rights.refuse(whole, fragment)
        claim, said = rights.leave(whole, fragment) if refused is None else (None, refused)
        if said is not None:
            lost[identity.ref] = (*lost.get(identity.ref, ()), said)
        if claim is None:
            continue
        rival = next((each for each in winners if _collide(each[0].route, claim.route)), None)
        if rival is None:
            winners.append((claim, identity))
        else:
            lost[identity.ref] = (*lost.get(identity.ref, ()), _lost_port(claim, identity, *rival, sharing))
    return StreamVerdict(tuple(claim.route for claim, _ in winners), lost)


def hosts_taken_by(name: str, hosts: Iterable[str]) -> Iterable[str]:
    """Return those of some hosts whose connections a stream route with a server name takes; `**` is any depth.

    A pattern is taken to take what wildcards and other patterns may.
    """
    if name.startswith("*."):
        return sorted(host for host in hosts if host.partition(".")[2] == name[2:])
    if name.startswith("**."):
        return sorted(host for host in hosts if host.endswith(name[2:]))
    if not is_pattern(name):
        return (name,)
    try:
        pattern = compile_pattern(name[1:])
    except ValueError:
        return ()  # gateways do not serve it
    return sorted(
        host for host in hosts if "*" in host or is_pattern(host) or pattern.search(host.encode()) is not None
    )


def hosts_of_stream(claim: StreamClaim, names: Collection[str]) -> Iterator[str]:
    """Yield the hosts whose connections a stream route would take; `names` are those that have its kind of connections
    on its port.
    """
    if claim.route.protocol != "tls":
        yield from names
    for name in claim.route.server_names:
        yield from (host for host in hosts_taken_by(name, names) if claim.port == HTTPS or host in names)


def keys_on_port(
    port: StreamPort, used: Iterable[str], listeners: Iterable[PortListeners], *, is_tls: bool
) -> dict[str, list[str]]:
    """Return the hosts that have connections of a port, each with its keys.

    Args:
        port: of streams.
        used: keys of all hosts that objects have to do with.
        listeners: of entry points, and those that objects open.
        is_tls: connections over TLS, else plain ones.
    """
    found: dict[str, list[str]] = {}
    if port.place:  # An object's own addresses, where it alone says what its listeners have.
        return found
    here = frozenset(key for each in listeners for key in each.on_port(port, is_tls=is_tls))
    for key in used if here or port == HTTPS else ():
        if port == HTTPS or not here.isdisjoint(HostKey.read(key).listeners):
            found.setdefault(name_of(key), []).append(key)
    return found


def are_named(hosts: Collection[str], users: Iterable[Fragment]) -> bool:
    """Tell whether some stream of some objects takes connections of one of the hosts."""
    if not hosts:
        return False
    names = {name for user in users for claim in user.streams for name in claim.route.server_names}
    if any(map(is_pattern, names)):
        return True
    deep = tuple(name[2:] for name in names if name.startswith("**."))
    return bool(names) and any(
        host in names or f"*.{host.partition('.')[2]}" in names or host.endswith(deep) for host in hosts
    )


def _collide(one: StreamRoute, other: StreamRoute) -> bool:
    if one.protocol != other.protocol:
        return False
    if one.when != other.when and one.provenance.namespace == other.provenance.namespace:
        return False
    if one.protocol != "tls":
        return True
    return one.alpn == other.alpn and bool({*(one.server_names or ("",))} & {*(other.server_names or ("",))})


def _lost_port(claim: StreamClaim, loser: Identity, winner: StreamClaim, owner: Identity, sharing: Sharing) -> Problem:
    names = sorted({*claim.route.server_names} & {*winner.route.server_names})
    what = f"port {claim.route.port}" if claim.route.port else "the HTTPS port"
    if names:
        what = f"server name {names[0]} on {what}"
    value = str(claim.route.port) if claim.route.port else ", ".join(claim.route.server_names)
    if is_for_both(winner.route, owner, claim.route, loser, sharing):
        return by_namesake(claim.field, value, what, owner, loser)
    is_outranked = winner.precedence > claim.precedence
    why = "whose hostname is the more specific one" if is_outranked else seniority_of(owner, loser)
    return Problem(
        reason=STREAM_CONFLICT,
        field=claim.field,
        value=shown(value),
        message=f"{what} belongs to {describe(owner)}, {why}",
    )
